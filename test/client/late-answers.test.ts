/** A try is given up after a time; where its answer comes all the same, it is the answer to the call. */
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { problem, type Outcome, type Problem } from '../../src/base/problem.ts'
import type { Written } from '../../src/cells/cell.ts'
import type { CellService, PutCells } from '../../src/cells/operation.ts'
import { PutCall, ReadCall, type Call, type Try } from '../../src/client/call.ts'
import { RequestSender } from '../../src/client/request-sender.ts'
import { defaultClientLimits, type ClientLimits } from '../../src/client/client-limits.ts'
import { CommitCall } from '../../src/client/commit-call.ts'
import { AbandonedAttempts } from '../../src/client/abandoned-attempts.ts'
import type { Outcome as Verdict } from '../../src/group/replica-port.ts'
import type { CommitGroup } from '../../src/txn/group-operation.ts'
import type { Operation, Replied, Reply } from '../../src/wire/client/client-message.ts'
import { epochMicros } from '../../sim/world/clock.ts'
import { current, passMs, putItem, rowKey, settled } from '../cells/kit.ts'
import { createCluster, type ClusterOptions, type FakeCluster } from './cluster.ts'

const base = { rowKey: rowKey(4), column: 'BASE', refKey: 0 }
const group = groupOfBytes(Buffer.from('g'))
const intent = { session: 's', sequence: 1, floor: 1, expiresAt: epochMicros + 600_000_000 }
const unavailable = problem('unavailable', 'no majority')

/** Writes a row, and has read nothing. */
const commit: CommitGroup = {
  kind: 'commit-group',
  submission: {
    ...{ group, intent, attempt: 1, readPosition: 0, allocations: [], reads: [], ranges: [] },
    mutations: [{ key: Buffer.from('k'), value: Buffer.from('v'), slots: undefined, isNew: true }],
  },
}
const get = { kind: 'get', datastore: 'trips', read: current, items: [base] } as const

function put(count: number): PutCells {
  const items = Array.from({ length: count }, (_, refKey) => putItem({ ...base, refKey }, refKey))
  return { kind: 'put', datastore: 'trips', items }
}

function callOf(operation: Operation): Call {
  if (operation.kind === 'commit-group') return new CommitCall(operation)
  if (operation.kind !== 'put') return new ReadCall(operation)
  const sequences = operation.items.map((_, place) => place + 1)
  const { session, floor, expiresAt } = intent
  const intents = (some: readonly number[]) => ({ session, sequences: some, floor, expiresAt })
  return new PutCall(operation, { sequences, intents, settle: () => undefined })
}

interface Slow {
  readonly cluster: FakeCluster
  readonly caller: RequestSender
  /** Requests that the client has sent. */
  requests(): number
  ask(operation: Operation, timeoutMs: number): Promise<Replied>
}

/** A client that gives each try 300 ms, far from its node: answers take 800. */
async function farAway(
  options: ClusterOptions = {},
  limits: Partial<ClientLimits> = {},
): Promise<Slow> {
  const cluster = createCluster({ names: ['n1'], ...options })
  const { world, random } = cluster.bench
  const { process, clock } = cluster.clockOf('client')
  const transport = cluster.network.attach(process, ['n1'])
  const ports = { transport, clock, random }
  const caller = new RequestSender(ports, { ...defaultClientLimits, tryTimeoutMs: 300, ...limits })
  await passMs(world, 100)
  cluster.weather.slow('n1', 400_000, Infinity)
  return {
    ...{ cluster, caller },
    requests: () => cluster.frames.filter(({ from }) => from === 'client').length,
    ask: (operation, timeoutMs) =>
      settled(world, caller.carryOut(operation, callOf(operation), timeoutMs)),
  }
}

const lost = { kind: 'lost' } as const

function answered(answer: Reply): Try {
  return { kind: 'answered', answered: { answer, positions: [] } }
}

test.each([
  ['a commit', commit, { outcome: { kind: 'committed' } }],
  ['a put', put(1), { items: [{ kind: 'ok' }] }],
  ['a read', get, { items: [{ kind: 'ok' }] }],
])(
  'CALL-1: %s takes the answer of its first try, though later tries are under way',
  async (...of) => {
    const [, operation, answer] = of
    const { cluster, caller, requests, ask } = await farAway()
    const { world } = cluster.bench
    const startMicros = world.nowMicros
    expect(await ask(operation, 1_000)).toMatchObject({
      answer: { kind: operation.kind, ...answer },
    })
    expect(world.nowMicros - startMicros).toBeLessThan(850_000)
    expect(caller.calls).toBe(0)
    // The latest try has told nothing of the node, and its own answer belongs to no call.
    expect(caller.nodes()).toMatchObject([{ tries: { lost: 2, inconclusive: 1, answered: 0 } }])
    const sent = requests()
    await passMs(world, 10_000)
    expect([requests(), caller.calls]).toEqual([sent, 0])
    expect(cluster.bench.log.entryCount()).toBe(operation.kind === 'get' ? 0 : 1)
  },
)

test('CALL-1: a call that ends while it waits to be tried again is not', async () => {
  const { cluster, caller, requests, ask } = await farAway(
    {},
    { backoffMs: 2_000, backoffMaxMs: 2_000 },
  )
  expect(await ask(commit, 10_000)).toMatchObject({ answer: { outcome: { kind: 'committed' } } })
  await passMs(cluster.bench.world, 10_000)
  expect([requests(), caller.calls]).toEqual([2, 0])
})

