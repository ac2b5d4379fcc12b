/** Bodies of batch requests: JSON of a known form, every member checked, none ignored. */
import type { Json } from '../cells/body.ts'
import { purgeItemsMax } from '../cells/limits.ts'
import type { NewCell } from '../cells/cell.ts'
import type { GetItem, LogPlace, PurgeCells } from '../cells/operation.ts'
import { refuse } from './problems.ts'
import { timeOf } from './parameters.ts'

type Members = ReadonlyMap<string, Json>

/** The members of an object, each of which must be among those known. */
function membersOf(value: Json | undefined, what: string, known: readonly string[]): Members {
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

function listOf(value: Json | undefined, what: string): readonly Json[] {
  return isList(value) ? value : refuse(`${what} must be a list`)
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

function textOf(members: Members, name: string, what: string): string {
  const value = members.get(name)
  return typeof value === 'string' ? value : refuse(`${what}.${name} must be a text`)
}

function numberOf(members: Members, name: string, what: string): number {
  const value = members.get(name)
  return typeof value === 'number' ? value : refuse(`${what}.${name} must be a number`)
}

/** `{cells: [{rowKey, column, refKey, body}]}` */
export function putItemsOf(body: Json): NewCell[] {
  const members = membersOf(body, 'the body', ['cells'])
  return listOf(members.get('cells'), 'cells').map((item, i) => {
    const what = `cells[${i}]`
    const cell = membersOf(item, what, ['rowKey', 'column', 'refKey', 'body'])
    const content = cell.get('body')
    return {
      rowKey: textOf(cell, 'rowKey', what),
      column: textOf(cell, 'column', what),
      refKey: numberOf(cell, 'refKey', what),
      body: content === undefined ? refuse(`${what} has no body`) : content,
    }
  })
}

/** `{cells: [{rowKey, column, refKey?}]}` */
export function getItemsOf(body: Json): GetItem[] {
  const members = membersOf(body, 'the body', ['cells'])
  return listOf(members.get('cells'), 'cells').map((item, i) => {
    const what = `cells[${i}]`
    const cell = membersOf(item, what, ['rowKey', 'column', 'refKey'])
    return {
      rowKey: textOf(cell, 'rowKey', what),
      column: textOf(cell, 'column', what),
      ...(cell.has('refKey') && { refKey: numberOf(cell, 'refKey', what) }),
    }
  })
}

/** `{before, column?, keepLatest?, after?, limit?}` */
export function purgeBodyOf(body: Json): Omit<PurgeCells, 'kind' | 'datastore' | 'shard'> {
  const what = 'the body'
  const members = membersOf(body, what, ['before', 'column', 'keepLatest', 'after', 'limit'])
  const keepLatest = members.get('keepLatest') ?? true
  if (typeof keepLatest !== 'boolean') return refuse(`${what}.keepLatest must be true or false`)
  return {
    before: timeOf(textOf(members, 'before', what), `${what}.before`),
    ...(members.has('column') && { column: textOf(members, 'column', what) }),
    keepLatest,
    after: members.has('after') ? numberOf(members, 'after', what) : 0,
    limit: members.has('limit') ? numberOf(members, 'limit', what) : purgeItemsMax,
  }
}

export interface ShardsBody {
  readonly places: readonly LogPlace[]
  readonly limit?: number
  readonly waitSeconds?: number
}

/** `{shards: [{shard, after? | since?}], limit?, wait?}` */
export function shardsBodyOf(body: Json): ShardsBody {
  const members = membersOf(body, 'the body', ['shards', 'limit', 'wait'])
  const places = listOf(members.get('shards'), 'shards').map((item, i): LogPlace => {
    const what = `shards[${i}]`
    const place = membersOf(item, what, ['shard', 'after', 'since'])
    const shard = numberOf(place, 'shard', what)
    const hasSince = place.has('since')
    if (hasSince && place.has('after'))
      return refuse(`${what} must have either after or since, not both`)
    if (hasSince) {
      const timestamp = timeOf(textOf(place, 'since', what), `${what}.since`)
      return { kind: 'since', shard, timestamp }
    }
    const addedId = place.has('after') ? numberOf(place, 'after', what) : 0
    return { kind: 'after', shard, addedId }
  })
  return {
    places,
    ...(members.has('limit') && { limit: numberOf(members, 'limit', 'the body') }),
    ...(members.has('wait') && { waitSeconds: numberOf(members, 'wait', 'the body') }),
  }
}
