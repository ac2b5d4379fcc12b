/**
 * A transaction as a group's log carries it: physical mutations, the intent they stand for
 * (session, sequence), and the numbers to be filled in when the entry is applied.
 *
 * The bytes are made once, by the node that took the transaction; after that they are copied.
 */
import { readAll, type ByteReader } from '../base/byte-reader.ts'
import { ByteWriter } from '../base/byte-writer.ts'
import { writeCount } from '../base/bytes.ts'
import type { Timestamp } from '../base/ids.ts'

/** An 8-byte big-endian number, written at apply at `offset` of the key or of the value. */
export interface SequenceSlot {
  /** Index into the transaction's `allocations`. */
  readonly allocation: number
  readonly at: 'key' | 'value'
  readonly offset: number
}

const slotBytes = 8
const transactionFormat = 1
/** The members that a mutation is said to have. */
const has = { value: 1, isNew: 2, slots: 4, all: 7 } as const
const mutationBytesMin = 2
const slotBytesMin = 3

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
export function formatIntent(transaction: {
  readonly session: string
  readonly sequence: number
}): string {
  return `${transaction.session}/${transaction.sequence}`
}

const writer = new ByteWriter()

/**
 * format 1 · sequence, attempt, floor · expiry 8 · session · allocations: how many, each · mutations: how
 * many, each: flags 1 · length of the key · of the value · slots: how many, each: allocation,
 * side 1, offset · key · value. Numbers without a length are counts (`ByteWriter`).
 */
export function encodeTransaction(transaction: Transaction): Uint8Array {
  const { allocations, mutations } = transaction
  writer.begin(transactionFormat)
  writer.count(transaction.sequence)
  writer.count(transaction.attempt)
  writer.count(transaction.floor)
  writer.wide(transaction.expiresAt)
  writer.text(transaction.session)
  writer.count(allocations.length)
  for (const counter of allocations) writer.count(counter)
  writer.count(mutations.length)
  for (const mutation of mutations) writeMutation(mutation)
  return writer.take()
}

function writeMutation({ key, value, slots, isNew }: Mutation): void {
  const mark = value === undefined ? 0 : has.value
  writer.uint8(mark | (isNew === true ? has.isNew : 0) | (slots === undefined ? 0 : has.slots))
  writer.count(key.length)
  if (value !== undefined) writer.count(value.length)
  if (slots !== undefined) {
    writer.count(slots.length)
    for (const { allocation, at, offset } of slots) {
      writer.count(allocation)
      writer.uint8(at === 'key' ? 0 : 1)
      writer.count(offset)
    }
  }
  writer.bytes(key)
  if (value !== undefined) writer.bytes(value)
}

/** The transaction, or undefined when the bytes are not one. Keys and values are views. */
export function decodeTransaction(bytes: Uint8Array): Transaction | undefined {
  return readAll(bytes, readTransaction)
}

function readTransaction(reader: ByteReader): Transaction {
  if (reader.uint8() !== transactionFormat) reader.refuse()
  const sequence = reader.count()
  const attempt = reader.count()
  const floor = reader.count()
  const expiresAt = reader.wide()
  const session = reader.text()
  const allocations: number[] = []
  for (let left = reader.length(1); left > 0; left--) allocations.push(reader.count())
  const mutations: Mutation[] = []
  for (let left = reader.length(mutationBytesMin); left > 0; left--) {
    mutations.push(readMutation(reader, allocations.length))
  }
  return { session, sequence, attempt, floor, expiresAt, allocations, mutations }
}

/** One shape for all: every replica makes and reads these for every row. */
function readMutation(reader: ByteReader, allocationCount: number): Mutation {
  const marks = reader.uint8()
  const keyBytes = reader.count()
  if (marks === 0) {
    return { key: reader.bytes(keyBytes), value: undefined, slots: undefined, isNew: undefined }
  }
  if ((marks & has.value) === 0 || marks > has.all) reader.refuse()
  const valueBytes = reader.count()
  const isNew = (marks & has.isNew) === 0 ? undefined : true
  const slots = (marks & has.slots) === 0 ? undefined : readSlots(reader, allocationCount)
  for (const { at, offset } of slots ?? []) {
    if (offset + slotBytes > (at === 'key' ? keyBytes : valueBytes)) reader.refuse()
  }
  return { key: reader.bytes(keyBytes), value: reader.bytes(valueBytes), slots, isNew }
}

function readSlots(reader: ByteReader, allocationCount: number): readonly SequenceSlot[] {
  const slots: SequenceSlot[] = []
  for (let left = reader.length(slotBytesMin); left > 0; left--) {
    const allocation = reader.count()
    const side = reader.uint8()
    const offset = reader.count()
    if (allocation >= allocationCount || side > 1) reader.refuse()
    slots.push({ allocation, at: side === 0 ? 'key' : 'value', offset })
  }
  return slots
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
