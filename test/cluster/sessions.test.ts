/**
 * Transactions of a client over real sockets: at every node a client sees at least what it has seen
 * before. Each transaction takes effect once, also when its node is killed in the middle of it.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { present } from '../../src/base/assert.ts'
import { StoreError, type StoreErrorDetail } from '../../src/base/errors.ts'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import {
  rootKey,
  type RootKey,
  type Tables,
  type TransactionCallOptions,
} from '../../src/tables/tables.ts'
import { patienceMs, startCluster, type TestCluster } from './harness.ts'

const Counter = table('Counter', { id: t.integer(), value: t.integer() }).key('id').root()
/** One for each transaction that has counted. */
const Step = table('Step', { counter_id: t.integer(), name: t.string() })
  .key('counter_id', 'name')
  .in(Counter)
const counters = defineSchema('Counters', [Counter, Step])
type Counters = Tables<typeof counters.tables>

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster()
  await (await clientOf(['a'])).applySchema(counters.model)
})
afterAll(() => cluster?.close())

const clients: Client[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
})

async function clientOf(ids: readonly string[], timeoutMs = 20_000): Promise<Client> {
  const endpoints = ids.map((id) => cluster.node(id).url)
  const client = await connect({ endpoints, follow: false, timeoutMs })
  clients.push(client)
  return client
}

function keyOf(id: number): RootKey {
  return rootKey(Counter, { id })
}

async function begin(db: Counters, id: number): Promise<void> {
  await db.transaction(keyOf(id), (tx) => tx.insert(Counter, { id, value: 0 }))
}

/** Counts one up, under a name that no other one has; says where the group is then. */
async function count(
  db: Counters,
  id: number,
  name: string,
  options: TransactionCallOptions = {},
): Promise<{ readonly value: number; readonly position: number }> {
  const { value, position } = await db.transaction(
    keyOf(id),
    async (tx) => {
      const before = present(await tx.get(Counter, { id }), 'test: the counter is there')
      await tx.insert(Step, { counter_id: id, name })
      await tx.update(Counter, { id }, { value: before.value + 1 })
      return before.value + 1
    },
    options,
  )
  return { value, position }
}

/** The counter, and the names of what has counted. */
async function stateAt(
  db: Counters,
  id: number,
  level: 'current' | 'snapshot',
  atLeast = 0,
): Promise<{ readonly value: number; readonly names: readonly string[] }> {
  const { value } = await db.read(
    keyOf(id),
    level,
    async (rows) => {
      const { items } = await rows.scan(Step, { counter_id: id }, { limit: 20_000 })
      const counter = await rows.get(Counter, { id })
      return { value: counter?.value ?? 0, names: items.map(({ name }) => name) }
    },
    { atLeast },
  )
  return value
}

test('CELL-5: a client of another node sees in a snapshot what a writer saw at that position', async () => {
  const writer = await (await clientOf(['a'])).tables(counters)
  const b = await (await clientOf(['b'])).tables(counters)
  const c = await (await clientOf(['c'])).tables(counters)
  await begin(writer, 1)
  for (let done = 1; done <= 60; done++) {
    const { value, position } = await count(writer, 1, `step ${done}`)
    expect(value).toBe(done)
    for (const reader of [b, c]) {
      const state = await stateAt(reader, 1, 'snapshot', position)
      expect(state.value).toBe(done)
      expect(state.names).toHaveLength(done)
    }
  }
})

test('CELL-5: snapshots of one client never go back while the nodes that it asks are killed', async () => {
  const client = await clientOf(['a', 'b', 'c'])
  const db = await client.tables(counters)
  const others = await (await clientOf(['c', 'b', 'a'])).tables(counters)
  await begin(db, 2)
  const state = { isOver: false }
  const counted: string[] = []
  const counting = (async () => {
    while (!state.isOver) {
      const name = randomUUID()
      // The one nearer to the leader may win time and again; that is no matter here.
      await count(others, 2, name, { rerunsMax: 1_000 })
      counted.push(name)
      await pause(restMs)
    }
  })()
  let [seen, reads, mine] = [0, 0, 0]
  const reading = (async () => {
    while (!state.isOver) {
      const found = await stateAt(db, 2, 'snapshot')
      expect(found.value).toBeGreaterThanOrEqual(seen)
      expect(found.names).toHaveLength(found.value)
      seen = found.value
      reads += 1
      await pause(restMs)
      if (reads % 10 > 0) continue
      seen = (await count(db, 2, randomUUID())).value
      mine += 1
    }
  })()
  try {
    for (const node of cluster.nodes) {
      await node.stop('SIGKILL')
      await progress(() => reads)
      await node.start()
      await progress(() => counted.length)
    }
  } finally {
    state.isOver = true
  }
  await Promise.all([counting, reading])
  expect((await stateAt(db, 2, 'current')).value).toBe(counted.length + mine)
})

