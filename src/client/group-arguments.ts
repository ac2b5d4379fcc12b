/**
 * The arguments of calls of groups, as programs give them: checked before the client sends any request. Each
 * check throws `invalid`.
 */
import {
  callback,
  checkArgument,
  givenMember,
  givenMembers,
  numberWithin,
  oneOf,
  optionsProblem,
  readGiven,
  wholeFrom,
  wrongArgument,
  type Rule,
} from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { storeTime } from '../base/given-time.ts'
import { keyBytesMax } from '../base/limits.ts'
import { readElements, isBytes, isList, isReadable } from '../base/readable.ts'
import { toStoreError, type Problem } from '../base/problem.ts'
import { unknownWord } from '../base/suggest.ts'
import type { ReadFrom } from '../group/group-port.ts'
import { typed } from '../tables/types.ts'
import { callTimeoutMsMax } from '../txn/limits.ts'
import { stalenessRule } from '../txn/staleness.ts'
import { lockNameProblem } from './group-check.ts'
import { intentRules } from './rules.ts'

/** One byte is a character of a group's name. */
const group: Rule = {
  accepts: (value) => typeof value === 'string' && isBytesText(value),
  words: `the name of a group: a string of 1 to ${keyBytesMax} characters, each of which is one byte`,
}

function isBytesText(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- each byte is a character here
  return text.length >= 1 && text.length <= keyBytesMax && /^[\0-\xff]*$/.test(text)
}

const levels = oneOf('current', 'snapshot', 'inconsistent')
const from = {
  known: ['kind', 'timestamp', 'maxStalenessMs'],
  words:
    "an object with a kind: 'current', 'snapshot' or 'inconsistent', 'at' with a timestamp, or 'bounded' with maxStalenessMs",
}
const view: Rule = { accepts: isObject, words: 'a view, as groups.view gives it' }
const object: Rule = { accepts: isObject, words: 'an object' }
const bytesList: Rule = {
  accepts: (value) => isListOf(value, isBytes),
  words: 'a list, each of it a Uint8Array',
}
const range: Rule = {
  accepts: (value) => isObject(value) && ends.every((end) => isEnd(Reflect.get(value, end))),
  words: 'a range: gte, gt and lt are each a Uint8Array or absent',
}
const ends = ['gte', 'gt', 'lt']
const submission: Rule = {
  accepts: (value) => isObject(value) && isSubmission(value),
  words:
    'a submission: group, intent, attempt, readPosition, and the lists reads, ranges, allocations and mutations',
}

function isEnd(value: unknown): boolean {
  return value === undefined || isBytes(value)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && isReadable(value) && !Array.isArray(value)
}

function isListOf(value: unknown, isOne: (one: unknown) => boolean): boolean {
  return isList(value) && readElements(value)?.every(isOne) === true
}

const count = wholeFrom(0)

function isSubmission(value: object): boolean {
  const intent: unknown = Reflect.get(value, 'intent')
  const isNamed = isObject(intent) && typeof Reflect.get(intent, 'session') === 'string'
  if (!isNamed || !numbersOfIntent.every((name) => count.accepts(Reflect.get(intent, name)))) {
    return false
  }
  if (!group.accepts(Reflect.get(value, 'group'))) return false
  if (!numbersOf.every((name) => count.accepts(Reflect.get(value, name)))) return false
  return (
    bytesList.accepts(Reflect.get(value, 'reads')) &&
    isListOf(Reflect.get(value, 'ranges'), range.accepts) &&
    isListOf(Reflect.get(value, 'allocations'), count.accepts) &&
    isListOf(Reflect.get(value, 'mutations'), isMutation)
  )
}

const numbersOfIntent = ['sequence', 'expiresAt', 'floor']
const numbersOf = ['attempt', 'readPosition']

function isMutation(value: unknown): boolean {
  return isObject(value) && isBytes(Reflect.get(value, 'key')) && isEnd(Reflect.get(value, 'value'))
}

export function checkGroup(call: string, given: unknown): void {
  checkArgument(call, 'the group', given, group)
}

/** How names of groups begin. */
export function checkPrefix(call: string, given: unknown): void {
  const accepts = (value: unknown): boolean => value === '' || group.accepts(value)
  checkArgument(call, 'the prefix', given, { accepts, words: `${group.words}, or nothing` })
}

/** The place to read from, each member read once. Its moment may be a Date, or a bigint. */
export function fromOf(call: string, given: unknown): ReadFrom {
  const members = givenMembers(call, 'the place to read from', given, from)
  const { kind, timestamp, maxStalenessMs } = members
  if (kind === 'bounded' || maxStalenessMs !== undefined) return boundedOf(call, members)
  if (kind === 'at') return { kind, timestamp: storeTime(timestamp, `${call}: timestamp`) }
  if (typeof kind !== 'string' || !levels.accepts(kind)) {
    throw wrongArgument(call, 'the place to read from: kind', kind, from.words)
  }
  if (timestamp === undefined) return typed<ReadFrom>({ kind })
  const message = `${call}: timestamp goes with the kind 'at', and kind is '${kind}'; leave one of them out`
  throw new StoreError('invalid', message)
}

