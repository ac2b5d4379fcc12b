/** Ctrl-C and SIGTERM end a bench with all that it has started, and leave no folder. */
import { readdir, stat } from 'node:fs/promises'
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { eventually, withFolder } from '../cluster/harness.ts'
import { isNightly } from '../nightly-tests.ts'
import { runBench } from './program.ts'

const timeoutMs = 120_000
const startWaitMs = 60_000

type Stop = (child: ChildProcess) => void

/** As a terminal does: everything in the group hears it at once. */
const interruptGroup: Stop = ({ pid }) => {
  process.kill(-(pid ?? 0), 'SIGINT')
}

const terminate: Stop = (child) => {
  child.kill('SIGTERM')
}

/** Bytes in the log of the third node, which is started last: none as long as it is not there. */
async function logBytes(folder: string): Promise<number> {
  const own = (await readdir(folder)).find((name) => name.startsWith('trilithon-bench-'))
  const log = join(folder, own ?? '', 'n3', 'log')
  const names = await readdir(log).catch((): string[] => [])
  // LevelDB removes files while it runs.
  const sizes = names.map((name) =>
    stat(join(log, name)).then(
      ({ size }) => size,
      () => 0,
    ),
  )
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
}

/** Stops it when the log of its third node has that number of bytes. */
async function expectEnds(
  arguments_: readonly string[],
  stop: Stop,
  { bytes }: { readonly bytes: number },
): Promise<void> {
  await withFolder(async (folder) => {
    const result = await runBench(arguments_, {
      // Without the programs of others, which need not be on this machine.
      ...{ folder, path: '', inOwnGroup: true },
      meanwhile: async (child) => {
        const runs = async (): Promise<true | undefined> =>
          (await logBytes(folder)) >= bytes || undefined
        await eventually('it runs', runs, startWaitMs)
        stop(child)
      },
    })
    expect(result).toMatchObject({ code: 130, stdout: '' })
    expect(result.stderr).toContain('stopped; nothing is reported')
    expect(await readdir(folder)).toEqual([])
  })
}

test.runIf(isNightly)('Ctrl-C ends a comparison that begins', { timeout: timeoutMs }, () =>
  expectEnds(['compare', '--against', 'etcd', '--clients', '4'], interruptGroup, { bytes: 1 }),
)

test('SIGTERM ends a gateway and its nodes', { timeout: timeoutMs }, () =>
  expectEnds(['gateway', '--clients', '4'], terminate, { bytes: 20_000 }),
)

test.each(
  isNightly
    ? ([
        ['Ctrl-C', interruptGroup],
        ['SIGTERM', terminate],
      ] as const)
    : ([['Ctrl-C', interruptGroup]] as const),
)('%s ends commits that are under way', { timeout: timeoutMs }, (_, stop) =>
  expectEnds(['commits', '--clients', '4'], stop, { bytes: 100_000 }),
)
