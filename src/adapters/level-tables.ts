/**
 * Whether what LevelDB holds on disk is what it wrote. It reads its tables without looking at their
 * checksums: a flipped bit within a key makes a row absent, or another one, without a word, and some
 * end the process. So all of a store is read once before it is opened, and may be while it runs.
 *
 * Files that the store does not name are not looked at: a crash leaves half a table behind, and
 * LevelDB deletes it. A file that is not there is LevelDB's to complain of, except a log: it opens
 * without one as if nothing had been in it. Left out: damage that came while the store was open, and
 * that a compaction has read since and written anew under checksums that match.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StoreError } from '../base/errors.ts'
import { closedError, damageError, openError, readError } from './level-errors.ts'
import { readJournal } from './level-journal.ts'
import { keepTables, keptTables, letGo, tableName } from './level-kept.ts'
import type { DamagedJournals } from './level-salvage.ts'
import { ManifestReader, type Version } from './level-manifest.ts'
import { isConcerned } from './level-spans.ts'
import type { CheckPace, KeySpan } from '../ports/storage.ts'
import { checkTable, type Damage } from './level-table.ts'
import { Pace, PacedFile } from './paced-file.ts'

/** The amount that a check has read so far, or in all. */
export interface CheckProgress {
  readonly tables: number
  readonly tablesTotal: number
  readonly bytesRead: number
  readonly elapsedMs: number
}

export interface CheckOptions {
  /** Of all else only how long each table is. Absent: everything is read. */
  readonly spans?: readonly KeySpan[] | 'all'
  /** Called after each table, and at the end. */
  readonly onProgress?: (progress: CheckProgress) => void
  /** Called with each damage, in words; the next file follows. Absent: it rejects. */
  readonly onDamage?: (what: string) => void
}

export interface ScrubOptions extends CheckOptions {
  /** The most bytes that a check reads in a second. */
  readonly bytesPerSecond: number
  /** Ends it early. */
  readonly signal?: AbortSignal
}

/** Rejects with `corrupt` for a folder that is damaged. Before the store is opened. */
export async function checkTables(
  path: string,
  options: CheckOptions = {},
): Promise<CheckProgress> {
  try {
    return await new FolderCheck(path, new Pace({}), options).run()
  } catch (error) {
    throw error instanceof StoreError ? error : openError(path, error)
  }
}

/**
 * The same at leisure, also while the store is open: rejects with `corrupt` for damage found, with
 * `closed` when it is ended early. The store must not be opened or closed meanwhile.
 */
export async function scrub(path: string, options: ScrubOptions): Promise<CheckProgress> {
  try {
    return await new FolderCheck(path, new Pace(options), options).run()
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw options.signal?.aborted === true ? closedError(path) : readError(path, error)
  }
}

/**
 * Reads the manifest and the journals of a folder before LevelDB does, which passes over what is damaged
 * there and forgets it: some milliseconds, since a journal is as long as a write buffer. Rejects with `corrupt`
 * for a manifest that is damaged, or a journal that is missing. Gives the journals with damage, and all newer ones.
 */
export async function damagedJournals(path: string): Promise<DamagedJournals | undefined> {
  try {
    return await new FolderCheck(path, new Pace({}), {}).damagedJournals()
  } catch (error) {
    throw error instanceof StoreError ? error : openError(path, error)
  }
}

/** The same of some spans beside other work, as `OrderedStore.check` has it. */
export async function checkSpans(
  path: string,
  spans: readonly KeySpan[] | 'all',
  pace: CheckPace | undefined,
): Promise<void> {
  const onProgress = ({ bytesRead, tables, tablesTotal }: CheckProgress): void =>
    pace?.onProgress(bytesRead, tables / tablesTotal)
  const onDamage = pace?.onDamage?.bind(pace)
  const options = { spans, onProgress, ...(onDamage === undefined ? {} : { onDamage }) }
  try {
    const check = new FolderCheck(path, new Pace(pace === undefined ? {} : { pace }), options)
    await check.runBeside()
  } catch (error) {
    throw error instanceof StoreError ? error : readError(path, error)
  }
}

/**
 * Keeps the tables of a store that is about to be opened until `checkSpans` has read all of them. False where
 * the file system cannot: the opener of the store then has to read everything first.
 */
