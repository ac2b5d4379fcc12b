/** A bench and its client processes, which are scripts here. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { readReason } from '../../bench/common.ts'
import { LoadProcess } from '../../bench/load-process.ts'
import { withFolder } from '../cluster/harness.ts'
import { benchPath } from './program.ts'

const load = { clients: 1, seconds: 1, warmUpSeconds: 0, operation: 'commits' } as const
const onWarm = (): Promise<void> => Promise.resolve()

const telling = `
  const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n')
  say({ kind: 'ready' })
`

/** Is ready, and gives a result some time after it got a load. */
const obedient = `
  ${telling}
  process.stdin.on('data', () => {
    say({ kind: 'warm' })
    setTimeout(() => say({ kind: 'result', operations: 7 }), 1500)
  })
`

/** Hears of loads as all clients do, and does not come to the end of one. */
const endless = `
  import(${JSON.stringify(new URL('load-messages.js', pathToFileURL(benchPath)))}).then(async ({ loads, say }) => {
    say({ kind: 'ready' })
    for await (const _ of loads()) {
      say({ kind: 'warm' })
      await new Promise((resolve) => setTimeout(resolve, 60_000))
    }
  })
`

async function withClient(
  script: string,
  use: (client: LoadProcess) => Promise<void>,
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  await withFolder(async (folder) => {
    const path = join(folder, 'client.js')
    await writeFile(path, script)
    await use(await LoadProcess.start(path, [], signal))
  })
}

test('a load process that was killed counts as stopped', () =>
  withClient(
    `${telling} setImmediate(() => process.kill(process.pid, 'SIGKILL'))`,
    async (client) => {
      await expect(client.run(load, { onWarm })).rejects.toThrow('ended before it was warm')
      // Until it is known how it ended, too: its output ends before.
      await new Promise((resolve) => setTimeout(resolve, 300))
      await client.stop()
    },
  ))

test('a load process ends by itself when the bench stops it under load', { timeout: 20_000 }, () =>
  withClient(endless, async (client) => {
    const over = client.run(load, { onWarm }).catch(readReason)
    await new Promise((resolve) => setTimeout(resolve, 100))
    const began = performance.now()
    await client.stop()
    // By itself, before it is killed.
    expect(performance.now() - began).toBeLessThan(8_000)
    expect(await over).toContain('ended before it was result')
  }),
)

test('a bench that is stopped ends the load under way', async () => {
  const stopping = new AbortController()
  const use = async (client: LoadProcess): Promise<void> => {
    const onWarm = async (): Promise<void> => stopping.abort()
    await expect(client.run(load, { onWarm })).rejects.toThrow('ended before it was result')
    await client.stop()
  }
  await withClient(endless, use, stopping.signal)
  await expect(LoadProcess.start('none.js', [], stopping.signal)).rejects.toThrow('aborted')
})

test('a look at the system that fails does not end the load', () =>
  withClient(obedient, async (client) => {
    let looks = 0
    const onSecond = async (): Promise<void> => {
      looks += 1
      throw new Error('a node does not answer')
    }
    expect(await client.run(load, { onWarm, onSecond })).toMatchObject({ operations: 7 })
    expect(looks).toBe(1)
    await client.stop()
  }))
