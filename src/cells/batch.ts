/**
 * A batch in parts, each for one service or node, and the answers of the parts as one answer. Pure. Each item
 * of the batch has one outcome, also where a node answers too few items, or too many.
 */
import { assert, unreachable } from '../base/assert.ts'
import { problem, type Outcome } from '../base/problem.ts'
import type { ShardLeader, StoredCell, Written } from './cell.ts'
import type { Answer, Answered, GetCells, GetLog, PutCells, StoredLogPage } from './operation.ts'
import { fittingPages } from './shard-log.ts'
import { fitting } from './shard-read.ts'

export type Batch = PutCells | GetCells | GetLog

/** Items of a batch that go to one place together. */
export interface Part<To> {
  readonly to: To
  /** Of the items, by their places in the batch; ascending. */
  readonly places: readonly number[]
}

interface OpenPart<To> extends Part<To> {
  readonly places: number[]
  bytes: number
}

/** How much one part may hold; an item that alone weighs more is a part of its own. */
export interface PartLimit<Item> {
  readonly sizeInBytes: (item: Item) => number
  readonly bytesMax: number
}

const unlimited: PartLimit<unknown> = { sizeInBytes: () => 0, bytesMax: 0 }

/**
 * The parts in the order of their first items. `pickTarget` says where an item goes; undefined: the item is in no
 * part.
 */
export function splitBatch<Item, To>(
  items: readonly Item[],
  pickTarget: (item: Item, place: number) => To | undefined,
  { sizeInBytes, bytesMax }: PartLimit<Item> = unlimited,
): readonly Part<To>[] {
  const parts: OpenPart<To>[] = []
  const open = new Map<To, OpenPart<To>>()
  for (const [place, item] of items.entries()) {
    const to = pickTarget(item, place)
    if (to === undefined) continue
    const bytes = sizeInBytes(item)
    let part = open.get(to)
    if (part === undefined || part.bytes + bytes > bytesMax) {
      part = { to, places: [], bytes: 0 }
      open.set(to, part)
      parts.push(part)
    }
    part.places.push(place)
    part.bytes += bytes
  }
  return parts
}

/** The values at these places. */
export function pick<Value>(values: readonly Value[], places: readonly number[]): Value[] {
  return places.flatMap((place) => {
    const value = values[place]
    return value === undefined ? [] : [value]
  })
}

/** The batch of a part. */
export function batchOfPart<Of extends { readonly items: readonly unknown[] }>(
  batch: Of,
  { places }: Part<unknown>,
): Of {
  return { ...batch, items: pick(batch.items, places) }
}

/**
 * The answers of the parts, in the order of the batch; a cell for which one answer has no room is
 * `too-large`.
 */
export function mergeAnswers(
  kind: Batch['kind'],
  parts: readonly Part<unknown>[],
  answers: readonly Answered[],
): Answered {
  assert(parts.length === answers.length, 'cells: each part of a batch has one answer')
  const positions = answers.flatMap((answered) => answered.positions)
  const leaders: readonly ShardLeader[] = answers.flatMap((answered) => answered.leaders ?? [])
  const answer = mergedAnswer(kind, parts, answers)
  return leaders.length === 0 ? { answer, positions } : { answer, positions, leaders }
}

function mergedAnswer(
  kind: Batch['kind'],
  parts: readonly Part<unknown>[],
  answers: readonly Answered[],
): Answer {
  switch (kind) {
    case 'put':
      return { kind, items: inOrder(parts, answers, putItems) }
    case 'get':
      return { kind, items: fitting(inOrder(parts, answers, getItems)) }
    case 'log':
      return { kind, items: fittingPages(inOrder(parts, answers, logItems)) }
    default:
      return unreachable(kind)
  }
}

function inOrder<Value>(
  parts: readonly Part<unknown>[],
  answers: readonly Answered[],
  readItems: ItemsOf<Value>,
): Outcome<Value>[] {
  const items: Outcome<Value>[] = []
  for (const [nth, { answer }] of answers.entries()) {
    const places = parts[nth]?.places ?? []
    const outcomes = readOutcomes(answer, readItems, places.length)
    for (const [i, place] of places.entries()) items[place] = outcomes[i] ?? missingItem
  }
  return items
}

/** The outcomes of an answer to one kind of batch; undefined for any other answer. */
type ItemsOf<Value> = (answer: Answer) => readonly Outcome<Value>[] | undefined

export const putItems: ItemsOf<Written> = (answer) =>
  answer.kind === 'put' ? answer.items : undefined
export const getItems: ItemsOf<StoredCell | undefined> = (answer) =>
  answer.kind === 'get' ? answer.items : undefined
export const logItems: ItemsOf<StoredLogPage> = (answer) =>
  answer.kind === 'log' ? answer.items : undefined

/** Exactly `count` outcomes: a problem of the whole is one of each item, and so is an item that is missing. */
export function readOutcomes<Value>(
  answer: Answer,
  readItems: ItemsOf<Value>,
  count: number,
): Outcome<Value>[] {
  const items = readItems(answer) ?? []
  const instead = answer.kind === 'problem' ? answer : missingItem
  return Array.from({ length: count }, (_, nth) => items[nth] ?? instead)
}

/** The outcomes of all items: of those refused before they were sent, and of the others, in their order. */
export function withRefused<Value>(
  refused: readonly (Outcome<Value> | undefined)[],
  answered: readonly Outcome<Value>[],
): Outcome<Value>[] {
  const rest = answered.values()
  return refused.map((one) => one ?? rest.next().value ?? missingItem)
}

/** The outcome of an item that the answer lacks. */
export const missingItem: Outcome<never> = {
  kind: 'problem',
  problem: problem('corrupt', 'the node answered fewer items than it was asked for'),
}
