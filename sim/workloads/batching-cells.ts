/**
 * Cells for several callers of one application, which batches its requests. Puts and reads wait for
 * a moment for others of their kind. Operations without a batch form are sent at once.
 */
import type { Outcome } from '../../src/base/problem.ts'
import type { Cell, NewCell, Written } from '../../src/cells/cell.ts'
import type { GetItem } from '../../src/cells/operation.ts'
import type { Page } from '../../src/base/page.ts'
import type { PurgedPage, ReadOptions, LogPage } from '../../src/client/options.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { CellCalls } from '../history/record-client.ts'
import { unwrapItem, type HttpCells } from './http-cells.ts'

const itemsMax = 4
const waitMs = 40

export class BatchingCells implements CellCalls {
  readonly #cells: HttpCells
  readonly #puts: Batch<NewCell, Written>
  readonly #gets: Batch<GetItem, Cell | undefined>

  constructor(cells: HttpCells, clock: Clock, coverage: Coverage) {
    this.#cells = cells
    this.#puts = new Batch(clock, (items) => {
      if (items.length > 1) coverage.count('gateway: batch of puts')
      return cells.putMany(items)
    })
    this.#gets = new Batch(clock, (items) => {
      if (items.length > 1) coverage.count('gateway: batch of gets')
      return cells.getMany(items)
    })
  }

  put(cell: NewCell): Promise<Written> {
    return this.#puts.add(cell)
  }

  get(name: GetItem, options?: ReadOptions): Promise<Cell | undefined> {
    return options?.read === 'snapshot' ? this.#cells.get(name, options) : this.#gets.add(name)
  }

  latestAll(rowKey: string, options?: ReadOptions): Promise<Page<Cell>> {
    return this.#cells.latestAll(rowKey, options)
  }

  versions(...asked: Parameters<CellCalls['versions']>): Promise<Page<Cell, number>> {
    return this.#cells.versions(...asked)
  }

  shardLog(...asked: Parameters<CellCalls['shardLog']>): Promise<LogPage> {
    return this.#cells.shardLog(...asked)
  }

  getMany(...asked: Parameters<CellCalls['getMany']>): ReturnType<CellCalls['getMany']> {
    return this.#cells.getMany(...asked)
  }

  shardLogs(...asked: Parameters<CellCalls['shardLogs']>): ReturnType<CellCalls['shardLogs']> {
    return this.#cells.shardLogs(...asked)
  }

  purgeShard(...asked: Parameters<CellCalls['purgeShard']>): Promise<PurgedPage> {
    return this.#cells.purgeShard(...asked)
  }
}

/** Items of one kind, sent when there are enough, or when the first has waited. */
class Batch<Item, Value> {
  readonly #clock: Clock
  readonly #send: (items: readonly Item[]) => Promise<readonly Outcome<Value>[]>
  #items: Item[] = []
  #sent: Promise<readonly Outcome<Value>[]> | undefined
  #depart: () => void = () => undefined

  constructor(clock: Clock, send: (items: readonly Item[]) => Promise<readonly Outcome<Value>[]>) {
    this.#clock = clock
    this.#send = send
  }

  async add(item: Item): Promise<Value> {
    const sent = (this.#sent ??= this.#open())
    const place = this.#items.push(item) - 1
    if (this.#items.length >= itemsMax) this.#depart()
    return unwrapItem((await sent)[place])
  }

  async #open(): Promise<readonly Outcome<Value>[]> {
    await new Promise<void>((resolve) => {
      const timer = this.#clock.setTimer(waitMs, resolve)
      this.#depart = () => {
        timer.cancel()
        resolve()
      }
    })
    const items = this.#items
    this.#items = []
    this.#sent = undefined
    return this.#send(items)
  }
}
