/**
 * The billing example with real processes: three nodes, two workers, a card processor that fails at
 * times. Workers and a node are killed meanwhile: every trip is billed, and none twice.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { unwrapOutcome } from '../../src/base/problem.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { connect } from '../../src/client/connect.ts'
import { triggerAdmin } from '../../src/triggers/run.ts'
import { freePorts } from '../../sim/processes/free-ports.ts'
import {
  eventually,
  patienceMs,
  programPath,
  runProgram,
  startCluster,
  startProgram,
  withFolder,
  type Program,
} from './harness.ts'

const tripCount = 120
const example = join(dirname(programPath), '..', 'docs', 'billing')

function startExample(name: string, flags: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(example, name), ...flags], { stdio: 'pipe' })
}

/** The processes that the command says its workers are, newest last. */
function workersOf(program: Program, nth: number): readonly number[] {
  const said = program.stderr().matchAll(new RegExp(`worker ${nth}: process (\\d+)`, 'g'))
  return [...said].map(([, pid]) => Number(pid))
}

async function linesOf(path: string): Promise<readonly string[]> {
  const text = await readFile(path, 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line !== '')
}

interface Charge {
  readonly key: string
}

async function chargesIn(ledger: string): Promise<readonly string[]> {
  return (await linesOf(ledger)).map((line) => {
    const charge: Charge = JSON.parse(line)
    return charge.key.slice(0, 36)
  })
}

test('billing: no trip is unbilled and none is billed twice, though workers and a node die', async () => {
  const cluster = await startCluster()
  const children: ChildProcess[] = []
  try {
    await withFolder(async (folder) => {
      const [port = 0] = await freePorts(1)
      const ledger = join(folder, 'charges.jsonl')
      const urls = cluster.urls.join(',')
      children.push(startExample('card-processor.js', ['--port', String(port), '--ledger', ledger]))
      const program = startProgram(
        ['trigger', 'run', join(example, 'service.js'), '--workers', '2', '--url', urls],
        { environment: { CARD_PROCESSOR: `http://127.0.0.1:${port}` } },
      )
      children.push(program.child)
      const trips = startExample('trips.js', ['--count', String(tripCount), '--url', urls])
      children.push(trips)
      let written = ''
      trips.stdout?.on('data', (piece: Buffer) => (written += piece.toString()))

      const billed = async (count: number): Promise<true | undefined> =>
        (await chargesIn(ledger)).length >= count ? true : undefined
      await eventually('some trips are billed', () => billed(tripCount / 10))
      const [first = 0] = workersOf(program, 1)
      process.kill(first, 'SIGKILL')
      await eventually('more are billed', () => billed(tripCount / 4))
      await cluster.node('b').stop('SIGKILL')
      const [second = 0] = workersOf(program, 2)
      process.kill(second, 'SIGKILL')

      await eventually('all are billed', () => billed(tripCount))
      const rows = written.split('\n').filter((line) => line !== '')
      expect(rows).toHaveLength(tripCount)
      expect([...(await chargesIn(ledger))].sort()).toEqual([...rows].sort())
      expect(workersOf(program, 1).length).toBeGreaterThan(1)

      const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
      const cells = client.cells('trips')
      const statuses = await eventually('all have a status', async () => {
        const items = rows.map((rowKey) => ({ rowKey, column: 'STATUS', refKey: 0 }))
        const outcomes = await cells.getMany(items)
        const found = outcomes.flatMap((one) => (one.kind === 'ok' ? (one.value ?? []) : []))
        return found.length === tripCount ? found : undefined
      })
      expect(statuses[0]?.body).toEqual({ is_completed: true, result: 'SUCCESS' })
      const items = rows.map((rowKey) => ({ rowKey, column: 'BASE', refKey: 0 }))
      const bases = (await cells.getMany(items)).flatMap((one) => unwrapOutcome(one) ?? [])
      await eventually('the offset of each shard is behind its last trip', async () => {
        const shards = await triggerAdmin(client, 'billing').shards('bill-rider')
        const afters = new Map(shards.map(({ shard, after }) => [shard, after]))
        const isSaved = bases.every(
          ({ rowKey, addedId }) => (afters.get(shardOf(rowKey)) ?? 0) >= addedId,
        )
        return isSaved ? true : undefined
      })
      await client.close()

      const status = await runProgram(['trigger', 'status', 'billing', '--url', urls])
      expect(status).toMatchObject({ code: 0, stderr: '' })
      expect(status.stdout).toContain('bill-rider  trips/BASE  running')
      program.child.kill('SIGTERM')
      expect(await program.exited()).toMatchObject({ code: 0 })
    })
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await cluster.close()
  }
})
