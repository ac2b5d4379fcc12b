/** A node of three real processes that was away too long for entries: it comes back by snapshots of groups. */
import { expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { eventually, patienceMs, startCluster, type TestNode } from './harness.ts'

const datastore = 'away'
/** Entries of a group above which a node takes a snapshot of it. */
const entriesMax = 50
const rounds = 80
/** Each of these rows is in a shard of its own, which is a group. */
const rowKeys = [1, 2, 3].map((number) => `00000000-0000-4000-8000-00000000000${number}`)
// A snapshot has the commits that the sender's data store has, so they are to be there soon.
const extraYaml = `limits: { snapshot_after_entries: ${entriesMax}, snapshot_part_bytes_max: 4096, checkpoint_ms: 50 }`

test('SNAP-2: a node that lacks more entries than the limit takes snapshots, and has the same rows', async () => {
  const cluster = await startCluster({ extraYaml })
  try {
    const away = cluster.node('c')
    const others = [cluster.node('a'), cluster.node('b')]
    const before = await write(others, 0, 2)
    await eventually('it has the first rows', async () =>
      isWhole(await rowsAt(away, before), before),
    )
    await away.stop('SIGKILL')
    const written = [...before, ...(await write(others, 2, rounds))]
    await away.start()
    await eventually('it has all', async () => isWhole(await rowsAt(away, written), written))
    expect(await rowsAt(away, written)).toEqual(written.map(bodyOf))

    const taken = await metricOf(away, 'trilithon_snapshots_taken_total')
    expect(taken).toBeGreaterThanOrEqual(1)
    expect(await eventOf(away, 'snapshot_installed')).toBeGreaterThanOrEqual(1)
    const sent = await Promise.all(
      others.map((node) => metricOf(node, 'trilithon_snapshots_sent_total')),
    )
    expect(sum(sent)).toBeGreaterThanOrEqual(taken)
    const bytes = await Promise.all(
      others.map((node) => metricOf(node, 'trilithon_snapshots_sent_bytes_total')),
    )
    // Each group's rows are 80 bodies of more than 200 bytes.
    expect(sum(bytes)).toBeGreaterThan(rounds * 200)

    // It goes on from there: it takes part in what is written next, and still has all after a restart.
    await cluster.node('b').stop('SIGKILL')
    const later = await write([cluster.node('a')], rounds, rounds + 2)
    await cluster.node('b').start()
    await away.stop('SIGKILL')
    await away.start()
    const all = [...written, ...later]
    await eventually('it has what came later', async () => isWhole(await rowsAt(away, all), all))
    expect(await rowsAt(away, all)).toEqual(all.map(bodyOf))
    const status = await (await fetch(`${away.url}/status`)).json()
    expect(status).toMatchObject({ replica: { snapshots: { taking: 0, waiting: 0 } } })
  } finally {
    await cluster.close()
  }
})

interface Cell {
  readonly rowKey: string
  readonly refKey: number
}

function bodyOf({ rowKey, refKey }: Cell): { rowKey: string; refKey: number; filler: string } {
  return { rowKey, refKey, filler: 'x'.repeat(200) }
}

/** A cell for each group and round; each is an entry of its own. */
async function write(nodes: readonly TestNode[], from: number, to: number): Promise<Cell[]> {
  const client = await connect({ endpoints: nodes.map(({ url }) => url), timeoutMs: patienceMs })
  const cells = client.cells(datastore)
  const written: Cell[] = []
  try {
    for (let refKey = from; refKey < to; refKey++) {
      const round = rowKeys.map((rowKey) => ({ rowKey, refKey }))
      await Promise.all(
        round.map((cell) => cells.put({ ...cell, column: 'BASE', body: bodyOf(cell) })),
      )
      written.push(...round)
    }
    return written
  } finally {
    await client.close()
  }
}

/** The bodies of these cells at this node alone; undefined where it has none. */
async function rowsAt(node: TestNode, asked: readonly Cell[]): Promise<unknown[]> {
  const client = await connect({ endpoints: [node.url], follow: false, timeoutMs: patienceMs })
  const cells = client.cells(datastore)
  try {
    const found = await Promise.all(
      asked.map((cell) => cells.get({ ...cell, column: 'BASE' }, { read: 'snapshot' })),
    )
    return found.map((cell) => cell?.body)
  } finally {
    await client.close()
  }
}

function isWhole(found: readonly unknown[], asked: readonly Cell[]): true | undefined {
  return (found.length === asked.length && !found.includes(undefined)) || undefined
}

async function metricOf(node: TestNode, name: string): Promise<number> {
  const text = await (await fetch(`${node.url}/metrics`)).text()
  return Number(new RegExp(`^${name}\\{[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN)
}

async function eventOf(node: TestNode, event: string): Promise<number> {
  const text = await (await fetch(`${node.url}/metrics`)).text()
  const line = new RegExp(`^trilithon_events_total\\{event="${event}"[^}]*\\} (\\S+)$`, 'm')
  return Number(line.exec(text)?.[1] ?? 0)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
