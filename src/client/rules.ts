/**
 * The options that the client's calls take beside their arguments, and the forms of cells and of places in a
 * log.
 */
import {
  callback,
  checkArgument,
  checkList,
  checkOptions,
  givenMembers,
  readGiven,
  flag,
  listOf,
  number,
  oneOf,
  readMembers,
  text,
  wholeFrom,
  wrongArgument,
  type Rule,
  type Rules,
} from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { microsOfGiven, otherUnitOf, storeTime } from '../base/given-time.ts'
import { batchItemsMax } from '../base/limits.ts'
import { toStoreError } from '../base/problem.ts'
import { readElements, hiddenIn, isList, isReadable } from '../base/readable.ts'
import { unknownWord } from '../base/suggest.ts'
import { wordsFor } from '../base/words.ts'
import { nameProblem } from '../cells/cell.ts'
import { batchProblem, placeProblem, type BatchLimit } from '../cells/operation-check.ts'
import type { GetItem, LogPlace } from '../cells/operation.ts'
import { shardCountMax } from '../cells/datastore-form.ts'
import { isShard } from '../cells/shard.ts'
import type { Submission } from '../group/replica-port.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { typed } from '../tables/types.ts'
import { timeoutRule } from '../txn/intents.ts'
import { stalenessRule } from '../txn/staleness.ts'
import { signalRule } from '../txn/signalled.ts'
import type {
  BuildOptions,
  CellBuildOptions,
  GivenPlace,
  IndexQueryOptions,
  LogOptions,
  PageOptions,
  PurgeOptions,
  PurgePageOptions,
  PurgeShardsOptions,
  ReadOptions,
  ShardLogOptions,
  TailOptions,
  VersionOptions,
  WriteOptions,
} from './options.ts'

const time: Rule = {
  accepts: (value) => microsOfGiven(value) !== undefined,
  words: 'a Date, or microseconds since 1970',
}
const shards: Rule = {
  accepts: (value) => isList(value) && readElements(value, shardCountMax)?.every(isShard) === true,
  words: `a list of shards, numbered from 0 to ${shardCountMax - 1}`,
}
const someShards: Rule = {
  accepts: (value) => shards.accepts(value) && Array.isArray(value) && value.length > 0,
  words: `${shards.words}, one at least`,
}
const texts = listOf(text, batchItemsMax)
const columns: Rule = {
  accepts: (value) => value === 'all' || texts.accepts(value),
  words: "a list of columns, or 'all'",
}
const places: Rule = {
  accepts: (value) =>
    value instanceof Map &&
    value.size <= shardCountMax &&
    [...value].every(([shard, id]) => isShard(shard) && wholeFrom(0).accepts(id)),
  words: `a Map of shards from 0 to ${shardCountMax - 1}, each with an added id: a whole number from 0`,
}

export const writeRules: Rules<WriteOptions> = { timeoutMs: timeoutRule, signal: signalRule }
const replicaRules = { ...writeRules, read: oneOf('current', 'snapshot') }
export const readRules: Rules<ReadOptions> = { ...replicaRules, maxStalenessMs: stalenessRule }
const page = { ...readRules, limit: number }
export const columnPageRules: Rules<PageOptions<string>> = { ...page, cursor: text }
export const versionRules: Rules<VersionOptions> = { ...page, cursor: number, reverse: flag }
export const logRules: Rules<LogOptions> = { ...page, waitMs: number }
export const shardLogRules: Rules<ShardLogOptions> = { ...logRules, after: number, since: time }
export const purgeRules: Rules<PurgeOptions> = {
  ...writeRules,
  before: time,
  column: text,
  keepLatest: flag,
}
export const purgePageRules: Rules<PurgePageOptions> = {
  ...purgeRules,
  after: number,
  limit: number,
}
export const purgeShardsRules: Rules<PurgeShardsOptions> = { ...purgeRules, shards: someShards }
export const tailRules: Rules<TailOptions> = {
  ...{ shards: someShards, after: places, since: time, waitMs: number },
  signal: signalRule,
}
export const queryRules: Rules<IndexQueryOptions> = {
  ...replicaRules,
  limit: number,
  select: texts,
  columns,
  order: text,
  reverse: flag,
  cursor: text,
  verify: flag,
}
export const buildRules: Rules<BuildOptions> = {
  graceMs: {
    accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
    words: 'milliseconds from 0',
  },
  onProgress: callback,
  signal: signalRule,
  rowsAtOnce: wholeFrom(1, upkeepBounds.rowsAtOnceMax),
}
export const cellBuildRules: Rules<CellBuildOptions> = { ...buildRules, shards: someShards }
const filledText: Rule = {
  accepts: (value) => typeof value === 'string' && value.length > 0,
  words: 'a string that is not empty',
}
/** Taken for microseconds, seconds or milliseconds would be a moment of 1970: every intent would have expired. */
const micros: Rule = {
  accepts: (value) => typeof value === 'number' && otherUnitOf(value) === undefined,
  words: 'microseconds since 1970, as error.detail.intent has them',
}
/** As `error.detail.intent` names it, or as a transaction was given it. */
export const intentRules: Rules<Submission['intent']> = {
  ...{ session: filledText, sequence: number, expiresAt: micros, floor: number },
}

