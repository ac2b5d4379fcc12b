/** The pace at which a node counts the rows of its groups. */
import { expect, test } from 'vitest'
import { setImmediate } from 'node:timers/promises'
import type { ReadPart } from '../../src/store/group-snapshot.ts'
import { CountPace, recount, type CountedSnapshot } from '../../src/store/recount.ts'
import { HandClock } from '../ports/hand-clock.ts'

const limits = { scrubBytesPerSecond: 1_024 * 1_024, snapshotPartBytesMax: 64 * 1_024 }

/** A sound group of that many parts, each with one row of that many bytes. */
class Parts implements CountedSnapshot {
  isClosed = false
  #left: number
  readonly #bytes: number

  constructor(count: number, bytes: number) {
    this.#left = count
    this.#bytes = bytes
  }

  next(): Promise<ReadPart> {
    this.#left -= 1
    const row = { subspace: 0, key: new Uint8Array(0), stamp: 1, payload: this.#payload() }
    const crc = this.#left === 0 ? 7 : undefined
    return Promise.resolve({ rows: [row], state: new Uint8Array(0), crc })
  }

  #payload(): Uint8Array {
    return new Uint8Array(this.#bytes)
  }

  close(): Promise<void> {
    this.isClosed = true
    return Promise.resolve()
  }
}

test('LIVE-6: a count of many small groups rests between them, at the pace of all together', async () => {
  const clock = new HandClock()
  const pace = new CountPace(clock, limits)
  const counted: string[] = []
  const count = async (): Promise<void> => {
    while (counted.length < 100) {
      const group = new Parts(1, 100)
      counted.push(await recount(() => group, limits.snapshotPartBytesMax, pace))
    }
  }
  const counting = count()
  const rests: number[] = []
  for (let rest = 0; rest < 7; rest++) {
    await setImmediate()
    rests.push(counted.length)
    clock.pass(70)
  }
  await counting
  // Each look at a group counts for 4 KiB.
  expect(rests).toEqual([15, 31, 47, 63, 79, 95, 100])
})

test('a count of one large group rests after each part, and lets go of its snapshot', async () => {
  const clock = new HandClock()
  const snapshot = new Parts(3, limits.snapshotPartBytesMax)
  const verdicts: string[] = []
  const pace = new CountPace(clock, limits)
  void recount(() => snapshot, 1, pace).then((verdict) => verdicts.push(verdict))
  for (const isOver of [false, false, false, true]) {
    await setImmediate()
    expect([verdicts, snapshot.isClosed]).toEqual([isOver ? ['sound'] : [], isOver])
    clock.pass(100)
  }
})

test('a group that has no snapshot now is neither sound nor damaged', async () => {
  const pace = new CountPace(new HandClock(), limits)
  expect(await recount(() => undefined, 1, pace)).toBe('unknown')
})