function boundedOf(call: string, members: Readonly<Record<string, unknown>>): ReadFrom {
  const { kind, timestamp, maxStalenessMs } = members
  if (kind !== 'bounded' || timestamp !== undefined) {
    const message = `${call}: maxStalenessMs goes with the kind 'bounded', and with no timestamp`
    throw new StoreError('invalid', message)
  }
  checkArgument(call, 'maxStalenessMs', maxStalenessMs, stalenessRule)
  return typed<ReadFrom>({ kind, maxStalenessMs })
}

export function checkAsked(call: string, given: unknown): void {
  checkArgument(call, 'the first read', given, object)
  if (!isObject(given)) return
  checkNames(`${call}: the first read`, given, ['keys', 'range'])
  checkArgument(call, 'keys', givenMember(`${call}: the first read`, given, 'keys'), bytesList)
  const asked: unknown = givenMember(`${call}: the first read`, given, 'range')
  if (asked !== undefined) checkRange(call, asked)
}

const intent: Rule = {
  accepts: isObject,
  words: 'an intent, as error.detail.intent names it: an object of session, sequence, expiresAt',
}

export function checkIntent(call: string, given: unknown): void {
  checkArgument(call, 'the intent', given, intent)
  const wrong = optionsProblem(given, intentRules)
  if (wrong !== undefined) throw new StoreError('invalid', `${call}: the intent: ${wrong.words}`)
}

export function checkView(call: string, given: unknown): void {
  checkArgument(call, 'the view', given, view)
  const asOf = isObject(given) ? givenMember(`${call}: the view`, given, 'asOf') : undefined
  if (asOf !== undefined) storeTime(asOf, `${call}: the view: asOf`)
}

export function checkKeys(call: string, given: unknown): void {
  checkArgument(call, 'the keys', given, bytesList)
}

export function checkRange(call: string, given: unknown): void {
  checkArgument(call, 'the range', given, range)
  if (isObject(given)) checkNames(`${call}: the range`, given, namesOfRange)
}

const namesOfRange = [...ends, 'reverse', 'limit', 'bytesMax']

/** Throws `invalid` for a member that the call would pass over. */
function checkNames(where: string, given: object, known: readonly string[]): void {
  const name = readGiven(where, () => Object.keys(given)).find((one) => !known.includes(one))
  if (name === undefined) return
  throw new StoreError('invalid', `${where}: ${unknownWord('member', name, known)}`)
}

export function checkSubmission(call: string, given: unknown): void {
  checkArgument(call, 'the submission', given, submission)
  if (!isObject(given)) return
  checkNames(`${call}: the submission`, given, namesOfSubmission)
  const named: unknown = givenMember(`${call}: the submission`, given, 'intent')
  const wrong = optionsProblem(named, intentRules)
  if (wrong !== undefined) throw new StoreError('invalid', `${call}: the intent: ${wrong.words}`)
  const mutations: unknown = givenMember(`${call}: the submission`, given, 'mutations')
  for (const one of isList(mutations) ? mutations : []) {
    if (isObject(one)) checkNames(`${call}: a mutation`, one, namesOfMutation)
  }
}

const namesOfSubmission = [
  ...['group', 'intent', 'attempt', 'readPosition', 'reads', 'ranges', 'allocations', 'mutations'],
]
const namesOfMutation = ['key', 'value', 'slots', 'isNew']

const lockMs = numberWithin(0, callTimeoutMsMax, ' of milliseconds')

/** A group, a lock of it, and a function to run under the lock. */
export function checkLock(call: string, name: unknown, lock: unknown, work: unknown): void {
  checkGroup(call, name)
  checkArgument(call, 'the lock', lock, { ...object, words: 'an object of name, holdMs, waitMs' })
  if (isObject(lock)) {
    checkNames(`${call}: the lock`, lock, ['name', 'holdMs', 'waitMs'])
    const member = (of: string): unknown => givenMember(`${call}: the lock`, lock, of)
    throwIf(lockNameProblem(member('name')))
    checkArgument(call, 'holdMs', member('holdMs'), lockMs)
    checkArgument(call, 'waitMs', member('waitMs'), lockMs)
  }
  checkArgument(call, 'the work', work, callback)
}

function throwIf(wrong: Problem | undefined): void {
  if (wrong !== undefined) throw toStoreError(wrong)
}
