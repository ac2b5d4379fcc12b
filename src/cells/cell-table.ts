/**
 * Cells as rows: a schema like any other, and the reads and writes of its tables. A shard is a root, its
 * cells are the rows of one table below it, and the shard's log is an index by the number that each row gets
 * at commit. Nothing here is done by other means than programs have (`tables`).
 *
 *   Shard   (datastore, shard)                             its key names the group; written by purges
 *   Cell    (datastore, shard, row_key, column, ref_key)   versions of a column, and columns of a row,
 *                                                          are ranges in key order
 *   Purged  (datastore, shard, row_key, column)            columns that lost cells to a purge: how far
 *
 * What triggers keep is beside them, in the same schema: `trigger-schema.ts`; and what indexes there are:
 * `definition-table.ts`.
 *
 * The number comes with the commit, in the row and in its index entry at once, so both appear in the
 * same instant on every replica (CELL-3).
 */
import { assert, present } from '../base/assert.ts'
import { equalBytes, sha256 } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import { groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { cellsSchemaName } from '../base/placed-group.ts'
import { formatIntent } from '../group/transaction.ts'
import { worklistPrefix } from '../group/worklist-key.ts'
import type { CompiledSchema, CompiledTable } from '../tables/compiled.ts'
import { encodePart } from '../tables/key-codec.ts'
import { groupContext, rootOfGroup } from '../tables/group-context.ts'
import { openTables } from '../tables/open.ts'
import { rootKey, type RootKey, type Tables } from '../tables/tables.ts'
import type { Page } from '../base/page.ts'
import type { ScanOptions } from '../tables/read-rows.ts'
import { writeRowKey } from '../tables/row-key.ts'
import { bytesField, bytesOnly } from '../tables/bytes-field.ts'
import { putNote } from '../tables/notes.ts'
import { fieldWith, readSequence, unpackValue } from '../tables/row-value.ts'
import type { GroupReader, GroupTransaction, Inserted } from '../tables/types.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { IntentSource } from '../txn/session.ts'
import { defineSchema } from '../../schema/define.ts'
import type { Key, Range, Row } from '../../schema/infer.ts'
import type { Schema } from '../../schema/model.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { firstVersion, nextVersion, type SchemaVersion } from '../../schema/version.ts'
import type { PackedBody } from './body.ts'
import type { CellName, ShardName, StoredCell } from './cell.ts'
import { datastoreTableName, definitionTables, ttlTables } from './definition-table.ts'
import { declaredTables } from './declared-table.ts'
import { indexedTables, toUuid } from './indexed-table.ts'
import { PlacedSchemas } from './placed-schema.ts'
import { firstShardTable, triggerTables } from './trigger-schema.ts'

const shardTable = table('Shard', {
  datastore: t.string(),
  shard: t.int32(),
  // The highest added id that a purge has taken out of the log: above it the log has no gaps.
  purged_to: t.integer().optional(),
})
  .key('datastore', 'shard')
  .root()

const firstCellTable = table('Cell', {
  datastore: t.string(),
  shard: t.int32(),
  row_key: t.uuid(),
  column: t.string(),
  ref_key: t.integer(),
  added_id: t.sequence(),
  // Names the intent that wrote it, so that its retries learn that it did (CELL-4).
  creator: t.bytes(),
  body_hash: t.bytes(),
  body: t.bytes(),
  // Seconds from its commit until it expires (TTL-3); absent: it stays.
  ttl: t.integer().optional(),
})
  .key('datastore', 'shard', 'row_key', 'column', 'ref_key')
  .in(shardTable)
  .localIndex('CellsByAddedId', ['datastore', 'shard', 'added_id'])

// Those of one TTL fall due in the order in which they were added.
const ttlParts = ['datastore', 'shard', 'ttl', 'added_id'] as const
const cellTable = firstCellTable.localIndex('CellsByTtl', ttlParts, { wherePresent: true })

const purgedTable = table('Purged', {
  datastore: t.string(),
  shard: t.int32(),
  row_key: t.uuid(),
  column: t.string(),
  // The highest ref key that was purged: nothing is written up to it any more (CELL-7).
  ref_key: t.integer(),
})
  .key('datastore', 'shard', 'row_key', 'column')
  .in(shardTable)

const schema = defineSchema(cellsSchemaName, [
  shardTable,
  cellTable,
  purgedTable,
  ...triggerTables,
  ...indexedTables,
  ...definitionTables,
  ...ttlTables,
  ...declaredTables,
])
const kept = [...triggerTables, ...indexedTables, ...definitionTables]

const firstModel = defineSchema(cellsSchemaName, [firstShardTable, firstCellTable]).model
/** Before cells could expire. */
const earlierModel = defineSchema(cellsSchemaName, [
  shardTable,
  firstCellTable,
  purgedTable,
  ...kept,
]).model
/** Before datastores were declared. */
const ttlModel = defineSchema(cellsSchemaName, [
  shardTable,
  cellTable,
  purgedTable,
  ...kept,
  ...ttlTables,
]).model

/** The schema of cells as every cluster has it; no other one may have its name. */
export const cellVersion: SchemaVersion = [earlierModel, ttlModel, schema.model].reduce(
  versionAfter,
  firstVersion(firstModel),
)

/** Tables keep the numbers that they had, and stored rows their bytes. */
function versionAfter(before: SchemaVersion, model: Schema): SchemaVersion {
  const step = nextVersion(before, model)
  assert(step.kind === 'next', 'cells: their schema follows from its earlier versions')
  return step.version
}

const schemas = new PlacedSchemas(cellVersion, shardTable.name)
const { compiled } = schemas.plain
const compiledCell = present(compiled.tables.get(cellTable.name), 'cells: they are a table')
const bodyNumber = numberOf('body')
const ttlNumber = numberOf('ttl')

function numberOf(name: string): number {
  const stored = compiledCell.stored.find((one) => one.name === name)
  return present(stored, 'cells: their bodies and TTLs are stored').number
}

export const creatorBytes = 8
export const cellExpiryTopic = 'cell-expiry'
/** On the worklist of each shard that has cells which expire, as of the last put of one. */
export const cellExpiryNote: Uint8Array = worklistPrefix(cellExpiryTopic)

export interface CellRow {
  readonly cell: StoredCell
  readonly bodyHash: Uint8Array
  readonly creator: Uint8Array
  /** Seconds from its commit until it expires; absent: it stays. */
  readonly ttl: number | undefined
}

export interface CellTablesOptions {
  readonly clock: Clock
  readonly random: Random
  /** For calls that name no time-out of their own, in milliseconds. */
  readonly timeoutMs?: number
  /** Where intents come from, when several of these share them. */
  readonly intents?: IntentSource
}

export function openCellTables(port: GroupPort, options: CellTablesOptions): Tables {
  return openTables(schema, port, { ...options, version: cellVersion })
}

/** The tables as the cells of a datastore need them: its shards, and entries of its indexes, are where its name says. */
export function placedCellTables(
  port: GroupPort,
  options: CellTablesOptions,
): (datastore: string) => Tables {
  const opened = new WeakMap<SchemaVersion, Tables>()
  return (datastore) => {
    const { version } = schemas.of(datastore)
    const known = opened.get(version)
    if (known !== undefined) return known
    const placed = { ...schema, model: version.schema }
    const tables = openTables(placed, port, { ...options, version })
    opened.set(version, tables)
    return tables
  }
}

/** The tables that a group of cells, or of their indexes, is of. */
export function cellSchemaOf(group: GroupId): CompiledSchema {
  return schemas.ofGroup(group).compiled
}

/** Names the group of a shard to transactions and reads. */
export function shardKey({ datastore, shard }: ShardName): RootKey {
  return rootKey(shardTable, { datastore, shard })
}

export function findShardGroup({ datastore, shard }: ShardName): GroupId {
  const placed = schemas.of(datastore).compiled
  const { group } = groupContext(placed, shardTableOf(placed), { datastore, shard })
  assert(schemas.ofGroup(group).compiled === placed, 'CELL-9: a shard is where its name says')
  return group
}

function shardTableOf({ tables }: CompiledSchema): CompiledTable {
  return present(tables.get(shardTable.name), 'cells: shards are a table')
}

/** The shard whose group this is; undefined when it is of no shard. */
export function shardOfGroup(group: GroupId): ShardName | undefined {
  const [datastore, shard] = rootOfGroup(cellSchemaOf(group), group)?.values ?? []
  return typeof datastore === 'string' && typeof shard === 'number'
    ? { datastore, shard }
    : undefined
}

/** Names the intent that creates a cell. */
export function hashCreator(intent: {
  readonly session: string
  readonly sequence: number
}): Uint8Array {
  return sha256(formatIntent(intent)).subarray(0, creatorBytes)
}

/** Of a datastore's own rows, or of a copy of them. */
export function findDatastoreGroup(datastore: string): GroupId {
  const compiledTable = present(compiled.tables.get(datastoreTableName), 'cells: it is a table')
  return groupContext(compiled, compiledTable, { datastore }).group
}

/** A page of the shard's cells, by row. */
export async function scanCells(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  options: ScanOptions,
): Promise<Page<CellRow>> {
  const page = await rows.scan(cellTable, { datastore, shard }, options)
  return { ...page, items: page.items.map((row) => cellRow(rows, row)) }
}

/** Names of the groups of a datastore's shards begin so. */
export function shardsPrefix(datastore: string): GroupId {
  const { key, groupPrefix, placement } = shardTableOf(schemas.of(datastore).compiled)
  const place = placement?.kind === 'fixed' ? placement.bytes : new Uint8Array()
  const [part] = key
  const own = part === undefined ? new Uint8Array() : encodePart(part, datastore)
  return groupOfBytes(Buffer.concat([groupPrefix, place, own]))
}

/** Rejects with `already-exists`. */
export async function insertCell(
  tx: GroupTransaction,
  of: ShardName,
  name: CellName,
  {
    body,
    creator,
    ttl,
  }: {
    readonly body: PackedBody
    readonly creator: Uint8Array
    readonly ttl: number | undefined
  },
): Promise<Inserted> {
  const inserted = await tx.insert(cellTable, {
    datastore: of.datastore,
    shard: of.shard,
    row_key: toUuid(name.rowKey),
    column: name.column,
    ref_key: name.refKey,
    creator,
    body_hash: body.hash,
    body: body.bytes,
    ...(ttl !== undefined && { ttl }),
  })
  if (ttl !== undefined) putNote(tx, cellExpiryNote)
  return inserted
}

/** The key of a cell's row in the group of its shard; its name is checked, in lower case. */
export function cellRowKey(
  { datastore, shard }: ShardName,
  { rowKey, column, refKey }: CellName,
): Uint8Array {
  return writeRowKey(compiledCell, [datastore, shard, rowKey, column, refKey]).bytes
}

/** A cell out of its row as it is stored, with its TTL; the body is a view of that. */
export function cellOfRow(
  { rowKey, column, refKey }: CellName,
  { value, timestamp: createdAt }: { readonly value: Uint8Array; readonly timestamp: Timestamp },
): Pick<CellRow, 'cell' | 'ttl'> {
  const plain = bytesOnly(value) ? bytesField(value, bodyNumber) : undefined
  const fields = plain === undefined ? unpackValue(value).fields : []
  const body = plain ?? fieldWith(fields, bodyNumber)
  const addedId = readSequence(value)
  if (addedId === undefined || !(body instanceof Uint8Array)) {
    throw new StoreError('schema-mismatch', 'a row is not stored as cells are')
  }
  const ttl = fieldWith(fields, ttlNumber)
  const cell = { rowKey, column, refKey, addedId, createdAt, body }
  return { cell, ttl: typeof ttl === 'number' ? ttl : undefined }
}

/** In the order of `names`. */
export async function getCells(
  rows: GroupReader,
  of: ShardName,
  names: readonly CellName[],
): Promise<readonly (CellRow | undefined)[]> {
  const keys = names.map((name) => cellKey(of, name))
  const found = await rows.getMany(cellTable, keys)
  return found.map((row) => row && cellRow(rows, row))
}

/** Ref keys from `from`: upwards, or downwards when `reverse`. */
export async function scanColumn(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  { rowKey, column, from }: Omit<CellName, 'refKey'> & { readonly from?: number },
  options: ScanOptions,
): Promise<Page<CellRow>> {
  const reverse = options.reverse === true
  const first = from ?? (reverse ? Number.MAX_SAFE_INTEGER : 0)
  const versions = reverse ? { lte: first } : { gte: first }
  const query = { datastore, shard, row_key: toUuid(rowKey), column, ref_key: versions }
  const page = await rows.scan(cellTable, query, options)
  return { ...page, items: page.items.map((row) => cellRow(rows, row)) }
}

/** The name of a row's first column that is in the range. */
export async function firstColumn(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  rowKey: string,
  column: Range<string>,
): Promise<string | undefined> {
  const query = { datastore, shard, row_key: toUuid(rowKey), column }
  const page = await rows.scan(cellTable, query, { limit: 1 })
  return page.items[0]?.column
}

export async function hasCells(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  rowKey: string,
): Promise<boolean> {
  const query = { datastore, shard, row_key: toUuid(rowKey) }
  return (await rows.scan(cellTable, query, { limit: 1 })).items.length > 0
}

/** A place in a shard's log. */
export interface LogEntry {
  readonly addedId: number
  readonly createdAt: Timestamp
}

/** At most `limit` places of the log above `after`, and the cells of some of them. */
export async function scanLog(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  after: number,
  limit: number,
): Promise<(from: number, to: number) => Promise<readonly CellRow[]>> {
  const query = { datastore, shard, added_id: { gt: after } }
  const page = await rows.index(cellTable, 'CellsByAddedId', query, { limit })
  return async (from, to) => {
    const cells = await page.rows(from, to)
    return cells.map((row) => cellRow(rows, row))
  }
}

/** The shortest TTL above `after` seconds that a cell of the shard has. */
export async function nextTtl(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  after: number,
): Promise<number | undefined> {
  const query = { datastore, shard, ttl: { gt: after } }
  const page = await rows.index(cellTable, 'CellsByTtl', query, { limit: 1 })
  return page.items[0]?.ttl
}

/** When each of the first cells of a TTL was added, in the order in which they were: they fall due in it. */
export async function scanTtl(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  ttl: number,
  options: ScanOptions,
): Promise<Page<LogEntry & CellName>> {
  const page = await rows.index(cellTable, 'CellsByTtl', { datastore, shard, ttl }, options)
  const items = page.items.map((entry) => ({
    rowKey: entry.row_key,
    column: entry.column,
    refKey: entry.ref_key,
    addedId: entry.added_id,
    createdAt: readTimestamp(rows, entry),
  }))
  return { items, cursor: page.cursor }
}

/** The first entry above `after`, or with `reverse` the last one; entries alone, without their cells. */
export async function logEntry(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  { after, reverse = false }: { readonly after: number; readonly reverse?: boolean },
): Promise<LogEntry | undefined> {
  const query = { datastore, shard, added_id: { gt: after } }
  const page = await rows.index(cellTable, 'CellsByAddedId', query, { limit: 1, reverse })
  const [entry] = page.items
  return entry && { addedId: entry.added_id, createdAt: readTimestamp(rows, entry) }
}

/** The highest ref key of a column that was purged; undefined when none was. */
export async function purgedRefKey(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  { rowKey, column }: Omit<CellName, 'refKey'>,
): Promise<number | undefined> {
  const key = { datastore, shard, row_key: toUuid(rowKey), column }
  return (await rows.get(purgedTable, key))?.ref_key
}

/** The highest added id that a purge has taken out of the log; 0 when there was none. */
export async function purgedAddedId(
  rows: GroupReader,
  { datastore, shard }: ShardName,
): Promise<number> {
  return (await rows.get(shardTable, { datastore, shard }))?.purged_to ?? 0
}

/**
 * Is in conflict with all who write cells or entries in the shard by what they read before: each of them
 * reads this row.
 */
export async function writeShardRow(
  tx: GroupTransaction,
  { datastore, shard }: ShardName,
): Promise<void> {
  const before = await tx.get(shardTable, { datastore, shard })
  await tx.put(shardTable, { ...before, datastore, shard })
}

/** Takes cells out, with their places in the log, and notes how far their columns and the log were purged. */
export async function removeCells(
  tx: GroupTransaction,
  of: ShardName,
  cells: readonly StoredCell[],
): Promise<void> {
  const { datastore, shard } = of
  const purged = new Map<string, StoredCell>()
  for (const cell of cells) {
    await tx.delete(cellTable, cellKey(of, cell))
    const name = `${cell.rowKey}/${cell.column}`
    if (cell.refKey >= (purged.get(name)?.refKey ?? 0)) purged.set(name, cell)
  }
  for (const { rowKey, column, refKey } of purged.values()) {
    const before = (await purgedRefKey(tx, of, { rowKey, column })) ?? 0
    const key = { datastore, shard, row_key: toUuid(rowKey), column }
    await tx.put(purgedTable, { ...key, ref_key: Math.max(before, refKey) })
  }
  const last = Math.max(await purgedAddedId(tx, of), ...cells.map(({ addedId }) => addedId))
  await tx.put(shardTable, { datastore, shard, purged_to: last })
}

export function hasBody({ bodyHash }: CellRow, body: PackedBody): boolean {
  return equalBytes(bodyHash, body.hash)
}

export function wasCreatedBy(row: CellRow, creator: Uint8Array): boolean {
  return equalBytes(row.creator, creator)
}

function cellKey(
  { datastore, shard }: ShardName,
  { rowKey, column, refKey }: CellName,
): Key<typeof cellTable> {
  return { datastore, shard, row_key: toUuid(rowKey), column, ref_key: refKey }
}

function cellRow(rows: GroupReader, row: Row<typeof cellTable>): CellRow {
  const { row_key: rowKey, column, ref_key: refKey, added_id: addedId, body } = row
  const createdAt = readTimestamp(rows, row)
  const cell = { rowKey, column, refKey, addedId, createdAt, body }
  return { cell, bodyHash: row.body_hash, creator: row.creator, ttl: row.ttl }
}

/** A reader of cells has written none in the same transaction. */
function readTimestamp(rows: GroupReader, row: object): Timestamp {
  const timestamp = rows.timestampOf(row)
  assert(timestamp !== undefined, 'CELL-3: a cell that is read has been committed')
  return timestamp
}
