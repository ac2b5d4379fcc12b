/** Operations on cells as programs give them to `execute`: of a known kind, with what the kind needs. */
import {
  checkArgument,
  flag,
  givenMember,
  number,
  oneOf,
  text,
  wrongArgument,
  type Rule,
} from '../base/arguments.ts'
import { elementsOf, isBytes, isList, isReadable } from '../base/readable.ts'
import type { CellOperation } from '../cells/operation.ts'

type Members = Readonly<Record<string, Rule>>

const read: Rule = {
  accepts: (value) => hasLevel(value) && isList(Reflect.get(value, 'atLeast')),
  words: 'an object of level and atLeast',
}
const levels = oneOf('current', 'snapshot')

function hasLevel(value: unknown): value is object {
  return isObject(value) && levels.accepts(Reflect.get(value, 'level'))
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && isReadable(value) && !Array.isArray(value)
}

/** A list of objects, of which the members of these names are texts. */
function itemsOf(names: readonly string[], more: (item: object) => boolean = () => true): Rule {
  const isItem = (one: unknown): boolean =>
    isObject(one) && names.every((name) => text.accepts(Reflect.get(one, name))) && more(one)
  return {
    accepts: (value) => isList(value) && elementsOf(value)?.every(isItem) === true,
    words: names.length === 0 ? 'a list of objects' : `a list of objects with ${names.join(', ')}`,
  }
}

const isPacked = (item: object): boolean => isBytes(Reflect.get(item, 'body'))
const texts: Rule = {
  accepts: (value) =>
    value === undefined || value === 'all' || (isList(value) && value.every(text.accepts)),
  words: "a list of columns, or 'all'",
}

const kinds: { readonly [Kind in CellOperation['kind']]: Members } = {
  put: { items: itemsOf(['rowKey', 'column'], isPacked) },
  get: { read, items: itemsOf(['rowKey', 'column']) },
  row: { read, rowKey: text, limit: number },
  versions: { read, rowKey: text, column: text, limit: number, reverse: flag },
  log: { read, items: itemsOf([]), limit: number, waitMs: number },
  purge: { shard: number, before: number, keepLatest: flag, after: number, limit: number },
  index: {
    ...{ read, name: text, where: itemsOf(['field', 'comparison']), limit: number },
    ...{ reverse: flag, verify: flag, columns: texts },
  },
  'spread-indexes': {},
  'drop-index': { name: text },
}
const known = Object.keys(kinds)
const kind = oneOf(...known)

/** Throws `invalid`. */
export function checkOperation(call: string, given: unknown, options: unknown): void {
  if (!isObject(given)) throw wrongArgument(call, 'the operation', given, 'an operation on cells')
  const memberOf = (one: string): unknown => givenMember(`${call}: the operation`, given, one)
  const name = memberOf('kind')
  checkArgument(call, 'kind', name, kind)
  checkArgument(call, 'datastore', memberOf('datastore'), text)
  const found = Object.entries(kinds).find(([one]) => one === name)
  for (const [member, rule] of Object.entries(found?.[1] ?? {})) {
    checkArgument(call, member, memberOf(member), rule)
  }
  if (!isObject(options)) {
    throw wrongArgument(call, 'the options', options, 'an object of timeoutMs, signal')
  }
}
