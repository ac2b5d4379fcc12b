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
import type { GroupPort } from '../group/group-port.ts'
import type { RawTransaction } from '../txn/raw-transaction.ts'
import { runRead, type ReadOptions } from '../txn/run-read.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'
import { changeText } from '../../schema/change.ts'
import { decodeSchema } from '../../schema/decode.ts'
import { diffSchemas } from '../../schema/diff.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import { findIndex, findTable, type Schema } from '../../schema/model.ts'
import { problemText, type SchemaProblem } from '../../schema/problem.ts'
import {
  firstVersion,
  nextVersion,
  type SchemaStep,
  type SchemaVersion,
} from '../../schema/version.ts'
import {
  lifeKeys,
  livesIn,
  putLives,
  withDeclared,
  type IndexLives,
  type NumberedName,
} from './index-life.ts'
import { noteKnown } from './index-steps.ts'
import {
  currentKey,
  putVersion,
  readVersion,
  registryGroup,
  versionKey,
  requireVersion,
} from './registry-rows.ts'
import { unkeptIndex } from './unkept-index.ts'

/** A schema as the cluster has it now. */
export interface SchemaView {
  readonly version: SchemaVersion
  readonly lives: IndexLives
}

/** The version of a schema that the cluster has now; undefined when it has none. */
export async function readSchema(
  port: GroupPort,
  name: string,
  options: ReadOptions,
): Promise<SchemaVersion | undefined> {
  return (await readSchemaView(port, name, options))?.version
}

/** The same, and where its indexes stand. */
export async function readSchemaView(
  port: GroupPort,
  name: string,
  options: ReadOptions,
): Promise<SchemaView | undefined> {
  const from = { kind: 'current' } as const
  const { value } = await runRead(port, registryGroup(name), from, options, async (reads) =>
    reads.getMany([currentKey, ...lifeKeys]),
  )
  const [current, ...lives] = value
  if (current === undefined) return undefined
  return { version: requireVersion(name, current.value), lives: livesIn(lives) }
}

/** Has the version this very index? */
export function hasIndex({ numbers }: SchemaVersion, { name, number }: NumberedName): boolean {
  return numbers.stored[name] === number
}

/** The result of giving the cluster a schema. */
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
  const refused = findRefusal(schema)
  const unkept = unkeptIndex(schema)
  if (unkept !== undefined) throw unkept
  const group = registryGroup(schema.name)
  const { value } = await runTransaction(port, group, options, (transaction) =>
    step(transaction, schema, refused),
  )
  if (value.kind === 'first') return value
  await noteKnown(port, schema.name, options).catch((error: unknown) => {
    // The schema is applied all the same; a build waits for the whole grace then.
    if (!(error instanceof StoreError)) throw error
  })
  return value
}

/** Why this is no schema to be applied; throws for what has not the form of one, as JavaScript may give it. */
function findRefusal(schema: Schema): StoreError | undefined {
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
  const current = requireVersion(schema.name, row.value)
  // A default that the cluster has stays, by the rules of its time.
  if (refused !== undefined && decodeSchema(current.schema).ok) throw refused
  const next = nextVersion(current, schema)
  if (next.kind === 'refused') {
    if (await wasVersion(transaction, current, schema)) return { kind: 'older', version: current }
    throw mismatch(`schema ${schema.name} cannot be changed so`, next.changes)
  }
  if (next.kind === 'next') {
    putVersion(transaction, current, next.version)
    const lives = livesIn(await transaction.getMany(lifeKeys))
    const added = addedToRows(current.schema, schema)
    putLives(transaction, lives, withDeclared(lives, added), next.version.numbers.stored)
  }
  return next
}

/** These versions of a schema, of those that can be read, in this order. */
export async function readVersions(
  port: GroupPort,
  name: string,
  versions: readonly number[],
  options: ReadOptions,
): Promise<readonly SchemaVersion[]> {
  const from = { kind: 'current' } as const
  const { value } = await runRead(port, registryGroup(name), from, options, (reads) =>
    reads.getMany(versions.map(versionKey)),
  )
  return value.flatMap((row) => (row === undefined ? [] : [requireVersion(name, row.value)]))
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
function addedToRows(before: Schema, after: Schema): readonly string[] {
  return after.indexes
    .filter(({ name, table }) => findIndex(before, name) === undefined && findTable(before, table))
    .map(({ name }) => name)
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
