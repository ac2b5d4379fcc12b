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
import { formatIntent } from '../group/transaction.ts'
import { compileSchema } from '../tables/compile.ts'
import { encodePart } from '../tables/key-codec.ts'
import { groupContext, rootOfGroup } from '../tables/group-context.ts'
import { openTables } from '../tables/open.ts'
import { rootKey, type GlobalIndexOptions, type RootKey, type Tables } from '../tables/tables.ts'
import type { Page } from '../base/page.ts'
import type { ScanOptions } from '../tables/read-rows.ts'
import { writeRowKey } from '../tables/row-key.ts'
import { bytesField } from '../tables/bytes-field.ts'
import { fieldWith, readSequence, unpackValue } from '../tables/row-value.ts'
import type { GroupReader, GroupTransaction, Inserted } from '../tables/types.ts'
import type { GroupPort } from '../group/group-port.ts'
import { defineSchema } from '../../schema/define.ts'
import type { Key, Range, Row } from '../../schema/infer.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { isUuid, type Uuid } from '../../schema/values.ts'
import { firstVersion, nextVersion, type SchemaVersion } from '../../schema/version.ts'
import type { PackedBody } from './body.ts'
import type { CellName, ShardName, StoredCell } from './cell.ts'
import { datastoreTableName, definitionTables } from './definition-table.ts'
import { firstShardTable, triggerTables } from './trigger-schema.ts'

const shardTable = table('Shard', {
  datastore: t.string(),
  shard: t.int32(),
  // The highest added id that a purge has taken out of the log: above it the log has no gaps.
  purged_to: t.integer().optional(),
})
  .key('datastore', 'shard')
  .root()

const cellTable = table('Cell', {
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
})
  .key('datastore', 'shard', 'row_key', 'column', 'ref_key')
  .in(shardTable)
  .localIndex('CellsByAddedId', ['datastore', 'shard', 'added_id'])

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

/**
 * The entries that the shard's rows have in indexes over cells: a row each, kept with the cells that it is
 * of.
 */
const indexedTable = table('Indexed', {
  datastore: t.string(),
  shard: t.int32(),
  index_name: t.string(),
  row_key: t.uuid(),
  place: t.bytes(),
  sort: t.bytes(),
  fields: t.bytes(),
})
  .key('datastore', 'shard', 'index_name', 'row_key')
  .in(shardTable)
  .globalIndex('IndexedByPlace', ['place', 'sort'], { storing: ['fields'], shards: 256 })

const schemaName = 'Schemaless'
const schema = defineSchema(schemaName, [
  shardTable,
  cellTable,
  purgedTable,
  ...triggerTables,
  indexedTable,
  ...definitionTables,
])

/** The schema of cells as every cluster has it; no other one may have its name. */
export const cellVersion: SchemaVersion = versionAfter(
  firstVersion(defineSchema(schemaName, [firstShardTable, cellTable]).model),
)

/** Tables keep the numbers that they had, and stored rows their bytes. */
function versionAfter(first: SchemaVersion): SchemaVersion {
  const step = nextVersion(first, schema.model)
  assert(step.kind === 'next', 'cells: their schema follows from its first version')
  return step.version
}

const compiled = compileSchema(cellVersion)
const compiledShard = present(compiled.tables.get(shardTable.name), 'cells: shards are a table')
const compiledCell = present(compiled.tables.get(cellTable.name), 'cells: they are a table')
const { number: bodyNumber } = present(
  compiledCell.stored.find(({ name }) => name === 'body'),
  'cells: their bodies are stored',
)

export const creatorBytes = 8

export interface CellRow {
  readonly cell: StoredCell
  readonly bodyHash: Uint8Array
  readonly creator: Uint8Array
}

export function openCellTables(
  port: GroupPort,
  options: { readonly clock: Clock; readonly random: Random },
): Tables {
  return openTables(schema, port, { ...options, version: cellVersion })
}

/** Names the group of a shard to transactions and reads. */
export function shardKey({ datastore, shard }: ShardName): RootKey {
  return rootKey(shardTable, { datastore, shard })
}

export function findShardGroup({ datastore, shard }: ShardName): GroupId {
  return groupContext(compiled, compiledShard, { datastore, shard }).group
}

