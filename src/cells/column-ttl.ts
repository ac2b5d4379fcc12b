/**
 * The TTLs of a datastore's columns: rows beside the definitions of its indexes, and copied to each replica set
 * with them (`index-copies.ts`). A put looks at those of its own set and gives its cell the TTL, for good: so what
 * was put before a TTL, or under another one, keeps what it had.
 */
import { ttlSecondsMax } from '../../schema/limits.ts'
import { parseTtl, ttlText } from '../../schema/ttl.ts'
import { StoreError } from '../base/errors.ts'
import { wordsFor } from '../base/words.ts'
import type { Tables } from '../tables/tables.ts'
import type { TtlRow } from './definition-table.ts'
import { changeDefinitions, readDefinitions } from './index-registry.ts'
import { columnTtlsMax } from './limits.ts'

export interface ColumnTtl {
  readonly column: string
  /** From 1. */
  readonly seconds: number
  /** As it is written: `30 DAYS`. */
  readonly ttl: string
}

interface CallTime {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Seconds. Throws `invalid`. */
export function checkTtl(given: unknown): number {
  const seconds = typeof given === 'string' ? parseTtl(given.toLowerCase()) : undefined
  if (seconds !== undefined && seconds >= 1 && seconds <= ttlSecondsMax) return seconds
  const message = `the TTL of a column is ${wordsFor(given)}; expected a whole number of seconds, minutes, hours or days, such as '30 days', from 1 second to 36500 days`
  throw new StoreError('invalid', message)
}

/** In the order of the columns' names. */
export async function readColumnTtls(
  tables: Tables,
  datastore: string,
  call: CallTime = {},
): Promise<readonly ColumnTtl[]> {
  const { ttls } = await readDefinitions(tables, datastore, call)
  return [...ttls].map(([column, seconds]) => ({ column, seconds, ttl: ttlText(seconds) }))
}

/** For cells that are put from now on; other sets hear of it by `spreadDefinitions`. */
export function setColumnTtl(
  tables: Tables,
  datastore: string,
  { column, ttl }: TtlRow,
  call: CallTime = {},
): Promise<void> {
  const set = ({ ttls }: { readonly ttls: readonly TtlRow[] }) => {
    const others = ttls.filter((one) => one.column !== column)
    if (others.length >= columnTtlsMax) throw tooMany(datastore)
    const isSame = ttls.some((one) => one.column === column && one.ttl === ttl)
    return isSame ? { value: undefined } : { ttls: [...others, { column, ttl }], value: undefined }
  }
  return changeDefinitions<void>(tables, datastore, set, call)
}

/** Cells that are put from now on stay; those that have a TTL keep it. Rejects with `not-found`. */
export function clearColumnTtl(
  tables: Tables,
  datastore: string,
  column: string,
  call: CallTime = {},
): Promise<void> {
  const clear = ({ ttls }: { readonly ttls: readonly TtlRow[] }) => {
    const others = ttls.filter((one) => one.column !== column)
    if (others.length === ttls.length) {
      const known = ttls.map((one) => one.column)
      const has = known.length === 0 ? 'no column has one' : `these have one: ${known.join(', ')}`
      const message = `datastore ${datastore}: column ${column} has no TTL; ${has}`
      throw new StoreError('not-found', message)
    }
    return { ttls: others, value: undefined }
  }
  return changeDefinitions<void>(tables, datastore, clear, call)
}

function tooMany(datastore: string): StoreError {
  const message = `datastore ${datastore} has TTLs of ${columnTtlsMax} columns, which is as many as there may be`
  return new StoreError('too-large', message, { limit: 'columnTtlsMax', limitValue: columnTtlsMax })
}
