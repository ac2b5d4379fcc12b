/**
 * A transaction as a group's log carries it: physical mutations, the intent they stand for
 * (session, sequence), and the numbers to be filled in when the entry is applied.
 *
 * The bytes are made once, by the node that took the transaction; after that they are copied.
 */
import { writeCount } from '../base/bytes.ts'
import { pack, unpack, type Packable } from '../base/pack.ts'
import type { Timestamp } from '../base/ids.ts'

/** An 8-byte big-endian number, written at apply at `offset` of the key or of the value. */
export interface SequenceSlot {
  /** Index into the transaction's `allocations`. */
  readonly allocation: number
  readonly at: 'key' | 'value'
  readonly offset: number
}

const slotBytes = 8

/** One row written or, without a value, deleted. Keys are relative to the group. */
export interface Mutation {
  readonly key: Uint8Array
  readonly value?: Uint8Array | undefined
  readonly slots?: readonly SequenceSlot[] | undefined
  /** At its position no such row is there: its transaction has read that, or just drew its number. */
  readonly isNew?: true | undefined
}

export interface Transaction {
  /** (session, sequence) name the intent: it takes effect at most once, however often it is sent. */
  readonly session: string
  readonly sequence: number
  /** Names the content: a rerun of the same intent after a conflict is another attempt. */
  readonly attempt: number
  /** The session's lowest sequence that is still unsettled: outcomes below it may be forgotten. */
  readonly floor: number
  /** Log time after which the intent no longer takes effect. */
  readonly expiresAt: Timestamp
  /** The group's counters to draw a number from, in order; the numbers come back with the outcome. */
  readonly allocations: readonly number[]
  readonly mutations: readonly Mutation[]
}

/** The intent's name in tables: one session never uses a sequence twice. */
export function intentOf(transaction: {
  readonly session: string
  readonly sequence: number
}): string {
  return `${transaction.session}/${transaction.sequence}`
}

export function encodeTransaction(transaction: Transaction): Uint8Array {
  return pack([
    transaction.session,
    transaction.sequence,
    transaction.attempt,
    transaction.floor,
    transaction.expiresAt,
    transaction.allocations,
    transaction.mutations.map(packMutation),
  ])
}

function packMutation({ key, value, slots, isNew }: Mutation): Packable {
  const places = slots?.map((slot) => [slot.allocation, slot.at === 'key' ? 0 : 1, slot.offset])
  return isNew === true ? [key, value, places, true] : [key, value, places]
}

/** The transaction, or undefined when the bytes are not one. */
export function decodeTransaction(bytes: Uint8Array): Transaction | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields) || fields.length !== 7) return undefined
  const [session, sequence, attempt, floor, expiresAt, allocations, rows]: unknown[] = fields
  if (typeof session !== 'string' || !isCount(sequence) || !isCount(attempt)) return undefined
  if (!isCount(floor) || !isCount(expiresAt) || !Array.isArray(allocations)) return undefined
  if (!allocations.every(isCount) || !Array.isArray(rows)) return undefined
  const mutations: Mutation[] = []
  for (const row of rows) {
    const mutation = decodeMutation(row, allocations.length)
    if (mutation === undefined) return undefined
    mutations.push(mutation)
  }
  return { session, sequence, attempt, floor, expiresAt, allocations, mutations }
}

function decodeMutation(row: unknown, allocationCount: number): Mutation | undefined {
  if (!Array.isArray(row)) return undefined
  const [key, value, slotRows, mark]: unknown[] = row
  if (!(key instanceof Uint8Array)) return undefined
  if (isAbsent(value)) {
    const isDeletion = row.length === 3 && isAbsent(slotRows)
    return isDeletion ? { key, value: undefined, slots: undefined, isNew: undefined } : undefined
  }
  if (!(value instanceof Uint8Array)) return undefined
  const isNew = mark === true ? mark : undefined
  if (row.length !== (isNew === undefined ? 3 : 4)) return undefined
  // One shape for all: every replica makes and reads these for every row.
  if (isAbsent(slotRows)) return { key, value, slots: undefined, isNew }
  const slots = decodeSlots(slotRows, key, value, allocationCount)
  return slots && { key, value, slots, isNew }
}

function decodeSlots(
  rows: unknown,
  key: Uint8Array,
  value: Uint8Array,
  allocationCount: number,
): readonly SequenceSlot[] | undefined {
  if (!Array.isArray(rows)) return undefined
  const slots: SequenceSlot[] = []
  for (const row of rows) {
    const slot = decodeSlot(row)
    if (slot === undefined || slot.allocation >= allocationCount) return undefined
    const target = slot.at === 'key' ? key : value
    if (slot.offset + slotBytes > target.length) return undefined
    slots.push(slot)
  }
  return slots
}

function decodeSlot(row: unknown): SequenceSlot | undefined {
  if (!Array.isArray(row) || row.length !== 3) return undefined
  const [allocation, side, offset]: unknown[] = row
  if (!isCount(allocation) || !isCount(offset) || (side !== 0 && side !== 1)) return undefined
  return { allocation, at: side === 0 ? 'key' : 'value', offset }
}

/** `undefined` travels as nil. */
function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined
}

/** A whole number from 0 that a double holds exactly. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

/** The row with its numbers filled in: a copy of its key, or of its value, where there are any. */
export function fillSlots(mutation: Mutation, numbers: readonly number[]): Mutation {
  const { slots, isNew } = mutation
  if (slots === undefined || mutation.value === undefined) return mutation
  const key = filled(mutation.key, slots, 'key', numbers)
  const value = filled(mutation.value, slots, 'value', numbers)
  return { key, value, slots: undefined, isNew }
}

function filled(
  bytes: Uint8Array,
  slots: readonly SequenceSlot[],
  side: SequenceSlot['at'],
  numbers: readonly number[],
): Uint8Array {
  let copy: Buffer | undefined
  for (const { at, offset, allocation } of slots) {
    if (at !== side) continue
    copy ??= Buffer.from(bytes)
    writeCount(copy, numbers[allocation] ?? 0, offset)
  }
  return copy ?? bytes
}
