/**
 * Reading rows of a group, as bytes: what a transaction and a read-only handle have in common.
 * `PortReads` asks the port at one view, which its first read opens.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { pageRowsMax } from './bounds.ts'
import type { RowRange } from '../replica/local-replica.ts'
import type { FirstAsked, FirstRead, GroupPort, ReadFrom, RowPage, View } from './group-port.ts'
import { keyAfter, type KeyRange } from './key-range.ts'
import { remainingOrTimeout } from './time.ts'

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
  #view: Promise<View> | undefined

  constructor(port: GroupPort, group: GroupId, from: ReadFrom, options: ViewOptions) {
    this.group = group
    this.#port = port
    this.#from = from
    this.#options = options
    this.#view = options.view === undefined ? undefined : Promise.resolve(options.view)
  }

  view(): Promise<View> {
    const { atLeast } = this.#options
    this.#view ??= this.#port.view(this.group, this.#from, this.#timeoutMs(), atLeast)
    return this.#view
  }

  /** The view, when a read has opened it. */
  openedView(): Promise<View | undefined> {
    return this.#view ?? Promise.resolve(undefined)
  }

  async get(key: Uint8Array): Promise<StoredRow | undefined> {
    const [row] = await this.getMany([key])
    return row
  }

  /** The view with what is read first at it; undefined where that takes two steps, or there is a view. */
  #begin(asked: FirstAsked): Promise<FirstRead> | undefined {
    const { atLeast } = this.#options
    if (this.#view !== undefined || this.#port.begin === undefined) return undefined
    const begun = this.#port.begin(this.group, this.#from, asked, this.#timeoutMs(), atLeast)
    const view = begun.then((first) => first.view)
    // Who asked hears of it; others only if they ask, too.
    view.catch(() => undefined)
    this.#view = view
    return begun
  }

  async getMany(keys: readonly Uint8Array[]): Promise<readonly (StoredRow | undefined)[]> {
    const first = await this.#begin({ keys: keys.slice(0, pageRowsMax) })
    if (first !== undefined && first.rows.length > keys.length) throw badAnswer()
    const rows: (StoredRow | undefined)[] = [...(first?.rows ?? [])]
    const view = first?.view ?? (await this.view())
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
    const { rows, isWhole } = await this.#pageOf({ gte, lt, reverse, limit })
    if (rows.length > limit || (!isWhole && rows.length === 0)) throw badAnswer()
    return { rows, isWhole: isWhole && rows.length < limit }
  }

  async #pageOf(asked: RowRange): Promise<RowPage> {
    const first = await this.#begin({ keys: [], range: asked })
    if (first !== undefined) return first.page ?? badPage()
    return this.#port.scan(this.group, await this.view(), asked, this.#timeoutMs())
  }

  #timeoutMs(): number {
    return remainingOrTimeout(this.#options.clock, this.#options.deadlineMs)
  }
}

/** What is left of a range after its first `count` rows. */
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