export async function keepUnchecked(path: string): Promise<boolean> {
  try {
    return await new FolderCheck(path, new Pace({}), {}).keep()
  } catch (error) {
    throw error instanceof StoreError ? error : openError(path, error)
  }
}

/** The files of a store that no process has open, as its manifest names them. */
export interface StoreFiles {
  readonly version: Version
  /** The newest first. */
  readonly logs: readonly string[]
}

/** Undefined: there is no store, or its manifest cannot be read. `onDamage` hears why. */
export async function readStoreFiles(
  path: string,
  onDamage: (what: string) => void,
): Promise<StoreFiles | undefined> {
  return new FolderCheck(path, new Pace({}), { onDamage }).files()
}

/**
 * Reads all of a store that no process has open, the tables in `unchecked/` too, and changes nothing. `onDamage` hears of
 * each damaged file.
 */
export async function checkStopped(path: string, pace: CheckPace): Promise<CheckProgress> {
  const onProgress = ({ bytesRead, tables, tablesTotal }: CheckProgress): void =>
    pace.onProgress(bytesRead, tables / tablesTotal)
  const onDamage = pace.onDamage?.bind(pace)
  const options = { onProgress, ...(onDamage === undefined ? {} : { onDamage }) }
  return new FolderCheck(path, new Pace({ pace }), options).runStopped()
}

class FolderCheck {
  readonly #path: string
  readonly #pace: Pace
  readonly #options: CheckOptions
  #tables = 0
  #tablesTotal = 0
  #damages = 0
  /** A table in `unchecked/` loses its second name when it was found sound. */
  #mayLetGo = true

  constructor(path: string, pace: Pace, options: CheckOptions) {
    this.#path = path
    this.#pace = pace
    this.#options = options
  }

  async keep(): Promise<boolean> {
    const version = await this.#readVersion()
    return version === undefined || keepTables(this.#path, [...version.tables.keys()])
  }

  run(): Promise<CheckProgress> {
    return this.#run(new Map())
  }

  /** While the store is open: first its tables as they were then, which it may have compacted since. */
  async runBeside(): Promise<CheckProgress> {
    return this.#run(await keptTables(this.#path))
  }

  async runStopped(): Promise<CheckProgress> {
    const version = await this.#readVersion()
    const kept = [...(await keptTables(this.#path))]
    this.#mayLetGo = false
    // The others are read under their first names, and their lengths compared with the manifest.
    return this.#run(new Map(kept.filter(([number]) => version?.tables.has(number) !== true)))
  }

  async files(): Promise<StoreFiles | undefined> {
    const version = await this.#readVersion()
    if (version === undefined) return undefined
    const logs = await this.#logs(version)
    return { version, logs: logs.map(({ name }) => name) }
  }

  async #run(kept: ReadonlyMap<number, string>): Promise<CheckProgress> {
    const version = await this.#readVersion()
    if (version !== undefined) {
      const others = [...version.tables].filter(([number]) => !kept.has(number))
      this.#tablesTotal = kept.size + others.length
      await this.#checkLogs(version)
      for (const name of kept.values()) await this.#checkKept(name)
      for (const [number, size] of others) {
        await this.#checkTable(number, size, this.#spansIn(version, number))
        this.#count()
      }
    }
    return this.#progress()
  }

  #count(): void {
    this.#tables += 1
    this.#options.onProgress?.(this.#progress())
  }

  async #checkKept(name: string): Promise<void> {
    const { spans = 'all' } = this.#options
    const damages = this.#damages
    // How long it is was checked before the store was opened.
    const damage = await this.#withFile(name, (file) => checkTable(file, file.size, spans))
    this.#refuse(name, damage)
    if (spans === 'all' && this.#mayLetGo && this.#damages === damages) {
      // The store may be closed by now, and another one lie in its folder, with a table of this name.
      this.#pace.checkWanted()
      await letGo(this.#path, name)
    }
    this.#count()
  }

  /** Those of the spans asked for that the table may have keys of. */
  #spansIn({ extents }: Version, number: number): readonly KeySpan[] | 'all' {
    const { spans = 'all' } = this.#options
    const extent = extents.get(number)
    if (spans === 'all' || extent === undefined) return 'all'
    return spans.filter((span) => isConcerned(extent, [span]))
  }

  #progress(): CheckProgress {
    const { bytesRead, elapsedMs } = this.#pace
    return { tables: this.#tables, tablesTotal: this.#tablesTotal, bytesRead, elapsedMs }
  }

  /** The files that the store consists of; `undefined` if there is none, or LevelDB refuses it by itself. */
  async #readVersion(): Promise<Version | undefined> {
    const current = await readFile(join(this.#path, 'CURRENT'), 'latin1').catch(() => undefined)
    const name = /^(MANIFEST-\d+)\n$/.exec(current ?? '')?.[1]
    if (name === undefined) {
      if (current !== undefined)
        this.#refuse('CURRENT', { offset: 0, what: 'it names no manifest' })
      return undefined
    }
    const reader = new ManifestReader()
    const journal = await this.#withFile(name, async (file) =>
      readJournal(file, (fragment) => reader.add(fragment)),
    )
    if (journal === undefined) return undefined
    this.#refuse(name, journal.damage)
    const { version } = reader
    if (version === undefined) this.#refuse(name, { offset: 0, what: 'it cannot be understood' })
    return version
  }

  async damagedJournals(): Promise<DamagedJournals | undefined> {
    const version = await this.#readVersion()
    if (version === undefined) return undefined
    const logs = await this.#logs(version)
    let what: string | undefined
    let names: string[] = []
    let hasNewer = false
    for (const [index, { name }] of logs.entries()) {
      const { records, damage } = await this.#readLog(name, hasNewer)
      hasNewer = hasNewer || records > 0
      if (damage === undefined) continue
      what = `${name} at byte ${damage.offset}: ${damage.what}`
      names = logs.slice(0, index + 1).map((log) => log.name)
    }
    return what === undefined ? undefined : { what, names: names.toReversed() }
  }

  async #checkLogs(version: Version): Promise<void> {
    // The newest first: once it holds something, the ones before it were complete.
    let hasNewer = false
    for (const { name } of await this.#logs(version)) {
      const { records, damage } = await this.#readLog(name, hasNewer)
      this.#refuse(name, damage)
      hasNewer = hasNewer || records > 0
    }
  }

