/**
 * Which schemas a cluster has, in which version: a group for each schema, with a row for the current
 * version and one for each that ever was. Changing it is a transaction like any other, so of two who
 * change it at once one finds the other's change and decides anew.
 *
 * Programs need not be restarted together: one that declares an earlier version goes on, since only
 * changes are made that leave it its meaning (SCH-14). One that declares what the cluster has not is
 * refused until an operator or a program applies it.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Timestamp } from '../base/ids.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runRead, type ReadOptions } from '../txn/run-read.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'
import { changeText } from '../../schema/change.ts'
import { decodeSchema } from '../../schema/decode.ts'
import { diffSchemas } from '../../schema/diff.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import { findIndex, findTable, type Index, type Schema } from '../../schema/model.ts'
import { problemText, type SchemaProblem } from '../../schema/problem.ts'
import {
  firstVersion,
  nextVersion,
  withdrawnIn,
  withoutIndex,
  type SchemaStep,
  type SchemaVersion,
} from '../../schema/version.ts'
import {
  buildingIn,
  buildingKey,
  currentKey,
  putBuilding,
  putVersion,
  readVersion,
  registryGroup,
  versionKey,
  versionOf,
} from './registry-rows.ts'

/** In time to come by any clock: a build waits for the whole grace (`index-grace.ts`). */
const notKnownYet: Timestamp = Number.MAX_SAFE_INTEGER

/** A schema as the cluster has it now. */
export interface SchemaView {
  readonly version: SchemaVersion
  /** Global indexes that do not have all rows yet, by name, and since when everybody may know of them. */
  readonly building: ReadonlyMap<string, Timestamp>
}

/** The version of a schema that the cluster has now; undefined when it has none. */
export async function readSchema(
  port: GroupPort,
  name: string,
  options: ReadOptions,
): Promise<SchemaVersion | undefined> {
  return (await readSchemaView(port, name, options))?.version
}

/** The same, and which of its indexes are being built. */
export async function readSchemaView(
  port: GroupPort,
  name: string,
  options: ReadOptions,
): Promise<SchemaView | undefined> {
  const from = { kind: 'current' } as const
  const { value } = await runRead(port, registryGroup(name), from, options, async (reads) =>
    reads.getMany([currentKey, buildingKey]),
  )
  const [current, building] = value
  if (current === undefined) return undefined
  return { version: versionOf(name, current.value), building: buildingIn(building?.value) }
}

/** An index by its name and its number: one that was dropped and declared anew has another number. */
export interface NumberedName {
  readonly name: string
  readonly number: number
}

/** The current version; rejects with `not-found` when it has not this very index. */
async function currentWith(
  transaction: RawTransaction,
  schema: string,
  index: NumberedName,
): Promise<SchemaVersion> {
  const row = await transaction.get(currentKey)
  const current = row && versionOf(schema, row.value)
  if (current !== undefined && hasIndex(current, index)) return current
  throw droppedMeanwhile(index.name)
}

/** Has the version this very index? */
export function hasIndex({ numbers }: SchemaVersion, { name, number }: NumberedName): boolean {
  return numbers.stored[name] === number
}

export function droppedMeanwhile(index: string): StoreError {
  return new StoreError('not-found', `index ${index} was dropped meanwhile`)
}

/** All rows are in the index: from now on programs may read it (IDX-6). */
export async function markBuilt(
  port: GroupPort,
  name: string,
  index: NumberedName,
  options: TransactionOptions,
): Promise<void> {
  await runTransaction(port, registryGroup(name), options, async (transaction) => {
    await currentWith(transaction, name, index)
    const building = new Map(buildingIn((await transaction.get(buildingKey))?.value))
    if (building.delete(index.name)) putBuilding(transaction, building)
  })
}

/** What the cluster makes of a schema, when it is given it. */
export type AppliedSchema =
  | { readonly kind: 'first'; readonly version: SchemaVersion }
  /** The cluster had it once; the version that it has now has all of it, and more, and stays. */
  | { readonly kind: 'older'; readonly version: SchemaVersion }
  | Exclude<SchemaStep, { readonly kind: 'refused' }>

