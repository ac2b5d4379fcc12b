/**
 * Compares a global index with the rows of its table: entries that are missing, left over, or hold
 * something else than their row says (IDX-1). Rows change meanwhile, and changes are on their way. The
 * comparison reads a wrong entry again until no change of it is on its way, and reports it only then.
 */
import { compareBytes, latin1 } from '../base/bytes.ts'
import type { GroupId } from '../base/ids.ts'
import { type KeyRange } from '../group/outcome.ts'
import { keyAfter, prefixRange } from '../txn/key-range.ts'
import type { StoredRow } from '../txn/reads.ts'
import { runTransaction } from '../txn/run.ts'
import { pause } from '../time/moments.ts'
import { upkeepBounds } from '../indexes/limits.ts'
import { indexFaultsMax, type IndexFault, type IndexReport } from '../indexes/report.ts'
import { buildEntries, entryWriter, type Entry } from './entries.ts'
import { EntryBook, readDistinct } from './entry-book.ts'
import { decodeGlobalKey, groupOfEntry, indexGroups } from './global-entries.ts'
import { inTurns, rootContext } from './global-read.ts'
import { buildAddition } from './global-writes.ts'
import { encodeEntryState } from './index-worklist.ts'
import type { Misfits } from '../indexes/misfits.ts'
import { stampBytes } from './index-batcher.ts'
import {
  findContext,
  countGroups,
  fittingEntries,
  forEachGroup,
  rowIn,
  rowRange,
  type FoundRow,
  type GlobalUpkeep,
} from './index-parts.ts'
import { keyWords } from './key-check.ts'
import { PortGroups } from './port-groups.ts'
import type { Values } from './row-check.ts'
import { decodeRow } from './row-value.ts'

/** An index of tables against all rows. */
export interface BuiltIndexReport extends IndexReport {
  readonly groups: number
  readonly misfits: Misfits
}

/** An entry, the row that it is of, and where both are. */
interface Place {
  readonly source: GroupId
  readonly rowKey: Uint8Array
  /** Of the row, by part. */
  readonly key: readonly unknown[]
  readonly target: GroupId
  readonly entryKey: Uint8Array
}

export async function compareGlobal(parts: GlobalUpkeep): Promise<BuiltIndexReport> {
  const faults: IndexFault[] = []
  const add = async (place: Place): Promise<void> => {
    if (faults.length >= indexFaultsMax) return
    const fault = await faultAt(parts, place)
    if (fault !== undefined) faults.push(fault)
  }
  const total = (await countGroups(parts)) + parts.index.shards
  let [groups, rows, entries] = [0, 0, 0]
  const step = (): void => parts.onProgress({ phase: 'comparing', done: ++groups, total })
  await forEachGroup(parts, async (group) => {
    const compared = await compareRows(parts, group, add)
    rows += compared
    step()
  })
  await inTurns(indexGroups(parts.index), async (target) => {
    const compared = await compareEntries(parts, target, add)
    entries += compared
    step()
  })
  const misfits = parts.misfits.all
  return { groups: groups - parts.index.shards, rows, entries, faults, misfits }
}

/** Takes entries that no row has out of the index, by the worklists of their groups; resolves with how many. */
export async function removeLeftOvers(parts: GlobalUpkeep): Promise<number> {
  let removed = 0
  await inTurns(indexGroups(parts.index), (target) =>
    compareEntries(parts, target, async (place) => {
      await rightenEntry(parts, place)
      removed += 1
    }),
  )
  return removed
}

type Suspect = (place: Place) => Promise<void>

/** Are the entries of a group's rows there, with what they hold? */
async function compareRows(parts: GlobalUpkeep, group: GroupId, suspect: Suspect): Promise<number> {
  const { table } = parts
  const context = findContext(parts, group)
  if (context === undefined) return 0
  let count = 0
  for await (const page of readPages(parts, group, rowRange)) {
    const rows = page.flatMap((stored) => rowIn(table, context, stored) ?? [])
    count += rows.length
    const said = rows.flatMap((row) =>
      fittingEntries(parts, row).map((entry) => ({ place: toPlace(parts, row, entry), entry })),
    )
    await inTurns([...groupBy(said, ({ place }) => place.target)], async ([target, some]) => {
      const keys = some.map(({ entry }) => entry.key)
      const there = await openReads(parts).getMany(target, keys)
      for (const [at, { place, entry }] of some.entries()) {
        const found = there[at]
        if (found === undefined || !holds(found, entry)) await suspect(place)
      }
    })
  }
  return count
}