/** The shard whose group this is; undefined when it is of no shard. */
export function shardOfGroup(group: GroupId): ShardName | undefined {
  const [datastore, shard] = rootOfGroup(compiled, group)?.values ?? []
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

/** The entry of a row in an index: the place of its entry, its order there, and its fields. */
export interface IndexedRow {
  readonly place: Uint8Array
  readonly sort: Uint8Array
  readonly fields: Uint8Array
}

export interface IndexedEntry extends Pick<IndexedRow, 'sort' | 'fields'> {
  readonly row_key: Uuid
}

export async function putIndexed(
  tx: GroupTransaction,
  { datastore, shard }: ShardName,
  { index, rowKey }: { readonly index: string; readonly rowKey: string },
  row: IndexedRow | undefined,
): Promise<void> {
  const name = { index_name: index, row_key: toUuid(rowKey) }
  if (row === undefined) return tx.delete(indexedTable, { datastore, shard, ...name })
  return tx.put(indexedTable, { datastore, shard, ...name, ...row })
}

/** The entry of a row in an index, by the shard that the row is in. */
export async function getIndexed(
  rows: GroupReader,
  { datastore, shard }: ShardName,
  index: string,
  rowKey: string,
): Promise<IndexedRow | undefined> {
  const key = { datastore, shard, index_name: index, row_key: toUuid(rowKey) }
  return rows.get(indexedTable, key)
}

/** Entries at a place, by their second fields. */
export function scanPlace(
  tables: Tables,
  place: Uint8Array,
  sort: { readonly gte?: Uint8Array; readonly lte?: Uint8Array },
  options: GlobalIndexOptions,
): Promise<Page<IndexedEntry>> {
  // Without bounds: a range that has none is refused.
  const query = Object.keys(sort).length === 0 ? { place } : { place, sort }
  return tables.index(indexedTable, 'IndexedByPlace', query, options)
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

/** A row that has something in an index, by the shard that it is in. */
export interface IndexedName {
  readonly index: string
  readonly rowKey: string
}

/** A page of them; of all indexes, when none is named. */
export async function scanIndexed(
  rows: GroupReader,
  of: ShardName,
  index: string | undefined,
  options: ScanOptions,
): Promise<Page<IndexedName>> {
  const named = index === undefined ? {} : { index_name: index }
  const query = { datastore: of.datastore, shard: of.shard, ...named }
  const page = await rows.scan(indexedTable, query, options)
  const items = page.items.map((row) => ({ index: row.index_name, rowKey: row.row_key }))
  return { ...page, items }
}

/** Names of the groups of a datastore's shards begin so. */
export function shardsPrefix(datastore: string): GroupId {
  const [part] = compiledShard.key
  const own = part === undefined ? new Uint8Array() : encodePart(part, datastore)
  return groupOfBytes(Buffer.concat([compiledShard.groupPrefix, own]))
}

/** Rejects with `already-exists`. */
export function insertCell(
  tx: GroupTransaction,
  of: ShardName,
  name: CellName,
  { body, creator }: { readonly body: PackedBody; readonly creator: Uint8Array },
): Promise<Inserted> {
  return tx.insert(cellTable, {
    datastore: of.datastore,
    shard: of.shard,
    row_key: toUuid(name.rowKey),
    column: name.column,
    ref_key: name.refKey,
    creator,
    body_hash: body.hash,
    body: body.bytes,
  })
}

/** The key of a cell's row in the group of its shard; its name is checked, in lower case. */
export function cellRowKey(
  { datastore, shard }: ShardName,
  { rowKey, column, refKey }: CellName,
): Uint8Array {
  return writeRowKey(compiledCell, [datastore, shard, rowKey, column, refKey]).bytes
}

/** A cell out of its row as it is stored; the body is a view of that. */
export function cellOfRow(
  { rowKey, column, refKey }: CellName,
  { value, timestamp: createdAt }: { readonly value: Uint8Array; readonly timestamp: Timestamp },
): StoredCell {
  const body = bytesField(value, bodyNumber) ?? fieldWith(unpackValue(value).fields, bodyNumber)
  const addedId = readSequence(value)
  if (addedId === undefined || !(body instanceof Uint8Array)) {
    throw new StoreError('schema-mismatch', 'a row is not stored as cells are')
  }
  return { rowKey, column, refKey, addedId, createdAt, body }
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

function toUuid(rowKey: string): Uuid {
  const lower = rowKey.toLowerCase()
  assert(isUuid(lower), 'cells: a row key was not checked')
  return lower
}

function cellRow(rows: GroupReader, row: Row<typeof cellTable>): CellRow {
  const { row_key: rowKey, column, ref_key: refKey, added_id: addedId, body } = row
  const createdAt = readTimestamp(rows, row)
  const cell = { rowKey, column, refKey, addedId, createdAt, body }
  return { cell, bodyHash: row.body_hash, creator: row.creator }
}

/** A reader of cells has written none in the same transaction. */
function readTimestamp(rows: GroupReader, row: object): Timestamp {
  const timestamp = rows.timestampOf(row)
  assert(timestamp !== undefined, 'CELL-3: a cell that is read has been committed')
  return timestamp
}