/** The name and the options of a call that looks after one index; `call` is 'indexes.build'. */
export function checkUpkeep<Options>(
  call: string,
  name: unknown,
  options: Options,
  rules: Rules<Options>,
): void {
  checkText(call, 'the name of an index', name)
  checkOptions(call, options, rules)
}

/** The name of a schema or a group. */
export function checkText(call: string, name: string, value: unknown): void {
  checkArgument(call, name, value, text)
}

/**
 * The items of a batch, a copy of its list, in which a hole is undefined. They are counted before one of them is
 * looked at: throws `too-large` when there are more than the limit.
 */
export function checkBatch<Item>(
  call: string,
  name: string,
  given: readonly Item[],
  limit: BatchLimit,
): readonly Item[] {
  const list: unknown = given
  if (!isList(list)) throw wrongArgument(call, name, list, 'a list')
  const items = readGiven(`${call}: ${name}`, () => readElements(given, limit.limitValue))
  if (items !== undefined) {
    checkList(`${call}: ${name}`, list)
    return items
  }
  const { length } = given
  const tooMany = length > limit.limitValue && batchProblem(length, limit)
  throw tooMany
    ? toStoreError(tooMany)
    : wrongArgument(call, 'the length of the list', length, aLength)
}
const aLength = 'a whole number from 0'

const ofCells = ['rowKey', 'column', 'refKey', 'body']
/**
 * The members that cells have besides, once they were read, tailed, marked or rejected: a program that got
 * such a cell may read it or put it, as it is.
 */
const ofReadCells: ReadonlySet<string> = new Set([
  ...[...ofCells, 'addedId', 'createdAt', 'shard', 'attempts', 'error', 'isRetried'],
  ...['datastore', 'bufferedAt', 'reason'],
])

/**
 * A cell to be asked for or to be put, a copy of which each member was read once; `refKey`: whether it has to have one.
 * Throws `invalid`, also for a name that is not known: `refkey` would else ask for the latest cell.
 */
export function readCell<Given extends GetItem>(cell: Given, refKey: 'needed' | 'optional'): Given {
  const given: unknown = cell
  if (typeof given !== 'object' || given === null || !isReadable(given) || Array.isArray(given)) {
    const words = 'an object of rowKey, column and refKey'
    throw new StoreError('invalid', `a cell is ${wordsFor(given)}; expected ${words}`)
  }
  const copy = readGiven('a cell', () => checkCellMembers(given))
  for (const name of ['rowKey', 'column', 'refKey']) {
    if (name === 'refKey' && refKey === 'optional') continue
    if (copy[name] === undefined) {
      throw new StoreError('invalid', `a cell: ${name} is absent; it is required`)
    }
  }
  const read = typed<Given>(copy)
  const wrong = nameProblem(read)
  if (wrong !== undefined) throw toStoreError(wrong)
  return read
}

function checkCellMembers(cell: object): Readonly<Record<string, unknown>> {
  for (const name in cell) {
    if (ofReadCells.has(name)) continue
    throw new StoreError('invalid', `a cell: ${unknownWord('property', name, ofCells)}`)
  }
  const hidden = hiddenIn(cell)
  if (hidden !== undefined) {
    throw new StoreError('invalid', `a cell: it has ${hidden}; leave it out`)
  }
  return readMembers(cell, ofCells)
}

/** The members of a place; an answer has `asOf` too, and a program may give it back as it is. */
const placeMembers = ['kind', 'shard', 'addedId', 'timestamp', 'asOf']
/** Members that a place of the other kind has: one call would pass over one of them. */
const otherMembers = { after: ['timestamp'], since: ['addedId', 'asOf'] } as const

/** A place in a shard's log as programs give it; throws `invalid`. */
export function checkPlace(call: string, datastore: string, given: GivenPlace): LogPlace {
  const words = "{ kind: 'after', shard, addedId } or { kind: 'since', shard, timestamp }"
  const members = givenMembers(call, 'a place', given, { known: placeMembers, words })
  const { kind, shard, addedId, timestamp, asOf } = members
  if (kind !== 'after' && kind !== 'since') {
    throw new StoreError('invalid', `${call}: kind is ${wordsFor(kind)}; expected ${words}`)
  }
  const other = otherMembers[kind].find((name) => members[name] !== undefined)
  if (other !== undefined) {
    const message = `${call}: a place of the kind '${kind}' has no ${other}; expected ${words}`
    throw new StoreError('invalid', message)
  }
  const place = typed<LogPlace>(
    kind === 'after'
      ? { kind, shard, addedId, ...(asOf !== undefined && { asOf }) }
      : { kind, shard, timestamp: storeTime(timestamp, `${call}: timestamp`) },
  )
  const wrong = placeProblem(datastore, place)
  if (wrong === undefined) return place
  throw new StoreError(wrong.code, `${call}: ${wrong.message}`, wrong.detail)
}
