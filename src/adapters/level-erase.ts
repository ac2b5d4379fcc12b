/**
 * Has LevelDB write anew what may hold rows that are gone. Its own compaction of a range leaves the tables of the deepest
 * level as they are. Such a table may have a row and its deletion, where a scan was open as it was made, or where one
 * write buffer had both. So a row of each table is written once more: as that row comes down through the levels, LevelDB
 * merges it with its table. The list of tables shows whether all are new.
 *
 * No scan that began before the call may be open: LevelDB keeps what such a scan sees.
 */
import { readdir } from 'node:fs/promises'
import { compareBytes } from '../base/bytes.ts'
import type { EraseHeld, KeySpan } from '../ports/storage.ts'
import { damageError } from './level-errors.ts'
import { keptTables } from './level-kept.ts'
import { isConcerned, type Extent } from './level-spans.ts'
import { readStoreFiles } from './level-tables.ts'

/** LevelDB, as far as this is a matter of it. */
export interface Compacting {
  compactRange(from: Uint8Array, to: Uint8Array): Promise<void>
  /** Writes the rows of these keys once more, as they are; those that are not there, as deletions. No other write comes between. */
  rewrite(keys: readonly Uint8Array[]): Promise<void>
}

const everything: KeySpan = { gte: Uint8Array.of(0), lt: Uint8Array.of(0xff) }
/** One is enough, unless LevelDB's own compactions come in between. */
const triesMax = 3

/** Rejects with what LevelDB says. */
export async function eraseSpans(
  path: string,
  level: Compacting,
  spans: readonly KeySpan[] | 'all',
): Promise<EraseHeld | undefined> {
  if ((await keptTables(path)).size > 0) return 'unchecked'
  const asked = spans === 'all' ? [everything] : spans
  await flush(level)
  const old = await listTables(path, asked)
  let left = old
  for (let tries = 0; left.size > 0 && tries < triesMax; tries++) {
    await level.rewrite([...left.values()].flatMap((extent) => keysIn(extent, asked)))
    for (const { gte, lt } of asked) await level.compactRange(gte, lt)
    const now = await listTables(path, asked)
    left = new Map([...old].filter(([number]) => now.has(number)))
  }
  if (left.size > 0) return 'files-in-use'
  // LevelDB deletes files as it ends a compaction, and keeps those that a scan reads.
  await flush(level)
  return (await areThere(path, old)) ? 'files-in-use' : undefined
}

/** Puts what stands in its journal and its write buffer into a table, and deletes files that are of no more use. */
function flush(level: Compacting): Promise<void> {
  return level.compactRange(everything.lt, everything.lt)
}

/** Of the tables in use those that may have rows of the spans, by their numbers. */
async function listTables(
  path: string,
  spans: readonly KeySpan[],
): Promise<ReadonlyMap<number, Extent>> {
  const damages: string[] = []
  const files = await readStoreFiles(path, (what) => damages.push(what))
  // Taken for an empty list it would say that all is new.
  if (files === undefined || damages.length > 0) {
    throw damageError(path, damages[0] ?? 'its list of tables cannot be read')
  }
  const extents = [...files.version.extents]
  return new Map(extents.filter(([, extent]) => isConcerned(extent, spans)))
}

/** Of each span that the table may have rows of, the first key that lies in both. */
function keysIn({ first, last }: Extent, spans: readonly KeySpan[]): readonly Uint8Array[] {
  return spans
    .filter((span) => isConcerned({ first, last }, [span]))
    .map(({ gte }) => (compareBytes(first, gte) < 0 ? gte : first))
}

async function areThere(path: string, tables: ReadonlyMap<number, Extent>): Promise<boolean> {
  const names = await readdir(path)
  return names.some((name) => tables.has(Number(/^(\d+)\.(?:ldb|sst)$/.exec(name)?.[1])))
}
