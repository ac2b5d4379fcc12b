/** Which flushes of a log may go, and for whom they stay. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { LogEnd, type EndingLog, type ToldMark } from '../../src/log/log-end.ts'
import { silentTrace } from '../../src/ports/trace.ts'

const [b, c] = [nodeId('b'), nodeId('c')]
const minuteMs = 60_000

/** Each flush takes a byte of the disk. */
class Log implements EndingLog {
  firstFlush = 1
  durableFlush = 100
  dispensableFlush = 90
  /** The bytes that each flush takes. */
  flushBytes = 1

  sizeAfter(after: number, through: number = this.durableFlush): Promise<number> {
    const count = through - Math.max(after, this.firstFlush - 1)
    return Promise.resolve(this.flushBytes * Math.max(0, count))
  }

  giveUp(first: number): boolean {
    this.firstFlush = first
    return true
  }
}

function makeEnd(limits: Partial<ConstructorParameters<typeof LogEnd>[0]['limits']> = {}): {
  readonly log: Log
  readonly end: LogEnd
  readonly clock: { nowMs: number }
  marks: readonly ToldMark[]
} {
  const log = new Log()
  const clock = { nowMs: 0 }
  const usual = { logRetainBytes: 1_000, logRetainMs: 60 * minuteMs, truncateBytesMin: 10 }
  const told: { marks: readonly ToldMark[] } = { marks: [] }
  const end = new LogEnd({
    ...{ log, trace: silentTrace, limits: { ...usual, ...limits } },
    clock: { monotonicMs: () => clock.nowMs },
    marks: () => told.marks,
  })
  return Object.assign(told, { log, end, clock })
}

test('LOG-16: a flush goes when this node and each other one need it no more', async () => {
  const made = makeEnd()
  const { log, end } = made
  made.marks = [
    [b, 40],
    [c, undefined],
  ]
  await end.look()
  expect(log.firstFlush).toBe(1)
  made.marks = [
    [b, 40],
    [c, 95],
  ]
  await end.look()
  expect(log.firstFlush).toBe(41)
  made.marks = [
    [b, 99],
    [c, 95],
  ]
  await end.look()
  expect(log.firstFlush).toBe(91)
  expect(end.figures).toMatchObject({ firstFlush: 91, droppedFlushes: 90, peersBehind: 0 })
})

test('a log is shortened only where that is worth a write', async () => {
  const made = makeEnd({ truncateBytesMin: 50 })
  made.marks = [[b, 49]]
  await made.end.look()
  expect(made.log.firstFlush).toBe(1)
  made.marks = [[b, 50]]
  await made.end.look()
  expect(made.log.firstFlush).toBe(51)
})

test('LOG-16: a peer that holds up too many bytes is not waited for, and one beside it is', async () => {
  const made = makeEnd({ logRetainBytes: 60 })
  const { log, end } = made
  made.marks = [
    [b, 10],
    [c, 70],
  ]
  await end.look()
  expect(log.firstFlush).toBe(71)
  expect([...end.peers()]).toEqual([
    [b, { mark: 10, isBehind: true }],
    [c, { mark: 70, isBehind: false }],
  ])
  // The size is that of the disk as it is now.
  log.flushBytes = 100
  await end.look()
  expect(log.firstFlush).toBe(91)
  expect(end.figures.peersBehind).toBe(2)
})

test('LOG-16: a peer that holds up an old flush is not waited for', async () => {
  const made = makeEnd()
  const { log, end, clock } = made
  made.marks = [[b, 50]]
  for (let minute = 0; minute <= 59; minute++) {
    clock.nowMs = minute * minuteMs
    log.durableFlush += 1
    await end.look()
  }
  expect(log.firstFlush).toBe(51)
  expect(end.figures.retainedMs).toBe(59 * minuteMs)
  clock.nowMs = 60 * minuteMs
  await end.look()
  expect(log.firstFlush).toBe(91)
  expect(end.figures.peersBehind).toBe(1)
})

test('LOG-16: after a start peers have time to tell how far they are', async () => {
  const made = makeEnd({ logRetainBytes: 60 })
  made.marks = [[b, undefined]]
  made.clock.nowMs = minuteMs - 1
  await made.end.look()
  expect(made.log.firstFlush).toBe(1)
  made.clock.nowMs = minuteMs
  await made.end.look()
  expect(made.log.firstFlush).toBe(91)
})

test('LOG-16: a peer whose data store is made anew holds up the flushes from then on', async () => {
  const made = makeEnd()
  const { log, end } = made
  made.marks = [[b, 95]]
  const sizeAfter = log.sizeAfter.bind(log)
  log.sizeAfter = (after, through) => {
    made.marks = [[b, 0]]
    return sizeAfter(after, through)
  }
  await end.look()
  expect(log.firstFlush).toBe(1)
})