/**
 * Gives the cluster this schema, as its first or next version. Rejects with `schema-mismatch` when a
 * difference cannot be made while rows and programs of the current version are there; nothing is
 * changed then.
 */
export async function applySchema(
  port: GroupPort,
  schema: Schema,
  options: TransactionOptions,
): Promise<AppliedSchema> {
  const refused = refusalOf(schema)
  const unkept = unkeptIndex(schema)
  if (unkept !== undefined) throw unkept
  const group = registryGroup(schema.name)
  const { value } = await runTransaction(port, group, options, (transaction) =>
    step(transaction, schema, refused),
  )
  if (value.kind === 'first') return value
  await noteKnown(port, group, options).catch((error: unknown) => {
    // The schema is applied all the same; a build waits for the whole grace then.
    if (!(error instanceof StoreError)) throw error
  })
  return value
}

/** Why this is no schema to be applied; throws for what has not the form of one, as JavaScript may give it. */
function refusalOf(schema: Schema): StoreError | undefined {
  const form = decodeSchema(schema, 'stored')
  if (!form.ok) throw notASchema(form.problems)
  const given = decodeSchema(schema)
  return given.ok ? undefined : notASchema(given.problems)
}

function notASchema([first, ...more]: readonly SchemaProblem[]): StoreError {
  const rest = more.length === 0 ? '' : `; and ${more.length} more`
  const what = first === undefined ? 'it is none' : problemText(first)
  return new StoreError('invalid', `this schema cannot be applied: ${what}${rest}`)
}

/**
 * The change itself may take effect long after it was made, when who proposed it was cut off meanwhile.
 * So an index counts as declared from when a program that applied the schema has found it declared.
 */
async function noteKnown(
  port: GroupPort,
  group: GroupId,
  options: TransactionOptions,
): Promise<void> {
  await runTransaction(port, group, options, async (transaction) => {
    const building = new Map(buildingIn((await transaction.get(buildingKey))?.value))
    const noted = [...building].filter(([, since]) => since === notKnownYet)
    for (const [index] of noted) building.set(index, options.clock.wallMicros())
    if (noted.length > 0) putBuilding(transaction, building)
  })
}

/** The reason why no cluster takes this sound schema; undefined where one may. */
export function unkeptIndex(schema: Schema): StoreError | undefined {
  const unique = schema.indexes.find((index) => index.kind === 'global' && index.unique)
  return unique && notKept(unique)
}

function notKept({ name, table }: Index): StoreError {
  const message = `index ${name} on ${table} is unique and global, which needs transactions over several groups; they are not there yet: make it LOCAL, or leave UNIQUE out`
  return new StoreError('invalid', message)
}

async function step(
  transaction: RawTransaction,
  schema: Schema,
  refused: StoreError | undefined,
): Promise<AppliedSchema> {
  const row = await transaction.get(currentKey)
  if (row === undefined) {
    if (refused !== undefined) throw refused
    const version = firstVersion(schema)
    putVersion(transaction, undefined, version)
    return { kind: 'first', version }
  }
  const current = versionOf(schema.name, row.value)
  // A default that the cluster has stays, by the rules of its time.
  if (refused !== undefined && decodeSchema(current.schema).ok) throw refused
  const next = nextVersion(current, schema)
  if (next.kind === 'refused') {
    if (await wasVersion(transaction, current, schema)) return { kind: 'older', version: current }
    throw mismatch(`schema ${schema.name} cannot be changed so`, next.changes)
  }
  if (next.kind === 'next') {
    putVersion(transaction, current, next.version)
    await noteNewIndexes(transaction, current.schema, schema)
  }
  return next
}

/**
 * Takes an index out of its schema while it is being built: no program can have read it. The schema has one
 * version more, and the index's number is given to no other one. Rejects with `invalid` when it is ready:
 * programs may ask it.
 */
