/**
 * The bytes of transactions, entries and a group's state: they come back as what was encoded, equal
 * states have equal bytes, and everything else decodes to undefined without an exception.
 */
import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { sha256 } from '../../src/base/bytes.ts'
import { nodeId } from '../../src/base/ids.ts'
import { decodeEntry, encodeEntry, type Leader } from '../../src/replication/entry.ts'
import { type RecordedOutcome } from '../../src/group/outcome.ts'
import {
  decodeState,
  emptyState,
  encodeState,
  type GroupState,
} from '../../src/replication/state.ts'
import {
  decodeTransaction,
  encodeTransaction,
  fillSlots,
  type Mutation,
  type SequenceSlot,
  type Transaction,
} from '../../src/group/transaction.ts'

const seeded = { seed: 20_110_109, numRuns: 300 }

const count = fc.maxSafeNat()
const positive = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
/** A horizon and a timestamp at or after it. */
const times = fc.tuple(count, positive).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)
const rawBytes = fc.uint8Array({ maxLength: 24 }).map((bytes) => Buffer.from(bytes))
const leader: fc.Arbitrary<Leader> = fc.record({
  node: fc.constantFrom('n1', 'n2', 'a-name-of-the-full-32-characters').map(nodeId),
  incarnation: positive,
})

function slotsOf(
  key: Uint8Array,
  value: Uint8Array,
  allocations: number,
): fc.Arbitrary<SequenceSlot[]> {
  const fits = [
    { at: 'key', last: key.length - 8 },
    { at: 'value', last: value.length - 8 },
  ] as const
  const sides = fits
    .filter(({ last }) => last >= 0 && allocations > 0)
    .map(({ at, last }) =>
      fc.record({
        allocation: fc.nat(allocations - 1),
        at: fc.constant(at),
        offset: fc.nat(last),
      }),
    )
  return sides.length === 0 ? fc.constant([]) : fc.array(fc.oneof(...sides), { maxLength: 3 })
}

function mutationOf(allocations: number): fc.Arbitrary<Mutation> {
  const isNew = fc.constant(true as const)
  const written = fc.record(
    { key: rawBytes, value: rawBytes, isNew },
    { requiredKeys: ['key', 'value'] },
  )
  return fc.oneof(
    fc.record({ key: rawBytes }),
    written,
    written.chain((row) =>
      slotsOf(row.key, row.value, allocations).map((slots) => ({ ...row, slots })),
    ),
  )
}

const transaction: fc.Arbitrary<Transaction> = fc
  .array(count, { maxLength: 3 })
  .chain((allocations) =>
    fc.record({
      session: fc.string({ unit: 'binary', maxLength: 40 }),
      sequence: count,
      attempt: count,
      floor: count,
      expiresAt: count,
      allocations: fc.constant(allocations),
      mutations: fc.array(mutationOf(allocations.length), { maxLength: 4 }),
    }),
  )

const outcome: fc.Arbitrary<RecordedOutcome> = fc.oneof(
  fc.constant({ kind: 'expired' } as const),
  fc.record({
    kind: fc.constant('committed' as const),
    position: count,
    timestamp: count,
    attempt: count,
    sequences: fc.array(count, { maxLength: 3 }),
  }),
)
const session = fc.record({
  floor: count,
  expiresAt: count,
  outcomes: fc.uniqueArray(fc.tuple(count, outcome), {
    maxLength: 4,
    selector: ([first]) => first,
  }),
})
const counters = fc.uniqueArray(fc.tuple(count, count), { maxLength: 4, selector: ([id]) => id })
const sessions = fc.uniqueArray(fc.tuple(fc.string({ unit: 'binary', maxLength: 12 }), session), {
  maxLength: 4,
  selector: ([id]) => id,
})
const movedTo = fc.option(fc.constantFrom('west', 'a-1'), { nil: undefined })
const appliedState: fc.Arbitrary<GroupState> = fc
  .record({ position: positive, times, nextLeader: leader, movedTo, counters, sessions })
  .map(({ times: [horizon, timestamp], ...rest }) => stateOf({ ...rest, timestamp, horizon }))

function stateOf(parts: {
  readonly position: number
  readonly timestamp: number
  readonly horizon: number
  readonly nextLeader: Leader
  readonly movedTo: string | undefined
  readonly counters: readonly (readonly [number, number])[]
  readonly sessions: readonly (readonly [
    string,
    {
      readonly floor: number
      readonly expiresAt: number
      readonly outcomes: readonly (readonly [number, RecordedOutcome])[]
    },
  ])[]
}): GroupState {
  return {
    ...parts,
    counters: new Map(parts.counters),
    sessions: new Map(
      parts.sessions.map(([id, one]) => [id, { ...one, outcomes: new Map(one.outcomes) }]),
    ),
  }
}

/** The same state, put together in the opposite order. */
function inReverse(state: GroupState): GroupState {
  const turned = [...state.sessions].map(
    ([id, one]) => [id, { ...one, outcomes: new Map([...one.outcomes].toReversed()) }] as const,
  )
  return {
    ...state,
    counters: new Map([...state.counters].toReversed()),
    sessions: new Map(turned.toReversed()),
  }
}

