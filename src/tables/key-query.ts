/**
 * From what a scan or an index query names to a range of keys: the first parts by their values, the
 * last one named maybe by bounds. Parts of the group may be left out, and must be this group's.
 */
import { present } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { isPlain } from '../base/words.ts'
import { type KeyRange } from '../group/outcome.ts'
import { prefixRange } from '../txn/key-range.ts'
import type { CompiledTable, KeyPart, KeyStep } from './compiled.ts'
import { checkOfGroup, type GroupContext } from './group-context.ts'
import { checkIndexed, checkPart, readMember, readMembers } from './key-check.ts'
import { encodePart, presentByte } from './key-codec.ts'
import type { KeyWriter } from './key-writer.ts'

export interface QueriedRange {
  readonly range: KeyRange
  /** Every part has a value: at most one row, or one value of an index. */
  readonly isExact: boolean
}

const boundNames: ReadonlySet<string> = new Set(['gte', 'gt', 'lte', 'lt'])

/** `context` where a step may be of the group; `writer` has what stands before the steps; `where` is 'table Photo', 'index PhotosByTime'. */
export function rangeOfQuery(
  context: GroupContext | undefined,
  table: CompiledTable,
  { steps, queryNames }: Pick<CompiledTable, 'steps' | 'queryNames'>,
  query: unknown,
  { writer, where }: { readonly writer: KeyWriter; readonly where: string },
): QueriedRange {
  const given = readMembers(query, queryNames, () => where)
  checkNamed(given, where)
  let open: string | undefined
  let range: KeyRange | undefined
  for (const step of steps) {
    if (step.kind === 'mark') {
      if (open === undefined && range === undefined) writer.mark(step.number)
      continue
    }
    const name = step.kind === 'group' ? step.name : step.part.name
    const value = readMember(given, name)
    if (step.kind === 'group') {
      const group = present(context, 'TAB-5: what has parts of a group is in one')
      if (value !== undefined) checkGroupPart(group, table, step, value, where)
      continue
    }
    if (value === undefined) {
      open ??= name
      continue
    }
    if (open !== undefined || range !== undefined)
      throw outOfOrder(where, name, [...queryNames], open)
    if (isBounds(value)) range = boundedRange(step.part, value, writer.bytes, where)
    else writer.part(step.part, checkIndexed(step.part, value, where))
  }
  if (range !== undefined) return { range, isExact: false }
  return { range: prefixRange(writer.bytes), isExact: open === undefined }
}

/** Refuses a name whose value is undefined: passed over, it would ask for more rows than the caller meant. */
function checkNamed(given: object, where: string): void {
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined) continue
    const message = `${where}: ${name} is named, and its value is undefined; give its value, or leave it out`
    throw new StoreError('invalid', message)
  }
}

function checkGroupPart(
  context: GroupContext,
  table: CompiledTable,
  { name, place }: KeyStep & { readonly kind: 'group' },
  value: unknown,
  where: string,
): void {
  if (isBounds(value)) {
    const message = `${where}: ${name} names the group, and a scan stays in one; give its value, or leave it out`
    throw new StoreError('invalid', message)
  }
  const part = context.root.key[place]
  if (part === undefined) return
  checkOfGroup(context, table, place, checkPart({ ...part, name }, value, where))
}

function outOfOrder(
  where: string,
  name: string,
  names: readonly string[],
  open: string | undefined,
): StoreError {
  const why = open === undefined ? 'after a range' : `and not ${open}`
  const message = `${where}: names ${name} ${why}; the order is ${names.join(', ')}, and only the last one named may be a range`
  return new StoreError('invalid', message)
}

/** No value of a key is a plain object. */
export function isBounds(value: unknown): value is object {
  return typeof value === 'object' && value !== null && isPlain(value)
}

/** Numbers that are given begin with 1; a bound of 0 stands before the first of them. */
function checkBound(part: KeyPart, bound: unknown, where: string): unknown {
  return part.kind === 'sequence' && bound === 0 ? bound : checkPart(part, bound, where)
}

/** An absent value is in no range. */
function encodePresence(part: KeyPart): Uint8Array {
  if (part.mayBeAbsent !== true) return Buffer.alloc(0)
  return Buffer.from([part.direction === 'asc' ? presentByte : ~presentByte & 0xff])
}

function boundedRange(part: KeyPart, bounds: object, prefix: Uint8Array, where: string): KeyRange {
  const rangeWords = `${where}: the range of ${part.name}`
  const given = readMembers(bounds, boundNames, () => rangeWords)
  checkNamed(given, rangeWords)
  if (Object.keys(given).length === 0) {
    const words = `is empty; expected bounds: ${[...boundNames].join(', ')}, or leave ${part.name} out`
    throw new StoreError('invalid', `${rangeWords} ${words}`)
  }
  const has = (bound: string): boolean => readMember(given, bound) !== undefined
  if ((has('gte') && has('gt')) || (has('lte') && has('lt'))) {
    const message = `${where}: the range of ${part.name} has two bounds on one side`
    throw new StoreError('invalid', message)
  }
  const under = (bound: string): KeyRange | undefined => {
    if (!has(bound)) return undefined
    const value = checkBound(part, readMember(given, bound), where)
    return prefixRange(Buffer.concat([prefix, encodePart(part, value)]))
  }
  const whole = prefixRange(Buffer.concat([prefix, encodePresence(part)]))
  // In DESC, what is greater comes first.
  const [first, last] = part.direction === 'asc' ? ['g', 'l'] : ['l', 'g']
  const gte = under(`${first}te`)?.gte ?? under(`${first}t`)?.lt ?? whole.gte
  const lt = under(`${last}te`)?.lt ?? under(`${last}t`)?.gte ?? whole.lt
  return { gte, lt }
}