export async function withdrawIndex(
  port: GroupPort,
  name: string,
  index: NumberedName,
  options: TransactionOptions,
): Promise<void> {
  await runTransaction(port, registryGroup(name), options, async (transaction) => {
    const current = await currentWith(transaction, name, index)
    const building = new Map(buildingIn((await transaction.get(buildingKey))?.value))
    if (!building.delete(index.name)) {
      const message = `index ${index.name} is ready, and programs may ask it: it stays; an index of tables can be dropped while it is being built`
      throw new StoreError('invalid', message)
    }
    putVersion(transaction, current, withoutIndex(current, index.name))
    putBuilding(transaction, building)
  })
}

/** Each version that was the last one to have an index of this name which was dropped then, the earliest first. */
export async function versionsWithDropped(
  port: GroupPort,
  { schema: { name }, numbers }: SchemaVersion,
  index: string,
  options: ReadOptions,
): Promise<readonly SchemaVersion[]> {
  const versions = withdrawnIn(numbers, index)
  const from = { kind: 'current' } as const
  const { value } = await runRead(port, registryGroup(name), from, options, (reads) =>
    reads.getMany(versions.map(versionKey)),
  )
  return value.flatMap((row) => (row === undefined ? [] : [versionOf(name, row.value)]))
}

/**
 * A program that leaves something out of a schema learns that it cannot go; one that applies an earlier
 * version has nothing to do.
 */
async function wasVersion(
  transaction: RawTransaction,
  { version: current, schema: now }: SchemaVersion,
  schema: Schema,
): Promise<boolean> {
  const fingerprint = fingerprintOf(schema)
  for (let version = current - 1; version >= 1; version--) {
    const row = await transaction.get(versionKey(version))
    if (row === undefined) continue
    // An earlier version that cannot be read is none that is looked for, and stops no later one.
    if (readVersion(schema.name, row.value)?.fingerprint !== fingerprint) continue
    // Not when it had an index that was dropped since.
    return diffSchemas(schema, now).every(({ refusal }) => refusal === undefined)
  }
  return false
}

/** Those on tables that have rows, maybe: they are not asked until they are built. */
async function noteNewIndexes(
  transaction: RawTransaction,
  before: Schema,
  after: Schema,
): Promise<void> {
  const added = after.indexes.filter(
    ({ name, table, kind }) =>
      kind === 'global' && findIndex(before, name) === undefined && findTable(before, table),
  )
  if (added.length === 0) return
  const building = new Map(buildingIn((await transaction.get(buildingKey))?.value))
  for (const { name } of added) building.set(name, notKnownYet)
  putBuilding(transaction, building)
}

/**
 * The version by which a program that declares `declared` stores its rows. Throws `schema-mismatch`
 * when the cluster's current version has not all that the program declares.
 */
export function versionFor(declared: Schema, current: SchemaVersion | undefined): SchemaVersion {
  const { name } = declared
  if (current === undefined) {
    const message = `the cluster has no schema ${name}; apply it first: trilithon schema apply`
    throw new StoreError('schema-mismatch', message)
  }
  const changes = diffSchemas(declared, current.schema)
  const refused = changes.filter(({ refusal }) => refusal !== undefined)
  if (refused.length === 0) return current
  const message = `this program's schema ${name} is not version ${current.version}, which the cluster has, nor one before it`
  throw mismatch(message, diffSchemas(current.schema, declared))
}

/** Named in the message; all of them are there for `trilithon schema diff`. */
const changesNamedMax = 5

function mismatch(what: string, changes: readonly Parameters<typeof changeText>[0][]): StoreError {
  const named = changes.slice(0, changesNamedMax).map(changeText)
  const more = changes.length - named.length
  const rest = more > 0 ? `; and ${more} more` : ''
  return new StoreError('schema-mismatch', `${what}: ${named.join('; ')}${rest}`)
}
