/**
 * The form of a datastore: how many shards it has, and where they are. Its name says it, so there is nothing to learn,
 * and no race (CELL-9): each program that knows the name computes the same shard of a row, and the same set.
 *
 *   trips                  4,096 shards, spread over all sets
 *   trips.64               64 shards
 *   trips.64.region-eu     64 shards, in the sets of region eu
 *   trips.4096.set-west    4,096 shards, in set west
 *
 * All are different datastores. A build that does not know such names refuses them.
 */
import { datastoreNameCharsMax } from '../base/limits.ts'
import { isPlaceName, type Place } from '../base/placed-group.ts'

/** The most shards that a datastore may have; one whose name says no number has this many. */
export const shardCountMax = 4096

export interface DatastoreForm {
  /** The name without what it says: `trips`. */
  readonly base: string
  /** A power of two from 1 to 4096. */
  readonly shards: number
  /** Absent: they are spread over all sets. */
  readonly place?: Place
}

const basePattern = /^[a-z][a-z0-9_]*$/
const mark = '.'
const placeMark = '-'

/** Whether the text is a name without a form of its own: letters, digits and _. */
export function isBaseName(text: unknown): boolean {
  if (typeof text !== 'string') return false
  return text.length <= datastoreNameCharsMax && basePattern.test(text)
}

export function isShardCount(value: unknown): boolean {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return false
  return value >= 1 && value <= shardCountMax && (value & (value - 1)) === 0
}

/** Undefined: the text names no datastore. Each form has one name. */
export function readForm(datastore: string): DatastoreForm | undefined {
  if (datastore.length > datastoreNameCharsMax) return undefined
  const [base = '', ...said] = datastore.split(mark)
  if (!basePattern.test(base)) return undefined
  const [count, where] = said
  const shards = count === undefined ? shardCountMax : Number(count)
  if (!isShardCount(shards)) return undefined
  const place = where === undefined ? undefined : readPlace(where)
  const form = place === undefined ? { base, shards } : { base, shards, place }
  return nameDatastore(form) === datastore ? form : undefined
}

function readPlace(said: string): Place | undefined {
  const at = said.indexOf(placeMark)
  const [kind, name] = [said.slice(0, at), said.slice(at + 1)]
  if ((kind !== 'set' && kind !== 'region') || !isPlaceName(name)) return undefined
  return { kind, name }
}

/** The one name of a datastore of this form. */
export function nameDatastore({ base, shards, place }: DatastoreForm): string {
  if (place !== undefined) {
    return [base, shards, `${place.kind}${placeMark}${place.name}`].join(mark)
  }
  return shards === shardCountMax ? base : `${base}${mark}${shards}`
}

/** How many shards a datastore has. Its name was checked. */
export function shardCountOf(datastore: string): number {
  const at = datastore.indexOf(mark)
  return at < 0 ? shardCountMax : Number.parseInt(datastore.slice(at + 1), 10)
}

/** Where its shards are; undefined: on all sets. Its name was checked. */
export function placeOfDatastore(datastore: string): Place | undefined {
  return datastore.includes(placeMark) ? readForm(datastore)?.place : undefined
}