test('CALL-1: the place of a call that a late answer has ended is free at once', async () => {
  const { ask } = await farAway({ conditions: { duplicate: 1_000_000 } }, { callsMax: 1 })
  for (let times = 0; times < 3; times++) {
    expect(await ask(get, 1_000)).toMatchObject({ answer: { kind: 'get' } })
  }
})

test('CALL-1: a late answer that does not end a call begins no other try', async () => {
  const counts: number[] = []
  const refusing: CellService = {
    execute: () =>
      Promise.resolve({ answer: { kind: 'problem', problem: unavailable }, positions: [] }),
  }
  const silent: CellService = { execute: () => new Promise(() => undefined) }
  for (const service of [refusing, silent]) {
    const { requests, ask } = await farAway({ wrap: () => service })
    const { answer } = await ask(put(1), 2_000)
    expect(answer).toMatchObject({ items: [{ problem: { code: 'unknown-outcome' } }] })
    counts.push(requests())
  }
  expect(counts[0]).toBe(counts[1])
})

test('CALL-1: a late answer counts once, from the node that got the try, while its call lasts', () => {
  const tries = new AbandonedAttempts<string>(2)
  const sending = { operation: get }
  for (const id of [1, 2, 3]) tries.keep(id, { one: 'call', endpoint: 'n1', sending })
  expect(tries.take(1, 'n2')).toBeUndefined()
  expect(tries.take(1, 'n1')).toMatchObject({ one: 'call' })
  expect(tries.take(1, 'n1')).toBeUndefined()
  // There was no room for it.
  expect(tries.take(3, 'n1')).toBeUndefined()
  tries.drop('call')
  expect(tries.take(2, 'n1')).toBeUndefined()
})

const why = problem('unavailable', 'no node answered in time')

/** The answer of a commit whose first try was given up and then answered late, when no more came. */
function toldOf(answer: Reply): Reply {
  const call = new CommitCall(commit)
  call.next()
  call.take(lost)
  call.take(answered(answer))
  return call.finish(why).answer
}

const notFinal: readonly (readonly [string, Verdict | Problem])[] = [
  ['a conflict with a read that is too old there', { kind: 'conflict', position: 5 }],
  ['that there was no room', { kind: 'overloaded' }],
  ['that it is not known', { kind: 'unknown' }],
  ['that the node could not', unavailable],
  ['that it is out of date', problem('expired', 'compare the clocks')],
]

test.each(notFinal)('LOG-3: told late %s, a commit is as unsure as before', (_, told) => {
  const answer: Reply =
    'kind' in told ? { kind: 'commit-group', outcome: told } : { kind: 'problem', problem: told }
  expect(toldOf(answer)).toEqual({ kind: 'commit-group', outcome: { kind: 'unknown' } })
})

const ok = (addedId: number): Outcome<Written> => ({
  kind: 'ok',
  value: { shard: 1, addedId, createdAt: 1, created: true },
})
const refused = (of: Problem): Outcome<Written> => ({ kind: 'problem', problem: of })

test('CELL-4: an answer is about the items that its own try has sent', () => {
  const call = callOf(put(3))
  const first = call.next()
  expect(call.take(lost, first)).toBe(false)
  const second = call.next()
  const some = [ok(1), refused(unavailable), refused(unavailable)]
  expect(call.take(answered({ kind: 'put', items: some }), second)).toBe(false)
  const third = call.next()
  expect(third.places).toEqual([1, 2])
  expect(third.intents?.sequences).toEqual([2, 3])
  const expired = refused(problem('expired', 'compare the clocks'))
  const late = [ok(9), ok(2), expired]
  expect(call.take(answered({ kind: 'put', items: late }), first)).toBe(false)
  expect(call.next().places).toEqual([2])
  // The third is unsure since the first try, and stays so whatever else is said of its intent.
  expect(call.take(answered({ kind: 'put', items: [ok(8), expired] }), third)).toBe(false)
  expect(call.finish(why).answer).toMatchObject({
    items: [ok(1), ok(2), { problem: { code: 'unknown-outcome' } }],
  })
})

test('CELL-4: with a late answer the last cell is known, and the call at its end', () => {
  const call = callOf(put(2))
  const first = call.next()
  call.take(lost, first)
  const second = call.next()
  expect(call.take(answered({ kind: 'put', items: [refused(unavailable), ok(2)] }), second)).toBe(
    false,
  )
  const conflict = refused(problem('immutable', 'another body is there'))
  expect(call.take(answered({ kind: 'put', items: [conflict, ok(2)] }), first)).toBe(true)
  expect(call.finish(why).answer).toMatchObject({ items: [conflict, ok(2)] })
})

test('CALL-1: a call that fails of itself is rejected, and is not under way any more', async () => {
  const { cluster, caller, ask } = await farAway()
  const { world } = cluster.bench
  const broken: Call = {
    next: () => ({ operation: get }),
    take: () => {
      throw new Error('what came is no answer to it')
    },
    finish: () => ({ answer: { kind: 'problem', problem: unavailable }, positions: [] }),
  }
  const first = caller.carryOut(get, broken, 5_000)
  expect(caller.calls).toBe(1)
  await expect(settled(world, first)).rejects.toThrow('no answer to it')
  expect(caller.calls).toBe(0)
  await passMs(world, 5_000)
  expect(await ask(get, 5_000)).toMatchObject({ answer: { items: [{ kind: 'ok' }] } })
  expect(caller.calls).toBe(0)
})
