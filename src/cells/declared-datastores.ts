/**
 * Declaring a datastore: its form, once and for good, under the name without it. So two programs do not come to use two
 * datastores, `trips.64` and `trips.128`, where one was meant. Which shard a row is in does not depend on it (CELL-9).
 */
import { StoreError } from '../base/errors.ts'
import type { Timestamp } from '../base/ids.ts'
import { placeWords } from '../base/placed-group.ts'
import type { Clock } from '../ports/clock.ts'
import type { Tables } from '../tables/tables.ts'
import { nameDatastore, readForm, type DatastoreForm } from './datastore-form.ts'
import {
  declaredKey,
  getDeclared,
  putDeclared,
  scanDeclared,
  type DeclaredRow,
} from './declared-table.ts'

export interface DeclaredDatastore {
  /** The name under which it was declared: `trips`. */
  readonly name: string
  /** The whole name, by which its cells are put and read: `trips.64.region-eu`. */
  readonly datastore: string
  /** A power of two from 1 to 4096. */
  readonly shards: number
  /** `region eu`, `set west`; absent: its shards are on all sets. */
  readonly placement?: string
  /** Microseconds since 1970. */
  readonly declaredAt: Timestamp
}

interface CallTime {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Rejects with `already-exists` where it was declared with another form. */
export async function declareDatastore(
  tables: Tables,
  form: DatastoreForm,
  clock: Clock,
  call: CallTime = {},
): Promise<{ readonly kind: 'new' | 'same'; readonly declared: DeclaredDatastore }> {
  const row = { base: form.base, datastore: nameDatastore(form), declared_at: clock.wallMicros() }
  const { value } = await tables.transaction(
    declaredKey,
    async (tx) => {
      const before = await getDeclared(tx, row.base)
      if (before !== undefined && before.datastore !== row.datastore) throw otherForm(before)
      if (before === undefined) await putDeclared(tx, row)
      return before
    },
    call,
  )
  return { kind: value === undefined ? 'new' : 'same', declared: toDeclared(value ?? row) }
}

function otherForm(before: DeclaredRow): StoreError {
  const { name, datastore } = toDeclared(before)
  const message = `datastore ${name} is declared with ${formWords(before.datastore)}, and stays so: its cells are in ${datastore}; give another name for another form`
  return new StoreError('already-exists', message)
}

/** `64 shards in region eu`. */
export function formWords(datastore: string): string {
  const { shards, place } = formOf(datastore)
  const count = `${shards} shard${shards === 1 ? '' : 's'}`
  return place === undefined ? `${count} on all sets` : `${count} in ${placeWords(place)}`
}

/** All of them, in the order of their names. */
export async function listDeclared(
  tables: Tables,
  call: CallTime = {},
): Promise<readonly DeclaredDatastore[]> {
  const found: DeclaredRow[] = []
  for (let cursor: string | undefined; ;) {
    const after = cursor
    const { value } = await tables.read(
      declaredKey,
      'current',
      (rows) => scanDeclared(rows, after),
      call,
    )
    found.push(...value.items)
    cursor = value.cursor
    if (cursor === undefined) return found.map(toDeclared)
  }
}

/** By the name without the form. */
export async function findDeclared(
  tables: Tables,
  base: string,
  call: CallTime = {},
): Promise<DeclaredDatastore | undefined> {
  const { value } = await tables.read(
    declaredKey,
    'current',
    (rows) => getDeclared(rows, base),
    call,
  )
  return value && toDeclared(value)
}

function toDeclared({
  base: name,
  datastore,
  declared_at: declaredAt,
}: DeclaredRow): DeclaredDatastore {
  const { shards, place } = formOf(datastore)
  const placement = place && placeWords(place)
  return { name, datastore, shards, ...(placement !== undefined && { placement }), declaredAt }
}

function formOf(datastore: string): DatastoreForm {
  const form = readForm(datastore)
  if (form !== undefined) return form
  const message = `the list of datastores has one with the name ${datastore}, which this build cannot read; use a later one`
  throw new StoreError('schema-mismatch', message)
}
