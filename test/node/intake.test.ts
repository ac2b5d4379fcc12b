/** Requests on their way to be taken up: in their order, over several turns, bounded while they wait. */
import { expect, test } from 'vitest'
import type { Operation, Request, Response } from '../../src/wire/client/client-message.ts'
import { encodeClientFrame, openClientFrame } from '../../src/wire/client/client-codec.ts'
import { pack } from '../../src/base/pack.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { frameBytesMax } from '../../src/base/limits.ts'
import { Intake } from '../../src/node/intake.ts'
import { computeCost } from '../../src/node/request-cost.ts'
import { Answers, clientAnswerBytesMax } from '../../src/node/answers.ts'
import { Slices } from '../../src/ports/slices.ts'
import { defaultSliceLimits, type SliceLimits } from '../../src/ports/turn-budget.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import type { Transport } from '../../src/ports/transport.ts'
import { createBench } from '../cells/kit.ts'

const current = { level: 'current', atLeast: [] } as const

function poll(id: number, places: number): Request {
  const items = Array.from({ length: places }, (_, shard) => {
    return { kind: 'after', shard, addedId: 0 } as const
  })
  const log = { kind: 'log', datastore: 'trips', read: current, limit: 10, waitMs: 1_000 } as const
  return { id, timeoutMs: 1_000, operation: { ...log, items } }
}

/** As it comes in. */
function frameOf(requests: readonly Request[]): ClientFrame {
  const opened = openClientFrame(encodeClientFrame({ kind: 'requests', requests }))
  if (!opened.ok) throw new Error(opened.reason)
  return opened.frame
}

/** A clock that goes on by a millisecond whenever it is looked at. */
function hastening(clock: Clock): Clock {
  let looks = 0
  const hasty: Clock = Object.create(clock)
  return Object.assign(hasty, { monotonicMs: () => clock.monotonicMs() + (looks += 1) })
}

function createIntake(
  bounds = { clientBytesMax: 100_000, bytesMax: 1_000_000 },
  limits: Partial<SliceLimits> = { turnWorkMax: 20 },
  clockOver = (clock: Clock) => clock,
) {
  const { world, clockOf } = createBench()
  const slices = new Slices(clockOver(clockOf('n1')), { ...defaultSliceLimits, ...limits })
  const taken: { readonly id: number; readonly event: number }[] = []
  const held: string[] = []
  const cancelled: number[] = []
  const intake = new Intake(
    {
      slices,
      clock: clockOf('n1'),
      take: (_, { id }) => void taken.push({ id, event: world.eventCount }),
      refuse: (_, { id }) => void taken.push({ id, event: world.eventCount }),
      cancel: (_, { request }) => void cancelled.push(request),
      onBug: () => undefined,
      hold: (client, isHeld) => void held.push(`${client} ${isHeld}`),
    },
    bounds,
  )
  const line = slices.open()
  intake.open('c1', line)
  const run = () => world.run(() => false, world.nowMicros + 1_000_000)
  return { intake, line, taken, held, cancelled, run, slices }
}

test('COST-2: a frame of many requests is taken up over many turns, in order, and read when it is', async () => {
  const { intake, taken, held, run } = createIntake()
  const requests = Array.from({ length: 300 }, (_, nth) => poll(nth + 1, 64))
  const frame = frameOf(requests)
  expect(frame.kind).toBe('packed')
  intake.add('c1', frame)
  intake.add('c1', frameOf([poll(301, 1)]))
  expect(taken.length).toBeGreaterThan(0)
  expect(taken.length).toBeLessThan(10)
  // The queue is full: the node reads no more from the link.
  expect(held).toEqual(['c1 true'])
  await run()
  expect(taken.map(({ id }) => id)).toEqual(Array.from({ length: 301 }, (_, nth) => nth + 1))
  const events = new Set(taken.map(({ event }) => event))
  expect(events.size).toBeGreaterThan(50)
  expect(held).toEqual(['c1 true', 'c1 false'])
  expect(intake.bytes).toBe(0)
})

test('COST-2: a request is counted from when its frame waits until it is taken up, or its client is gone', async () => {
  const { intake, taken, run } = createIntake()
  const few = Array.from({ length: 12 }, (_, nth) => poll(nth + 1, 64))
  intake.add('c1', frameOf(few))
  expect(taken.length).toBeGreaterThan(0)
  // The next one has left its frame, and waits for its turn.
  expect(intake.waiting).toBe(few.length - taken.length - 1)
  intake.add('c1', { kind: 'requests', requests: [poll(13, 1), poll(14, 1)] })
  expect(intake.waiting).toBe(few.length - taken.length + 1)
  await run()
  expect([taken.length, intake.waiting]).toEqual([14, 0])
  intake.add('c1', frameOf(few))
  expect(intake.waiting).toBeGreaterThan(0)
  intake.close('c1')
  expect(intake.waiting).toBe(0)
})

test.each([4, 5, 6, 7])(
  'COST-2: requests that come as the %i ms of a turn run out are taken up in a later turn, in order',
  async (turnMs) => {
    const { intake, taken, run } = createIntake(undefined, { turnMs }, hastening)
    for (let id = 1; id <= 60; id++) intake.add('c1', frameOf([poll(id, 8)]))
    expect(taken.length).toBeLessThan(60)
    await run()
    expect(taken.map(({ id }) => id)).toEqual(Array.from({ length: 60 }, (_, nth) => nth + 1))
  },
)

