/** Taking a change of the voters on, by transactions in the set's own group. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import type { Outcome, Submission } from '../../src/group/replica-port.ts'
import {
  beginEpoch,
  beginRenew,
  beginReplace,
  bindStore,
  firstRow,
  giveUp,
  type SetRow,
} from '../../src/members/change.ts'
import { Mover, type MoverParts } from '../../src/members/mover.ts'
import { decodeRow } from '../../src/members/row-codec.ts'
import { setRowKey } from '../../src/members/set-group.ts'
import { laterSetsKey } from '../../src/members/later-sets-row.ts'
import { sharesKey } from '../../src/members/shares-row.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { groupNamed, n1, n2, RecordedTrace, storeOf } from './epochs-kit.ts'

const group = groupNamed('voters')
const [store, other] = [storeOf(n2, 2), storeOf(n2, 3)]
const copying = beginReplace(firstRow, n2, 4_100, 5)
const bound = bindStore(copying, store)
const sealing = beginEpoch(bound, [n1, n2], 6)

/** A set's own group, in which transactions commit unless the test says otherwise. */
class Moving {
  readonly trace = new RecordedTrace()
  readonly submitted: Submission[] = []
  readonly failures: unknown[] = []
  readonly asked: (readonly [node: string, seat: number])[] = []
  row: SetRow
  position = 10
  /** How often the row was read from a majority. */
  reads = 0
  /** The next outcomes, before each of which another node may have written. */
  outcomes: (() => Outcome)[] = []
  newcomer: ReturnType<MoverParts['newcomer']>
  isVoting = false
  isFirst = true
  fails: Error | undefined
  readonly mover: Mover

  constructor(row: SetRow) {
    this.row = row
    this.mover = new Mover({
      ...{ node: n1, group, run: 'run-1', clock: new HandClock(), trace: this.trace },
      row: () => this.row,
      lastRow: () => this.row,
      readCurrent: () => {
        this.reads += 1
        return this.fails === undefined
          ? Promise.resolve({ position: this.position, timestamp: 1 })
          : Promise.reject(this.fails)
      },
      submit: (submission) => Promise.resolve(this.#submit(submission)),
      stamp: () => 77,
      isFirst: () => this.isFirst,
      votersOf: () => [n1, n2],
      newcomer: (...of) => {
        this.asked.push(of)
        return this.newcomer
      },
      isVoting: () => this.isVoting,
      onFailed: (error) => this.failures.push(error),
    })
  }

  #submit(submission: Submission): Outcome {
    this.submitted.push(submission)
    const outcome = this.outcomes.shift()?.() ?? this.commit()
    if (outcome.kind !== 'committed') return outcome
    const { value } = submission.mutations.at(0) ?? {}
    this.row = (value && decodeRow(value)) ?? this.row
    return outcome
  }

  commit(): Outcome {
    this.position += 1
    return { kind: 'committed', position: this.position, timestamp: 77, attempt: 1, sequences: [] }
  }

  /** Another node was faster, and the row is this one since. */
  conflict(row: SetRow): Outcome {
    this.row = row
    this.position += 1
    return { kind: 'conflict', position: this.position }
  }

  /** Goes on once, and waits for what that comes to. */
  async go(): Promise<void> {
    this.mover.go()
    await new Promise((resolve) => setImmediate(resolve))
  }
}

test('MOVE-6: the store that comes to the seat is bound to it, before it holds anything', async () => {
  const moving = new Moving(copying)
  await moving.go()
  expect([moving.asked, moving.submitted]).toEqual([[[n2, 4_100]], []])
  moving.newcomer = { store, isRestored: false }
  await moving.go()
  expect(moving.row).toEqual(bound)
  expect(moving.trace.marks).toEqual(['change_copying'])
})

test('MOVE-6: the epoch begins once the bound store holds what the others do', async () => {
  const moving = new Moving(bound)
  for (const newcomer of [
    undefined,
    { store, isRestored: false },
    { store: other, isRestored: true },
  ]) {
    moving.newcomer = newcomer
    await moving.go()
  }
  expect(moving.submitted).toEqual([])
  moving.newcomer = { store, isRestored: true }
  await moving.go()
  expect(moving.row).toEqual(beginEpoch(bound, [n1, n2], 77))
  expect(moving.trace.marks).toEqual(['change_sealing'])
})

test('MOVE-6: a store that came restored is bound first, and begins its epoch by another entry', async () => {
  const moving = new Moving(copying)
  moving.newcomer = { store, isRestored: true }
  await moving.go()
  expect([moving.row.epoch, moving.row.change?.phase]).toEqual([1, 'copying'])
  await moving.go()
  expect([moving.row.epoch, moving.row.change?.phase]).toEqual([2, 'sealing'])
})

