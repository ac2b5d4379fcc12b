/**
 * Writers and readers that recognise a wrong value. Each value carries its row, its number and a checksum, and the load
 * knows the last acknowledged number of each row. One more reader for each node reads that node alone, at both read levels.
 */
import { randomUUID } from 'node:crypto'
import { present } from '../../src/base/assert.ts'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { forEachBelow, openClient } from '../common.ts'
import { summarizeLoad } from '../load.ts'
import { pause, type NodePlace } from '../processes.ts'
import { textValues } from '../values.ts'
import { buildCell, column, findFault, type Fault, type Row } from './checked-value.ts'

/** The datastore of all rows. */
export const datastore = 'bench'

/** A read that gave a wrong value. */
export interface Wrong extends Fault {
  /** When the read began. */
  readonly beganMs: number
  readonly rowKey: string
  /** Of the node that was read alone; absent: any node answered. */
  readonly node?: string
}

interface Read {
  /** The number of the row that was acknowledged before; undefined: none need be shown. */
  readonly floor: number | undefined
  readonly beganMs: number
  readonly node?: string
}

/** A stretch of the load. */
export interface Stretch {
  readonly seconds: number
  readonly commits: number
  readonly commitsPerSecond: number
  readonly p99Ms: number
  readonly reads: number
  readonly readP99Ms: number
  readonly failures: number
  /** The longest time in which no write was acknowledged. */
  readonly worstGapMs: number
}

/** A row that is written once, and only read from then on. */
export interface KeptRow {
  readonly rowKey: string
  readonly pad: string
}

interface Answer {
  readonly atMs: number
  readonly tookMs: number
}

const padChars = 400
const filledAtOnce = 200
const fillsUnderWay = 4
/** Written once each. */
const keptRows = 64
/** Of a read at one node: a node that is down does not answer. */
const nodeReadMs = 2_000
const nodeReadPauseMs = 5

export class CheckedLoad {
  readonly wrong: Wrong[] = []
  readonly kept: KeptRow[] = []
  readonly #client: Client
  readonly #clients: readonly Client[]
  readonly #signal: AbortSignal
  readonly #nextPad = textValues(padChars)
  readonly #rows: Row[] = []
  readonly #commits: Answer[] = []
  readonly #reads: Answer[] = []
  readonly #failedAtMs: number[] = []
  /** Rows that are read more often than others. */
  #watched: readonly string[] = []
  #loops: readonly Promise<void>[] = []
  #isOver = false

  private constructor(client: Client, clients: readonly Client[], signal: AbortSignal) {
    this.#client = client
    this.#clients = clients
    this.#signal = signal
  }

  /** With a client for all nodes, and one for each of them. */
  static async open(places: readonly NodePlace[], signal: AbortSignal): Promise<CheckedLoad> {
    const urls = places.map(({ url }) => url)
    const client = await openClient(urls, signal)
    const clients = await Promise.all(
      urls.map((url) => connect({ endpoints: [url], follow: false, timeoutMs: nodeReadMs })),
    )
    return new CheckedLoad(client, clients, signal)
  }

