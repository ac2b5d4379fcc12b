/** Bodies of batch requests: JSON of a known form, every member checked, none ignored. */
import type { Json } from '../cells/body.ts'
import { purgeItemsMax } from '../cells/limits.ts'
import type { NewCell } from '../cells/cell.ts'
import type { GetItem, LogPlace, PurgeCells } from '../cells/operation.ts'
import { refuse } from './problems.ts'
import { parseTime } from './parameters.ts'

export type Members = ReadonlyMap<string, Json>

/** The members of an object, each of which must be among those known. */
export function readMembers(
  value: Json | undefined,
  what: string,
  known: readonly string[],
): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse(`${what} must be an object with ${known.join(', ')}`)
  }
  const members = new Map<string, Json>(Object.entries(value))
  for (const name of members.keys()) {
    const given = JSON.stringify(name.slice(0, 80))
    if (!known.includes(name)) refuse(`${what} has no member ${given}, only ${known.join(', ')}`)
  }
  return members
}

function readList(value: Json | undefined, what: string): readonly Json[] {
  return isList(value) ? value : refuse(`${what} must be a list`)
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

export function readText(members: Members, name: string, what: string): string {
  const value = members.get(name)
  return typeof value === 'string' ? value : refuse(`${what}.${name} must be a text`)
}

export function readNumber(members: Members, name: string, what: string): number {
  const value = members.get(name)
  return typeof value === 'number' ? value : refuse(`${what}.${name} must be a number`)
}

/** `{cells: [{rowKey, column, refKey, body}]}` */
export function readPutItems(body: Json): NewCell[] {
  const members = readMembers(body, 'the body', ['cells'])
  return readList(members.get('cells'), 'cells').map((item, i) => {
    const what = `cells[${i}]`
    const cell = readMembers(item, what, ['rowKey', 'column', 'refKey', 'body'])
    const content = cell.get('body')
    return {
      rowKey: readText(cell, 'rowKey', what),
      column: readText(cell, 'column', what),
      refKey: readNumber(cell, 'refKey', what),
      body: content === undefined ? refuse(`${what} has no body`) : content,
    }
  })
}

/** `{cells: [{rowKey, column, refKey?}]}` */
export function readGetItems(body: Json): GetItem[] {
  const members = readMembers(body, 'the body', ['cells'])
  return readList(members.get('cells'), 'cells').map((item, i) => {
    const what = `cells[${i}]`
    const cell = readMembers(item, what, ['rowKey', 'column', 'refKey'])
    return {
      rowKey: readText(cell, 'rowKey', what),
      column: readText(cell, 'column', what),
      ...(cell.has('refKey') && { refKey: readNumber(cell, 'refKey', what) }),
    }
  })
}

/** `{before, column?, keepLatest?, after?, limit?}` */
export function readPurgeBody(body: Json): Omit<PurgeCells, 'kind' | 'datastore' | 'shard'> {
  const what = 'the body'
  const members = readMembers(body, what, ['before', 'column', 'keepLatest', 'after', 'limit'])
  const keepLatest = members.get('keepLatest') ?? true
  if (typeof keepLatest !== 'boolean') return refuse(`${what}.keepLatest must be true or false`)
  return {
    before: parseTime(readText(members, 'before', what), `${what}.before`),
    ...(members.has('column') && { column: readText(members, 'column', what) }),
    keepLatest,
    after: members.has('after') ? readNumber(members, 'after', what) : 0,
    limit: members.has('limit') ? readNumber(members, 'limit', what) : purgeItemsMax,
  }
}

export interface ShardsBody {
  readonly places: readonly LogPlace[]
  readonly limit?: number
  readonly waitSeconds?: number
}

/** `{shards: [{shard, after? | since?}], limit?, wait?}` */
export function readShardsBody(body: Json): ShardsBody {
  const members = readMembers(body, 'the body', ['shards', 'limit', 'wait'])
  const places = readList(members.get('shards'), 'shards').map((item, i): LogPlace => {
    const what = `shards[${i}]`
    const place = readMembers(item, what, ['shard', 'after', 'since'])
    const shard = readNumber(place, 'shard', what)
    const hasSince = place.has('since')
    if (hasSince && place.has('after'))
      return refuse(`${what} must have either after or since, not both`)
    if (hasSince) {
      const timestamp = parseTime(readText(place, 'since', what), `${what}.since`)
      return { kind: 'since', shard, timestamp }
    }
    const addedId = place.has('after') ? readNumber(place, 'after', what) : 0
    return { kind: 'after', shard, addedId }
  })
  return {
    places,
    ...(members.has('limit') && { limit: readNumber(members, 'limit', 'the body') }),
    ...(members.has('wait') && { waitSeconds: readNumber(members, 'wait', 'the body') }),
  }
}