test.each([
  ['a replacement', sealing],
  ['a renewal', beginRenew(firstRow, 5)],
])('MOVE-6: %s ends when this node votes in its epoch, and not before', async (_, row) => {
  const moving = new Moving(row)
  await moving.go()
  expect([moving.submitted, moving.mover.isBusy]).toEqual([[], true])
  moving.isVoting = true
  await moving.go()
  expect([moving.row.change?.phase, moving.mover.isBusy]).toEqual(['done', false])
  await moving.go()
  expect(moving.submitted).toHaveLength(1)
})

test('one node alone goes on with a change, and none without one', async () => {
  const moving = new Moving(sealing)
  moving.isVoting = true
  moving.isFirst = false
  await moving.go()
  const idle = [firstRow, giveUp(copying, 6)].map((row) => new Moving(row))
  for (const one of idle) await one.go()
  expect([moving, ...idle].map(({ submitted }) => submitted.length)).toEqual([0, 0, 0])
})

test('a transaction of a change reads all rows of the set and writes that of the voters, and each has its own intent', async () => {
  const moving = new Moving(bound)
  moving.newcomer = { store, isRestored: true }
  moving.isVoting = true
  await moving.go()
  await moving.go()
  const [first, second] = moving.submitted
  expect(first).toMatchObject({
    ...{
      group,
      readPosition: 10,
      reads: [setRowKey, sharesKey, laterSetsKey],
      ranges: [],
      allocations: [],
    },
    intent: { session: 'run-1', sequence: 1, floor: 1, expiresAt: 60_000_077 },
  })
  expect(first?.mutations.map(({ key }) => key)).toEqual([setRowKey])
  expect(second).toMatchObject({ readPosition: 11, intent: { sequence: 2, floor: 2 } })
})

test('MOVE-6: a conflict is tried again on the row as it is then', async () => {
  const moving = new Moving(firstRow)
  // Another node had a change done meanwhile.
  const row: SetRow = {
    ...firstRow,
    epoch: 4,
    change: {
      ...giveUp(copying, 6).change,
      ...{ number: 8, kind: 'renew', phase: 'done', sinceMicros: 6 },
    },
  }
  moving.outcomes = [() => moving.conflict(row)]
  const made = await moving.mover.request((before, now) => beginRenew(before, now))
  expect(made).toMatchObject({ epoch: 5, change: { number: 9, phase: 'sealing' } })
  expect(moving.submitted.map(({ readPosition }) => readPosition)).toEqual([10, 11])
})

test('MOVE-6: a request that finds another change under way is refused in words, and nothing is written', async () => {
  const moving = new Moving(firstRow)
  moving.outcomes = [() => moving.conflict(copying)]
  const request = moving.mover.request((row, now) => beginRenew(row, now))
  await expect(request).rejects.toMatchObject({ code: 'invalid' })
  expect(moving.submitted).toHaveLength(1)
})

test('a request with nothing to do gives the row as it is, and writes nothing', async () => {
  const moving = new Moving(copying)
  expect(await moving.mover.request(() => undefined)).toBe(copying)
  expect(moving.submitted).toEqual([])
})

test('a change that loses each of its tries ends as unavailable', async () => {
  const moving = new Moving(firstRow)
  moving.outcomes = Array.from({ length: 20 }, () => () => moving.conflict(firstRow))
  const request = moving.mover.request((row, now) => beginRenew(row, now))
  await expect(request).rejects.toMatchObject({ code: 'unavailable' })
  expect(moving.submitted).toHaveLength(8)
})

test.each<Outcome>([{ kind: 'unknown' }, { kind: 'overloaded' }])(
  'a request whose outcome is $kind ends in words, and is not sent again',
  async (outcome) => {
    const moving = new Moving(firstRow)
    moving.outcomes = [() => outcome]
    const request = moving.mover.request((row, now) => beginRenew(row, now))
    await expect(request).rejects.toMatchObject({
      ...{ code: 'unavailable' },
      message: expect.stringMatching(/^No majority .* look at it again\.$/),
    })
    expect(moving.submitted).toHaveLength(1)
  },
)

test('a change waits out refusals, and its owner hears of bugs alone', async () => {
  const moving = new Moving(sealing)
  moving.isVoting = true
  moving.outcomes = [() => ({ kind: 'unknown' })]
  await moving.go()
  moving.fails = new StoreError('unavailable', 'no majority')
  await moving.go()
  expect([moving.failures, moving.row]).toEqual([[], sealing])
  const bug = new Error('a bug')
  moving.fails = bug
  await moving.go()
  expect(moving.failures).toEqual([bug])
  moving.fails = undefined
  await moving.go()
  expect(moving.row.change?.phase).toBe('done')
})

test('a step of a change that is under way is not begun again', async () => {
  const moving = new Moving(sealing)
  moving.isVoting = true
  moving.mover.go()
  moving.mover.go()
  await moving.go()
  expect([moving.reads, moving.submitted.length]).toEqual([1, 1])
})
