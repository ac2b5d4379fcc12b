/**
 * Rows of the loader on their way into a table. Rows of one group go in one transaction, which looks at
 * what is there first: an equal row is left alone. So a load may be run again.
 */
import type { DefinedSchema } from '../../schema/define.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import { present } from '../base/assert.ts'
import { latin1 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import type { Client } from '../client/client.ts'
import { compileSchema } from '../tables/compile.ts'
import type { CompiledTable } from '../tables/compiled.ts'
import type { RootKey, Tables } from '../tables/tables.ts'
import { checkRow, type Values } from '../tables/row-check.ts'
import { writeRowKey } from '../tables/row-key.ts'
import { endsLoad } from './cell-sink.ts'
import { CliError, exitFailure, exitUsage } from './exit.ts'
import type { Patience } from './load-patience.ts'
import type { PutAnswer, Sink } from './load-run.ts'
import { isEqualValue } from './row-equal.ts'

/** A schema that a cluster has, for rows whose types are known only now. */
export interface ClusterSchema {
  readonly db: Tables
  readonly version: SchemaVersion
}

/** A transaction that reads and writes rows of any type. */
interface PlainTransaction {
  getMany(
    table: { readonly name: string },
    keys: readonly unknown[],
  ): Promise<readonly (object | undefined)[]>
  put(table: { readonly name: string }, row: unknown): Promise<void>
}

export async function clusterSchema(client: Client, name: string): Promise<ClusterSchema> {
  const version = await versionIn(client, name)
  const schema: DefinedSchema = { name, tables: [], model: version.schema }
  return { db: await client.tables(schema), version }
}

/** The version of a schema that the cluster has; says how to give it one. */
export async function versionIn(client: Client, name: string): Promise<SchemaVersion> {
  const version = await client.schemaVersion(name)
  if (version !== undefined) return version
  const message = `the cluster has no schema ${name}; apply it: trilithon schema apply FILE`
  throw new CliError(message, exitFailure)
}

/** One row that may be stored. */
interface GoodRow {
  readonly place: number
  readonly root: RootKey
  readonly group: GroupId
  /** As the file says it: a moment may be a bigint. */
  readonly given: Values
  /** As it is stored. */
  readonly row: Values
  readonly key: Values
}

export function rowSink(
  { db, version }: ClusterSchema,
  name: string,
  patience: Patience,
): Sink<Values> {
  const { tables } = compileSchema(version)
  const table = present(tables.get(name), 'load: the schema has the table')
  const rootTable = present(tables.get(table.root), 'load: a table has a root')
  if (table.sequence !== undefined) {
    const message = `rows of table ${name} get a number each when they are inserted, so a file of them cannot be loaded twice; load it with a program of your own`
    throw new CliError(message, exitUsage)
  }
  const lines = new Lines<GroupId>()
  const goodRow = (given: Values, place: number): GoodRow | PutAnswer => {
    try {
      const row = checkRow(table, given, { withSequence: false, withUnknown: true })
      const key = Object.fromEntries(table.key.map((part) => [part.name, row[part.name]]))
      const root = buildRoot(table, rootTable, key)
      return { place, given, row, key, root, group: db.group(root) }
    } catch (error) {
      return toPutAnswer(error)
    }
  }
  return {
    put: async (rows) => {
      const answers: PutAnswer[] = []
      const groups = new Map<GroupId, { readonly root: RootKey; readonly rows: GoodRow[] }>()
      for (const [place, given] of rows.entries()) {
        const good = goodRow(given, place)
        if (!('row' in good)) {
          answers[place] = good
          continue
        }
        const { root, group } = good
        const known = groups.get(group) ?? { root, rows: [] }
        known.rows.push(good)
        groups.set(group, known)
      }
      await Promise.all(
        [...groups].map(([group, { root, rows: some }]) =>
          lines.after(group, () => putRows({ db, table, root, patience }, some, answers)),
        ),
      )
      return answers
    },
  }
}

/** Work one after another for each key: of two rows with one key the later one of the file stays. */
class Lines<Key> {
  readonly #last = new Map<Key, Promise<void>>()

  after(key: Key, work: () => Promise<void>): Promise<void> {
    const done = (this.#last.get(key) ?? Promise.resolve()).then(work).finally(() => {
      if (this.#last.get(key) === done) this.#last.delete(key)
    })
    this.#last.set(key, done)
    return done
  }
}

/** A row's key begins with that of its root row, maybe under other names. */
function buildRoot(table: CompiledTable, root: CompiledTable, key: Values): RootKey {
  const parts = root.key.map(({ name }, i) => [name, key[table.key[i]?.name ?? name]] as const)
  return { table: root.name, key: Object.fromEntries(parts) }
}

/** Where the rows of one group go. */
interface Target {
  readonly db: Tables
  readonly table: CompiledTable
  readonly root: RootKey
  readonly patience: Patience
}

async function putRows(
  target: Target,
  rows: readonly GoodRow[],
  answers: PutAnswer[],
): Promise<void> {
  try {
    const given = await commitRows(target, rows)
    for (const [i, { place }] of rows.entries()) {
      answers[place] = given[i] ?? { kind: 'rejected', reason: 'nothing is said of it' }
    }
  } catch (error) {
    const answer = toPutAnswer(error)
    // Of several rows it may be one that is refused, or they may be too much for one transaction.
    if (answer.kind !== 'rejected' || rows.length === 1) {
      for (const { place } of rows) answers[place] = answer
      return
    }
    const half = Math.ceil(rows.length / 2)
    await putRows(target, rows.slice(0, half), answers)
    await putRows(target, rows.slice(half), answers)
  }
}

/** Rows of one group in one transaction, which is begun anew while the cluster refuses it for now. */
async function commitRows(
  { db, table, root, patience }: Target,
  rows: readonly GoodRow[],
): Promise<readonly PutAnswer[]> {
  const waits = patience.begin()
  for (;;) {
    try {
      const { value } = await db.transaction(root, (tx) => putAll(tx, table, rows))
      return value
    } catch (error) {
      if (!(error instanceof StoreError && (await waits.again(error)))) throw error
    }
  }
}

async function putAll(
  tx: PlainTransaction,
  table: CompiledTable,
  rows: readonly GoodRow[],
): Promise<readonly PutAnswer[]> {
  const before = await tx.getMany(
    table,
    rows.map(({ key }) => key),
  )
  const answers: PutAnswer[] = []
  // A later line with the key of an earlier one is compared with that, not with what was there.
  const written = new Map<string, Values>()
  for (const [i, { given, row, key }] of rows.entries()) {
    const parts = table.key.map(({ name }) => key[name])
    const keyText = latin1(writeRowKey(table, parts).bytes)
    const found = written.get(keyText) ?? before[i]
    if (found !== undefined && isEqualValue(found, row)) {
      answers.push({ kind: 'already-there' })
      continue
    }
    const refusal = await putOne(tx, table, given)
    if (refusal === undefined) written.set(keyText, row)
    answers.push(refusal ?? { kind: found === undefined ? 'created' : 'changed' })
  }
  return answers
}

/** Says so when the row is refused, which leaves the transaction as it was before it. */
async function putOne(
  tx: PlainTransaction,
  table: CompiledTable,
  row: Values,
): Promise<PutAnswer | undefined> {
  try {
    await tx.put(table, row)
    return undefined
  } catch (error) {
    const answer = toPutAnswer(error)
    // Perhaps the transaction is too large, not the row. Then it cannot take back the writes of the row.
    const isTooLarge = error instanceof StoreError && error.code === 'too-large'
    if (answer.kind !== 'rejected' || isTooLarge) throw error
    return answer
  }
}

/** An error that lies in a row rejects the row; any other error ends the load. */
function toPutAnswer(error: unknown): PutAnswer {
  if (!(error instanceof StoreError)) throw error
  if (endsLoad[error.code]) return { kind: 'failed', error }
  return { kind: 'rejected', reason: `${error.code}: ${error.message}` }
}
