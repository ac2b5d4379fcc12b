/**
 * A store of LevelDB as it lies in its folder, for reading alone. LevelDB itself writes as it opens: it moves its
 * journal into a table, begins another manifest, and compacts. It passes over damage without a word, and may end the
 * process over it. So a program that looks at a stopped store reads the files itself: nothing in the folder changes.
 * It reports each damaged block by its place, and reads all others.
 *
 * Rows that lie in a damaged block are missing here, or an older version shows in their place, as LevelDB would show
 * it. Memory holds the journals, the index of some tables, and a block of each table that a scan is in.
 */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { compareBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { CheckPace, KeyValue, OrderedStore, Range } from '../ports/storage.ts'
import { readJournals } from './level-journal-rows.ts'
import { tableName } from './level-kept.ts'
import { mergeVersions, type Source } from './level-merge.ts'
import { checkStopped, readStoreFiles } from './level-tables.ts'
import { TableView, type OnDamage, type ViewRange } from './level-table-view.ts'

/** Tables whose files are open at once. */
const openTablesMax = 64
const chunkRows = 256
const chunkBytes: number = 256 * 1024

export interface LevelView extends OrderedStore {
  /** Reads every file, and tells of each that is damaged. */
  checkFiles(pace: CheckPace): Promise<void>
  /** False: the folder has no store in it, or none whose list of files can be read. It then shows no rows. */
  readonly isReadable: boolean
}

/** Reads the journals and the list of tables. `onDamage` hears of damage then and whenever a read meets it. */
export async function viewLevelStore(path: string, onDamage: OnDamage): Promise<LevelView> {
  const isThere = await readFile(join(path, 'CURRENT')).then(
    () => true,
    () => false,
  )
  if (!isThere) onDamage('CURRENT is missing, or cannot be read')
  const files = isThere ? await readStoreFiles(path, onDamage) : undefined
  const rows = await readJournals(path, files?.logs ?? [], onDamage)
  const tables = [...(files?.version.extents ?? [])].map(([number, { first, last }]) => {
    return { number, first, last }
  })
  return new FolderView(path, files !== undefined, { tables, journals: rows }, onDamage)
}

interface ViewedTable {
  readonly number: number
  readonly first: Uint8Array
  readonly last: Uint8Array
}

interface Viewed {
  readonly tables: readonly ViewedTable[]
  /** The rows in the journals. */
  readonly journals: Source
}

class FolderView implements LevelView {
  readonly isReadable: boolean
  readonly #path: string
  readonly #viewed: Viewed
  readonly #onDamage: OnDamage
  /** In order of use, the longest unused first. */
  readonly #open = new Map<number, TableView>()

  constructor(path: string, isReadable: boolean, viewed: Viewed, onDamage: OnDamage) {
    this.#path = path
    this.isReadable = isReadable
    this.#viewed = viewed
    this.#onDamage = onDamage
  }

  getSync(key: Uint8Array): Uint8Array | undefined {
    for (const row of this.#rows({ gte: key, lt: Buffer.concat([key, Uint8Array.of(0)]) })) {
      return row.value
    }
    return undefined
  }

  async *scan(range: Range): AsyncGenerator<readonly KeyValue[], undefined> {
    const { gte, gt, lt, reverse, limit = Number.POSITIVE_INFINITY } = range
    const after = gt && Buffer.concat([gt, Uint8Array.of(0)])
    const low = gte !== undefined && after !== undefined ? higher(gte, after) : (gte ?? after)
    let [chunk, bytes, left]: [KeyValue[], number, number] = [[], 0, limit]
    for (const row of left > 0 ? this.#rows({ gte: low, lt, reverse }) : []) {
      chunk.push(row)
      bytes += row.key.length + row.value.length
      left -= 1
      if (left === 0) break
      if (chunk.length < chunkRows && bytes < chunkBytes) continue
      yield chunk
      ;[chunk, bytes] = [[], 0]
      await turn()
    }
    if (chunk.length > 0) yield chunk
    return undefined
  }

  #rows(range: ViewRange): Iterable<KeyValue> {
    const sources = this.#viewed.tables.map((table): Source => {
      return { ...table, versions: (asked) => this.#view(table.number).versions(asked) }
    })
    return mergeVersions([...sources, this.#viewed.journals], range)
  }

  #view(number: number): TableView {
    const view = this.#open.get(number) ?? this.#viewAnew(number)
    this.#open.delete(number)
    this.#open.set(number, view)
    for (const [oldest, unused] of this.#open) {
      if (this.#open.size <= openTablesMax) break
      unused.close()
      this.#open.delete(oldest)
    }
    return view
  }

  #viewAnew(number: number): TableView {
    const names = ['ldb', 'sst'].map((ending) => tableName(number, ending))
    const name = names.find((one) => existsSync(join(this.#path, one))) ?? names[0] ?? ''
    return new TableView(join(this.#path, name), name, this.#onDamage)
  }

  write(): Promise<void> {
    return Promise.reject(new StoreError('invalid', `the store ${this.#path} is only looked at`))
  }

  async checkFiles(pace: CheckPace): Promise<void> {
    if (this.isReadable) await checkStopped(this.#path, pace)
  }

  close(): Promise<void> {
    for (const view of this.#open.values()) view.close()
    this.#open.clear()
    return Promise.resolve()
  }
}

function higher(one: Uint8Array, other: Uint8Array): Uint8Array {
  return compareBytes(one, other) < 0 ? other : one
}