/**
 * Between two steps of a session: it is at work all the time, and not all that the machine does. Each read is of all
 * steps so far.
 */
const restMs = 20

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Resolves when five more have been done. */
async function progress(done: () => number): Promise<void> {
  const enough = done() + 5
  await expect.poll(done, { timeout: patienceMs, interval: 10 }).toBeGreaterThanOrEqual(enough)
}

/** The test kills the node until this many clients got an unknown outcome; and at most how often. */
const unknownMin = 3
const roundsMax = 15

/** The outcomes of the transactions of some clients, as far as these know them. */
interface Told {
  readonly acknowledged: string[]
  readonly unknown: Map<string, NonNullable<StoreErrorDetail['intent']>>
  readonly refused: string[]
}

/** A transaction that is in conflict with others of its kind, and one that never is. */
const kinds = {
  count: (db: Counters, id: number, name: string): Promise<unknown> =>
    count(db, id, name, { timeoutMs: 1_500, lock: 'count' }),
  step: (db: Counters, id: number, name: string): Promise<unknown> =>
    db.transaction(keyOf(id), (tx) => tx.insert(Step, { counter_id: id, name }), {
      timeoutMs: 1_500,
    }),
} as const

async function writeUntil(
  db: Counters,
  kind: keyof typeof kinds,
  told: Told,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const name = `${kind} ${randomUUID()}`
    try {
      await kinds[kind](db, 3, name)
      told.acknowledged.push(name)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      if (error.code === 'unknown-outcome') {
        told.unknown.set(name, present(error.detail.intent, 'test: it says which one'))
      } else {
        expect(['unavailable', 'timeout', 'contention']).toContain(error.code)
        told.refused.push(name)
      }
    }
  }
}

test('TXN-5: when the node is killed amid transactions, each counts at most once, as outcome says', async () => {
  const observer = await clientOf(['c'])
  const db = await observer.tables(counters)
  await begin(db, 3)
  const told: Told = { acknowledged: [], unknown: new Map(), refused: [] }
  for (let round = 0; round < roundsMax && told.unknown.size < unknownMin; round++) {
    let isOver = false
    // They know no other node than the one that is killed.
    const writer = await (await clientOf(['a'])).tables(counters)
    const writing = Array.from({ length: 12 }, (_, place) =>
      writeUntil(writer, place < 2 ? 'count' : 'step', told, () => isOver),
    )
    await progress(() => told.acknowledged.length)
    // Not at the same stage of the transactions each time: they go on in step with one another.
    await new Promise((resolve) => setTimeout(resolve, (round * 13) % 50))
    await cluster.node('a').stop('SIGKILL')
    isOver = true
    await Promise.all(writing)
    await cluster.node('a').start()
  }
  // Transactions on their way when a node was killed are decided before this one.
  await count(db, 3, 'count last')
  told.acknowledged.push('count last')
  const group = db.group(keyOf(3))
  const committed: string[] = []
  for (const [name, intent] of told.unknown) {
    const { kind } = await observer.groups.outcome(group, intent, 10_000)
    expect(['committed', 'none']).toContain(kind)
    if (kind === 'committed') committed.push(name)
  }
  const expected = [...told.acknowledged, ...committed].toSorted()
  const counted = expected.filter((name) => name.startsWith('count'))
  for (const id of ['a', 'b', 'c']) {
    const alone = await (await clientOf([id])).tables(counters)
    const { value, names } = await stateAt(alone, 3, 'current')
    expect(value, `replica ${id}`).toBe(counted.length)
    expect(names, `replica ${id}`).toEqual(expected)
  }
  expect(told.unknown.size).toBeGreaterThanOrEqual(unknownMin)
  const { acknowledged, unknown, refused } = told
  process.stdout.write(
    `sessions: ${acknowledged.length} acknowledged, ${unknown.size} unknown (${committed.length} of them committed), ${refused.length} refused\n`,
  )
})