/** Is every entry of a group of the index one of the row that it names? */
async function compareEntries(
  parts: GlobalUpkeep,
  target: GroupId,
  suspect: Suspect,
): Promise<number> {
  const { schema, table, index } = parts
  const range = prefixRange(entryWriter(index).bytes)
  let count = 0
  for await (const page of readPages(parts, target, range)) {
    count += page.length
    const places = page.flatMap(({ key }): Place | readonly Place[] => {
      const decoded = decodeGlobalKey(table, index, key)
      if (decoded === undefined) return []
      const { rowKey, values } = decoded
      const source = rootContext(schema, table, values).group
      return { source, rowKey, key: values, target, entryKey: key }
    })
    await inTurns([...groupBy(places, ({ source }) => source)], async ([source, some]) => {
      const keys = some.map(({ rowKey }) => rowKey)
      const rows = await readDistinct(keys, (distinct) =>
        openReads(parts).getMany(source, distinct),
      )
      const book = new EntryBook(table, index)
      for (const [at, place] of some.entries()) {
        const stored = rows[at]
        const entries = stored && book.of(stored, place.key).entries
        if (entries?.has(latin1(place.entryKey)) !== true) await suspect(place)
      }
    })
  }
  return count
}

function groupBy<Item>(
  items: readonly Item[],
  pickGroup: (item: Item) => GroupId,
): ReadonlyMap<GroupId, readonly Item[]> {
  const byGroup = new Map<GroupId, Item[]>()
  for (const item of items) {
    const group = pickGroup(item)
    const others = byGroup.get(group)
    if (others === undefined) byGroup.set(group, [item])
    else others.push(item)
  }
  return byGroup
}

/** The fault at a place, once nothing that concerns the place is on its way. */
async function faultAt(parts: GlobalUpkeep, place: Place): Promise<IndexFault | undefined> {
  const worklistKey = encodeEntryState({
    target: place.target,
    key: place.entryKey,
    value: undefined,
  }).key
  for (let look = 0; look < upkeepBounds.looksMax; look++) {
    const before = await openReads(parts).getMany(place.source, [place.rowKey, worklistKey])
    const [there] = await openReads(parts).getMany(place.target, [place.entryKey])
    const after = await openReads(parts).getMany(place.source, [place.rowKey, worklistKey])
    const isStill = before[0]?.timestamp === after[0]?.timestamp
    if (isStill && before[1] === undefined && after[1] === undefined) {
      return findFault(parts, place, entryIn(parts, place, after[0]), there)
    }
    await pause(parts.options, upkeepBounds.lookMs)
  }
  // It changes all the time; the next comparison sees its end.
  return undefined
}

function findFault(
  { index }: GlobalUpkeep,
  { key, entryKey }: Place,
  entry: Entry | undefined,
  there: StoredRow | undefined,
): IndexFault | undefined {
  const kind =
    entry === undefined
      ? there && 'left-over'
      : there === undefined
        ? 'missing'
        : holds(there, entry)
          ? undefined
          : 'other-content'
  const words = `${key.map(keyWords).join(', ')} (${Buffer.from(entryKey).toString('hex')})`
  return kind && { kind, index: index.name, entry: words }
}

/** Puts on the worklist what the entry is by its row. */
async function rightenEntry(parts: GlobalUpkeep, place: Place): Promise<void> {
  const { port, table, index, options } = parts
  await runTransaction(port, place.source, options, async (transaction) => {
    const stored = await transaction.get(place.rowKey)
    const row = stored && decodeRow(table, place.key, stored.value)
    const entry = row && buildEntries(table, index, row).get(latin1(place.entryKey))
    const change =
      row === undefined || entry === undefined
        ? encodeEntryState({ target: place.target, key: place.entryKey, value: undefined })
        : buildAddition(table, index, row, entry)
    transaction.put(change.key, change.value)
  })
}

function toPlace({ table, index }: GlobalUpkeep, row: FoundRow, entry: Entry): Place {
  return {
    source: row.group,
    rowKey: row.key,
    key: table.key.map(({ name }) => row.values[name]),
    target: groupOfEntry(table, index, row.values, entry),
    entryKey: entry.key,
  }
}

function entryIn(
  { table, index }: GlobalUpkeep,
  { key, entryKey }: Place,
  stored: StoredRow | undefined,
): Entry | undefined {
  if (stored === undefined) return undefined
  const row: Values = decodeRow(table, key, stored.value)
  return buildEntries(table, index, row).get(latin1(entryKey))
}

function holds({ value }: StoredRow, entry: Entry): boolean {
  return compareBytes(value.subarray(stampBytes), entry.value) === 0
}

function openReads({ port, options }: GlobalUpkeep): PortGroups {
  return new PortGroups(port, { kind: 'current' }, options)
}

async function* readPages(
  parts: GlobalUpkeep,
  group: GroupId,
  range: KeyRange,
): AsyncGenerator<readonly StoredRow[]> {
  const limit = parts.rowsAtOnce ?? upkeepBounds.changesAtOnceMax
  for (let { gte } = range; ;) {
    const rows = await openReads(parts).scan(group, { gte, lt: range.lt }, false, limit)
    yield rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < limit) return
    gte = keyAfter(last.key)
  }
}