test('COST-4: a node takes up and keeps nothing more of a client that is gone', async () => {
  const { intake, line, taken, run } = createIntake()
  intake.add('c1', frameOf(Array.from({ length: 300 }, (_, nth) => poll(nth + 1, 64))))
  const before = taken.length
  intake.close('c1')
  line.close()
  await run()
  expect(taken).toHaveLength(before)
  expect(intake.bytes).toBe(0)
  intake.add('c1', frameOf([poll(400, 1)]))
  expect(taken).toHaveLength(before)
})

test('COST-4: a node hears a cancel before it takes up waiting requests', () => {
  const { intake, taken, cancelled } = createIntake()
  intake.add('c1', frameOf(Array.from({ length: 300 }, (_, nth) => poll(nth + 1, 64))))
  const before = taken.length
  intake.add('c1', frameOf([{ id: 301, timeoutMs: 1, operation: { kind: 'cancel', request: 7 } }]))
  expect(cancelled).toEqual([7])
  expect(taken).toHaveLength(before)
})

test('a large frame is what it was, request by request; one that cannot be read is answered alone', () => {
  const requests = [poll(1, 500), poll(2, 4_000), poll(7, 3)]
  const bytes = encodeClientFrame({ kind: 'requests', requests })
  const opened = openClientFrame(bytes)
  expect(opened.ok && opened.frame.kind).toBe('packed')
  if (!opened.ok || opened.frame.kind !== 'packed') return
  const source = opened.frame.requests
  expect(source).toMatchObject({ count: 3, bytes: bytes.length })
  expect([source.next(), source.next(), source.next(), source.next()]).toStrictEqual([
    ...requests,
    undefined,
  ])
  const odd = pack([
    1,
    1,
    [
      [5, 'soon', null, [1]],
      [6, 1_000, null, ['x'.repeat(20_000)]],
    ],
  ])
  const other = openClientFrame(odd)
  if (!other.ok || other.frame.kind !== 'packed') throw new Error('it is large')
  expect(other.frame.requests.next()).toMatchObject({ id: 5, reason: expect.any(String) })
  expect(other.frame.requests.next()).toMatchObject({ id: 6, reason: expect.any(String) })
})

test('a large frame that is cut, has too many parts or requests without a name ends its link', () => {
  const whole = encodeClientFrame({ kind: 'requests', requests: [poll(1, 4_000), poll(2, 4_000)] })
  for (const length of [17_000, 20_000, whole.length - 1]) {
    expect(openClientFrame(whole.subarray(0, length)).ok).toBe(false)
  }
  expect(openClientFrame(Buffer.concat([whole, Buffer.from([0])])).ok).toBe(false)
  const nameless = pack([1, 1, [[-1, 1_000, null, ['x'.repeat(20_000)]]]])
  expect(openClientFrame(nameless)).toMatchObject({ ok: false })
  // Two million empty lists: looked at in milliseconds, and never made.
  const parts = Buffer.alloc(2_000_000, 0x90)
  const head = pack([1, 1, []]).subarray(0, 3)
  const many = Buffer.concat([head, Buffer.from([0xdd, 0, 0x1e, 0x84, 0x80]), parts])
  expect(openClientFrame(many)).toMatchObject({ ok: false })
  expect(openClientFrame(Buffer.alloc(frameBytesMax + 1)).ok).toBe(false)
})

test('COST-6: every request has a cost, which grows with its size', () => {
  const few = computeCost(poll(1, 4).operation)
  const many = computeCost(poll(1, 4_000).operation)
  expect(few.begin).toBeGreaterThan(0)
  expect(many.begin).toBeGreaterThan(20 * few.begin)
  expect(many.bytes).toBeGreaterThan(900_000)
  const status: Operation = { kind: 'status' }
  const unlock: Operation = {
    kind: 'unlock-group',
    group: groupOfBytes(Buffer.from('g')),
    name: 'a',
    token: 1,
  }
  expect(computeCost(status).begin).toBeGreaterThan(computeCost(unlock).begin)
})

/** A link that takes nothing until the test opens it. */
function slowLink() {
  let queued = 0
  const sent: Response[] = []
  const transport: Transport<ClientFrame> = {
    start: () => undefined,
    send: (_, frame) => {
      if (frame.kind === 'responses') sent.push(...frame.responses)
      queued += 4_000_000
      return true
    },
    isUp: () => true,
    queuedBytes: () => queued,
    close: () => Promise.resolve(),
  }
  return { transport, sent, take: () => (queued = 0) }
}

test('COST-3: a client that does not read is sent no more, nor worked for, until it does', async () => {
  const { world, clockOf } = createBench()
  const clock = clockOf('n1')
  const slices = new Slices(clock)
  const { transport, sent, take } = slowLink()
  const answers = new Answers({ transport, clock, slices })
  const line = slices.open()
  answers.open('c1', line)
  const body = Buffer.alloc(900_000)
  const cell = { rowKey: '', column: 'a', refKey: 1, addedId: 1, createdAt: 1, body }
  const answer = { kind: 'row', page: { cells: [cell, cell, cell, cell] } } as const
  for (let id = 1; id <= 8; id++) answers.add('c1', { id, answer, positions: [] })
  expect(line.isHeld).toBe(true)
  const run = () => world.run(() => false, world.nowMicros + 100_000)
  await run()
  // Three of nearly 4 MiB are more than one client may have waiting.
  expect(sent.map(({ id }) => id)).toEqual([1, 2, 3])
  expect(slices.answerBytes).toBeGreaterThan(clientAnswerBytesMax)
  take()
  answers.drained('c1')
  await run()
  take()
  answers.drained('c1')
  await run()
  take()
  answers.drained('c1')
  await run()
  expect(sent.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  expect(line.isHeld).toBe(false)
  expect(slices.answerBytes).toBe(0)
})
