/**
 * LevelDB's list of its tables: a journal of edits, replayed. A file that the list does not name is left over
 * from work that a crash cut short; LevelDB deletes it, whatever it looks like.
 */
import { Cursor } from './level-format.ts'
import { userKey, type Extent } from './level-spans.ts'
import type { Fragment } from './level-journal.ts'

/** The files that a store consists of. */
export interface Version {
  /** Bytes of each table, by its number. */
  readonly tables: ReadonlyMap<number, number>
  /** The first and the last key of each. */
  readonly extents: ReadonlyMap<number, Extent>
  /** Logs before this one are in tables, except `previousLog`. 0: no log was ever named. */
  readonly log: number
  readonly previousLog: number
}

const tags = {
  comparator: 1,
  log: 2,
  nextFile: 3,
  lastSequence: 4,
  compactPointer: 5,
  deletedTable: 6,
  newTable: 7,
  previousLog: 9,
} as const

/** All the edits of a store that was never opened anew; a table takes about a hundred bytes. */
const manifestBytesMax = 256 * 1024 * 1024

interface Table {
  readonly level: number
  readonly size: number
  readonly extent: Extent
}

/** Takes a manifest's fragments, and gives the version they lead to. */
export class ManifestReader {
  readonly #tables = new Map<number, Table>()
  #log = 0
  #previousLog = 0
  #pieces: Uint8Array[] = []
  #piecesBytes = 0
  #isDamaged = false

  /** `undefined` when an edit does not decode, though its checksum matches. */
  get version(): Version | undefined {
    if (this.#isDamaged) return undefined
    const sizes = [...this.#tables].map(([number, { size }]) => [number, size] as const)
    const extents = [...this.#tables].map(([number, { extent }]) => [number, extent] as const)
    return {
      tables: new Map(sizes),
      extents: new Map(extents),
      log: this.#log,
      previousLog: this.#previousLog,
    }
  }

  add({ bytes, isFirst, isLast }: Fragment): void {
    const isWithin = this.#pieces.length > 0
    this.#piecesBytes += bytes.length
    if (isFirst === isWithin || this.#piecesBytes > manifestBytesMax) this.#isDamaged = true
    if (this.#isDamaged) return
    this.#pieces.push(Uint8Array.from(bytes))
    if (!isLast) return
    this.#isDamaged = !this.#apply(new Cursor(Buffer.concat(this.#pieces)))
    this.#pieces = []
    this.#piecesBytes = 0
  }

  /** An edit's deletions come first, wherever they stand: a table that moves is in both lists. */
  #apply(edit: Cursor): boolean {
    const added: [number, Table][] = []
    while (!edit.isAtEnd) {
      const tag = edit.varint()
      if (tag === tags.newTable) {
        const table = newTable(edit)
        if (table === undefined) return false
        added.push(table)
      } else if (!this.#applyField(tag, edit)) return false
    }
    for (const [number, table] of added) this.#tables.set(number, table)
    return true
  }

  #applyField(tag: number | undefined, edit: Cursor): boolean {
    switch (tag) {
      case tags.comparator:
        return edit.string() !== undefined
      case tags.nextFile:
      case tags.lastSequence:
        return edit.varint() !== undefined
      case tags.compactPointer:
        return edit.varint() !== undefined && edit.string() !== undefined
      case tags.log:
      case tags.previousLog: {
        const number = edit.varint()
        if (number === undefined) return false
        if (tag === tags.log) this.#log = number
        else this.#previousLog = number
        return true
      }
      case tags.deletedTable:
        return this.#deleteTable(edit.varint(), edit.varint())
      default:
        return false
    }
  }

  #deleteTable(level: number | undefined, number: number | undefined): boolean {
    if (level === undefined || number === undefined) return false
    if (this.#tables.get(number)?.level === level) this.#tables.delete(number)
    return true
  }
}

function newTable(edit: Cursor): [number, Table] | undefined {
  const level = edit.varint()
  const number = edit.varint()
  const size = edit.varint()
  const [first, last] = [edit.string(), edit.string()]
  if (level === undefined || number === undefined || size === undefined) return undefined
  if (first === undefined || last === undefined) return undefined
  return [number, { level, size, extent: { first: userKey(first), last: userKey(last) } }]
}