  /** Those that LevelDB will read, the newest first. */
  async #logs({ log, previousLog }: Version): Promise<readonly { readonly name: string }[]> {
    const logs = (await readdir(this.#path))
      .map((name) => ({ name, number: Number(/^(\d+)\.log$/.exec(name)?.[1]) }))
      .filter(({ number }) => number >= log || (number === previousLog && number > 0))
      .toSorted((one, other) => other.number - one.number)
    const isMissing = log > 0 && !logs.some(({ number }) => number === log)
    // An open store may have gone on to another log since.
    if (isMissing && (await this.#readVersion())?.log === log) {
      this.#refuse(tableName(log, 'log'), { offset: 0, what: 'it is missing' })
    }
    return logs
  }

  async #readLog(
    name: string,
    hasNewer: boolean,
  ): Promise<{ readonly records: number; readonly damage: Damage | undefined }> {
    const journal = await this.#withFile(name, (file) => readJournal(file))
    const { records = 0, tornAt, damage } = journal ?? {}
    if (damage !== undefined || tornAt === undefined || !hasNewer) return { records, damage }
    return { records, damage: { offset: tornAt, what: 'its end is torn, and a newer log goes on' } }
  }

  async #checkTable(
    number: number,
    size: number,
    spans: readonly KeySpan[] | 'all',
  ): Promise<void> {
    for (const ending of ['ldb', 'sst']) {
      const name = tableName(number, ending)
      const damage = await this.#withFile(name, (file) => checkTable(file, size, spans))
      this.#refuse(name, damage)
    }
  }

  async #withFile<T>(name: string, work: (file: PacedFile) => Promise<T>): Promise<T | undefined> {
    const file = await PacedFile.open(join(this.#path, name), this.#pace)
    if (file === undefined) return undefined
    try {
      return await work(file)
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.#refuse(name, { offset: file.position, what: `it cannot be read (${error.code})` })
      return undefined
    } finally {
      await file.close()
    }
  }

  #refuse(name: string, damage: Damage | undefined): void {
    if (damage === undefined) return
    this.#damages += 1
    const what = `${name} at byte ${damage.offset}: ${damage.what}`
    const { onDamage } = this.#options
    if (onDamage === undefined) throw damageError(this.#path, what)
    onDamage(what)
  }
}

/** The disk cannot read a sector, or a folder has taken the file's place: both are damage. */
function isUnreadable(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && /^(?:EIO|EISDIR)$/.test(String(error.code))
}