const decoders = { decodeTransaction, decodeEntry, decodeState }

test('codec: a transaction comes back as it was', () => {
  fc.assert(
    fc.property(transaction, (one) => {
      expect(decodeTransaction(encodeTransaction(one))).toEqual(one)
    }),
    seeded,
  )
})

test('codec: an entry comes back with its transactions in their order', () => {
  const parts = fc
    .record({ position: positive, times, nextLeader: leader })
    .map(({ times: [horizon, timestamp], ...rest }) => ({ ...rest, timestamp, horizon }))
  fc.assert(
    fc.property(parts, fc.array(transaction, { maxLength: 3 }), (head, transactions) => {
      const bytes = encodeEntry({ ...head, transactions: transactions.map(encodeTransaction) })
      expect(decodeEntry(bytes)).toEqual({ ...head, transactions })
    }),
    seeded,
  )
})

test('codec: a state comes back as it was, the empty one too', () => {
  expect(decodeState(encodeState(emptyState()))).toEqual(emptyState())
  fc.assert(
    fc.property(appliedState, (state) => {
      expect(decodeState(encodeState(state))).toEqual(state)
    }),
    seeded,
  )
})

test('LOG-2: equal states have equal bytes, whatever order they were made in', () => {
  fc.assert(
    fc.property(appliedState, (state) => {
      const bytes = Buffer.from(encodeState(state))
      expect(bytes.equals(encodeState(inReverse(state)))).toBe(true)
      const back = decodeState(bytes)
      expect(back !== undefined && bytes.equals(encodeState(back))).toBe(true)
    }),
    seeded,
  )
})

test('LOG-2: encoding what was decoded makes the bytes again', () => {
  fc.assert(
    fc.property(transaction, (one) => {
      const bytes = Buffer.from(encodeTransaction(one))
      const back = decodeTransaction(bytes)
      expect(back !== undefined && bytes.equals(encodeTransaction(back))).toBe(true)
    }),
    seeded,
  )
})

test('codec: random bytes are nothing of the kind', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      for (const decode of Object.values(decoders)) expect(decode(bytes)).toBeUndefined()
    }),
    { ...seeded, numRuns: 3000 },
  )
})

test('codec: a cut or a flipped bit yields undefined or another whole value, no exception', () => {
  const someBytes = fc.oneof(
    transaction.map(encodeTransaction),
    appliedState.map(encodeState),
    fc.tuple(transaction, leader, positive).map(([one, nextLeader, position]) => {
      const transactions = [encodeTransaction(one)]
      const horizon = 0
      return encodeEntry({ position, timestamp: position, horizon, nextLeader, transactions })
    }),
  )
  fc.assert(
    fc.property(someBytes, fc.nat(), fc.nat(7), (bytes, at, bit) => {
      const index = at % bytes.length
      const flipped = Uint8Array.from(bytes)
      flipped[index] = (flipped[index] ?? 0) ^ (1 << bit)
      for (const decode of Object.values(decoders)) {
        expect(decode(bytes.subarray(0, index))).toBeUndefined()
        expect(() => decode(flipped)).not.toThrow()
      }
    }),
    { ...seeded, numRuns: 1000 },
  )
})

test('codec: what one encoding leaves behind when it fails is not in the next', () => {
  const good = { ...emptyState(), position: 1, nextLeader: { node: nodeId('n1'), incarnation: 1 } }
  const before = encodeState(good)
  expect(() => encodeState({ ...good, timestamp: -1 })).toThrow('safe integer')
  expect(encodeState(good)).toEqual(before)
})

test('codec: a large value is written whole, and the next one after it', () => {
  const large: Mutation = { key: Buffer.from('k'), value: Buffer.alloc(3_000_000, 7) }
  const row = { slots: undefined, isNew: undefined }
  for (const mutations of [[{ ...large, ...row }], []]) {
    const one = { session: 'é', sequence: 1, attempt: 1, floor: 0, expiresAt: 9, allocations: [] }
    const back = decodeTransaction(encodeTransaction({ ...one, mutations }))
    // Byte by byte, `toEqual` takes seconds.
    const hashed = (all: readonly Mutation[] | undefined): unknown =>
      all?.map(({ value, ...rest }) => ({ ...rest, value: value && sha256(value) }))
    expect({ ...back, mutations: hashed(back?.mutations) }).toEqual({
      ...one,
      mutations: hashed(mutations),
    })
  }
})

test('codec: drawn numbers are written at their slots and nowhere else', () => {
  const mutation: Mutation = {
    key: Buffer.alloc(10, 0xaa),
    value: Buffer.alloc(9, 0xbb),
    slots: [
      { allocation: 1, at: 'key', offset: 2 },
      { allocation: 0, at: 'value', offset: 0 },
    ],
  }
  const filled = fillSlots(mutation, [258, Number.MAX_SAFE_INTEGER])
  expect(Buffer.from(filled.key).toString('hex')).toBe('aaaa001fffffffffffff')
  expect(Buffer.from(filled.value ?? []).toString('hex')).toBe('0000000000000102bb')
  expect(filled.slots).toBeUndefined()
  expect(mutation.key.every((byte) => byte === 0xaa)).toBe(true)
})