  /** Writes each row once. */
  async fill(rows: number): Promise<void> {
    const batches = Math.ceil((rows + keptRows) / filledAtOnce)
    await forEachBelow(batches, fillsUnderWay, this.#signal, () => this.#fillSome())
    this.#signal.throwIfAborted()
  }

  async #fillSome(): Promise<void> {
    const some = Array.from({ length: filledAtOnce }, () => {
      const row = { key: randomUUID(), acknowledged: 0, tried: 0 }
      return { row, pad: this.#nextPad() }
    })
    const cells = some.map(({ row, pad }) => buildCell(row, 0, pad))
    await this.#client.cells(datastore).putMany(cells)
    for (const { row, pad } of some) {
      if (this.kept.length < keptRows) this.kept.push({ rowKey: row.key, pad })
      else this.#rows.push(row)
    }
  }

  /** `count` loops write a row, then read any row, and wait for each answer. One more loop for each node reads there alone. */
  start(count: number, places: readonly NodePlace[]): void {
    const writers = Array.from({ length: count }, (_, nth) => this.#write(nth, count))
    const readers = this.#clients.map((client, nth) =>
      this.#readNode(client, present(places[nth], 'bench: a node has a client').id),
    )
    this.#loops = [...writers, ...readers]
  }

  /** From now on the readers of single nodes read these kept rows again and again. */
  watch(rows: readonly KeptRow[]): void {
    this.#watched = rows.map(({ rowKey }) => rowKey)
  }

  async #write(nth: number, count: number): Promise<void> {
    const cells = this.#client.cells(datastore)
    const own = this.#rows.filter((_, at) => at % count === nth)
    for (let turn = 0; !this.#isOver && !this.#signal.aborted; turn++) {
      const row = present(own[turn % own.length], 'bench: each writer has rows')
      const refKey = row.tried + 1
      row.tried = refKey
      await this.#measure(this.#commits, async () => {
        await cells.put(buildCell(row, refKey, this.#nextPad()))
        row.acknowledged = refKey
      })
      const any = this.#anyRow()
      const floor = any.acknowledged
      await this.#measure(this.#reads, async () => {
        const beganMs = performance.now()
        const cell = await cells.get({ rowKey: any.key, column })
        this.#judge(any, cell?.body, { floor, beganMs })
      })
    }
  }

  async #measure(answers: Answer[], ask: () => Promise<void>): Promise<void> {
    const began = performance.now()
    try {
      await ask()
      const atMs = performance.now()
      answers.push({ atMs, tookMs: atMs - began })
    } catch {
      this.#failedAtMs.push(performance.now())
    }
  }

  /** The reader passes over a node that does not answer: only the values that a node shows can be wrong. */
  async #readNode(client: Client, node: string): Promise<void> {
    const cells = client.cells(datastore)
    for (let turn = 0; !this.#isOver && !this.#signal.aborted; turn++) {
      const watched = this.#watched[(turn >> 2) % Math.max(1, this.#watched.length)]
      const isWatched = watched !== undefined && turn % 2 === 0
      const row = isWatched ? { key: watched, acknowledged: 0, tried: 0 } : this.#anyRow()
      const read = turn % 4 < 2 ? 'current' : 'snapshot'
      // A snapshot may be older than what was acknowledged, or from before the row was there.
      const floor = read === 'current' ? row.acknowledged : undefined
      const name = { rowKey: row.key, column }
      const beganMs = performance.now()
      const cell = await cells.get(name, { read }).catch(() => 'silent' as const)
      if (cell !== 'silent') this.#judge(row, cell?.body, { floor, beganMs, node })
      await pause(nodeReadPauseMs)
    }
  }

  #anyRow(): Row {
    const at = Math.floor(Math.random() * this.#rows.length)
    return present(this.#rows[at], 'bench: there are rows')
  }

  #judge(row: Row, body: unknown, { floor, beganMs, node }: Read): void {
    const fault = findFault(row, body, floor)
    if (fault === undefined) return
    this.wrong.push({ beganMs, rowKey: row.key, ...fault, ...(node !== undefined && { node }) })
  }

  /** Reads all rows once, at one node. Gives how many it has shown. */
  async readAll(nth: number, node: string): Promise<number> {
    const client = present(this.#clients[nth], 'bench: a node has a client')
    const cells = client.cells(datastore)
    const kept = this.kept.map(({ rowKey }) => ({ key: rowKey, acknowledged: 0, tried: 0 }))
    const rows = [...kept, ...this.#rows]
    let shown = 0
    for (let from = 0; from < rows.length && !this.#signal.aborted; from += filledAtOnce) {
      const some = rows.slice(from, from + filledAtOnce)
      const floors = some.map(({ acknowledged }) => acknowledged)
      const items = some.map(({ key }) => ({ rowKey: key, column }))
      const beganMs = performance.now()
      const outcomes = await cells.getMany(items, { timeoutMs: 20_000 })
      for (const [at, outcome] of outcomes.entries()) {
        if (outcome.kind !== 'ok') continue
        const row = present(some[at], 'bench: an outcome is of a row')
        this.#judge(row, outcome.value?.body, { floor: floors[at], beganMs, node })
        shown += 1
      }
    }
    return shown
  }

  /** The answers between two moments of `performance.now()`. */
  stretch(fromMs: number, toMs: number): Stretch {
    const isIn = (atMs: number): boolean => atMs >= fromMs && atMs < toMs
    const within = (answers: readonly Answer[]): readonly Answer[] =>
      answers.filter(({ atMs }) => isIn(atMs))
    const commits = within(this.#commits)
    const summed = (answers: readonly Answer[]) =>
      summarizeLoad(
        answers.map(({ tookMs }) => tookMs),
        0,
        toMs - fromMs,
      )
    const [written, read] = [summed(commits), summed(within(this.#reads))]
    const seconds = (toMs - fromMs) / 1_000
    return {
      ...{ seconds, commits: written.operations, commitsPerSecond: written.operations / seconds },
      ...{ p99Ms: written.p99Ms, reads: read.operations, readP99Ms: read.p99Ms },
      failures: this.#failedAtMs.filter(isIn).length,
      worstGapMs: longestGap([fromMs, ...commits.map(({ atMs }) => atMs), toMs]),
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true
    // A call that nodes do not answer ends with its client.
    await Promise.all([this.#client, ...this.#clients].map((client) => client.close()))
    await Promise.all(this.#loops)
  }
}

function longestGap(moments: readonly number[]): number {
  return Math.max(0, ...moments.map((atMs, nth) => atMs - (moments[nth - 1] ?? atMs)))
}
