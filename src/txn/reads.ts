/**
 * Reading rows of a group, as bytes: what a transaction and a read-only handle have in common.
 * `PortReads` asks the port at one view, which its first read opens.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { pageRowsMax } from './limits.ts'
import type { RowRange } from '../group/replica-port.ts'
import type {
  FirstAsked,
  FirstRead,
  GroupPort,
  ReadFrom,
  RowPage,
  View,
} from '../group/group-port.ts'
import { type KeyRange } from '../group/outcome.ts'
import { keyAfter } from './key-range.ts'
import { remainingOrTimeout } from '../time/moments.ts'

export interface StoredRow {
  readonly key: Uint8Array
  readonly value: Uint8Array
  /** Of the entry that wrote it; absent when this transaction is about to write it. */
  readonly timestamp?: Timestamp
}

export interface ScanRange extends KeyRange {
  readonly reverse?: boolean
  /** Rows at most, 1 or more. */
  readonly limit?: number
}

export interface ScanPage {
  readonly rows: readonly StoredRow[]
  /** False: the limit was reached; there may be more after the last row. */
  readonly isWhole: boolean
}

export interface Reads {
  readonly group: GroupId
  get(key: Uint8Array): Promise<StoredRow | undefined>
  /** In the order of `keys`. */
  getMany(keys: readonly Uint8Array[]): Promise<readonly (StoredRow | undefined)[]>
  scan(range: ScanRange): Promise<ScanPage>
  /** Opens the view if no read has yet. */
  view(): Promise<View>
}

export interface ViewOptions {
  readonly clock: Clock
  /** Of the monotonic clock. */
  readonly deadlineMs: number
  /** A view to read at; without it the first read opens one. */
  readonly view?: View
  /** A position that has been seen already. */
  readonly atLeast?: Position | undefined
}

/** The port's rows at one view. */
export class PortReads implements Reads {
  readonly group: GroupId
  readonly #port: GroupPort
  readonly #from: ReadFrom
  readonly #options: ViewOptions
  /** Opens the view: the view itself, or what was read first with it. */
  #opening: Promise<View | FirstRead> | undefined
  /** The view, once it is open. */
  #view: View | undefined

  constructor(port: GroupPort, group: GroupId, from: ReadFrom, options: ViewOptions) {
    this.group = group
    this.#port = port
    this.#from = from
    this.#options = options
    this.#view = options.view
  }

  view(): Promise<View> {
    if (this.#view !== undefined) return Promise.resolve(this.#view)
    const { atLeast } = this.#options
    this.#opening ??= this.#port.view(this.group, this.#from, this.#timeoutMs(), atLeast)
    return this.#opening.then((opened) => this.#opened(opened))
  }

  #opened(opened: View | FirstRead): View {
    this.#view ??= 'view' in opened ? opened.view : opened
    return this.#view
  }

  /** The view, when a read has opened it; a promise only while one is about to. */
  openedView(): Promise<View> | View | undefined {
    return this.#view ?? (this.#opening && this.view())
  }

  get(key: Uint8Array): Promise<StoredRow | undefined> {
    return this.getMany([key]).then(([row]) => row)
  }

  /** The view with what is read first at it; undefined where that takes two steps, or there is a view. */
  #begin(asked: FirstAsked): Promise<FirstRead> | undefined {
    const { atLeast } = this.#options
    const isOpen = this.#view !== undefined || this.#opening !== undefined
    if (isOpen || this.#port.begin === undefined) return undefined
    const begun = this.#port.begin(this.group, this.#from, asked, this.#timeoutMs(), atLeast)
    this.#opening = begun
    return begun
  }

  getMany(keys: readonly Uint8Array[]): Promise<readonly (StoredRow | undefined)[]> {
    const asked = keys.length > pageRowsMax ? keys.slice(0, pageRowsMax) : keys
    const begun = this.#begin({ keys: asked })
    if (begun === undefined) return this.#rest(keys, [])
    return begun.then((first) => {
      this.#opened(first)
      if (first.rows.length === keys.length) return first.rows
      if (first.rows.length > keys.length) throw badAnswer()
      return this.#rest(keys, first.rows)
    })
  }

  /** Rows, as far as they are known, and those that are still to be asked for. */
  async #rest(
    keys: readonly Uint8Array[],
    known: readonly (StoredRow | undefined)[],
  ): Promise<readonly (StoredRow | undefined)[]> {
    const view = await this.view()
    const rows = [...known]
    while (rows.length < keys.length) {
      const some = keys.slice(rows.length, rows.length + pageRowsMax)
      rows.push(...(await this.#some(view, some)))
    }
    return rows
  }

  async #some(
    view: View,
    keys: readonly Uint8Array[],
  ): Promise<readonly (StoredRow | undefined)[]> {
    const found = await this.#port.get(this.group, view, keys, this.#timeoutMs())
    if (found.length !== keys.length) throw badAnswer()
    return found
  }

  async scan(range: ScanRange): Promise<ScanPage> {
    const rows: StoredRow[] = []
    let rest = range
    for (;;) {
      const page = await this.#page(rest)
      rows.push(...page.rows)
      const last = rows.at(-1)
      if (page.isWhole || last === undefined) return { rows, isWhole: true }
      if (range.limit !== undefined && rows.length >= range.limit) return { rows, isWhole: false }
      rest = restAfter(range, last.key, rows.length)
    }
  }

  async #page(range: ScanRange): Promise<ScanPage> {
    const { gte, lt, reverse = false } = range
    const limit = Math.min(range.limit ?? pageRowsMax, pageRowsMax)
    const { rows, isWhole } = await this.#readPage({ gte, lt, reverse, limit })
    if (rows.length > limit || (!isWhole && rows.length === 0)) throw badAnswer()
    return { rows, isWhole: isWhole && rows.length < limit }
  }

  async #readPage(asked: RowRange): Promise<RowPage> {
    const first = await this.#begin({ keys: [], range: asked })
    if (first === undefined) {
      return this.#port.scan(this.group, await this.view(), asked, this.#timeoutMs())
    }
    this.#opened(first)
    return first.page ?? badPage()
  }

  #timeoutMs(): number {
    return remainingOrTimeout(this.#options.clock, this.#options.deadlineMs)
  }
}

/** The rest of a range after its first `count` rows. */
function restAfter(range: ScanRange, last: Uint8Array, count: number): ScanRange {
  const rest = range.reverse === true ? { ...range, lt: last } : { ...range, gte: keyAfter(last) }
  return range.limit === undefined ? rest : { ...rest, limit: range.limit - count }
}

function badPage(): never {
  throw badAnswer()
}

function badAnswer(): StoreError {
  return new StoreError('corrupt', 'a replica answered with other rows than it was asked for')
}
