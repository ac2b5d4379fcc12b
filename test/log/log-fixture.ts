/** A log store under test, and records to put into it. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { groupOfBytes, nodeId, clusterId, type GroupId, type Position } from '../../src/base/ids.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import { compareText } from '../../src/base/bytes.ts'
import type { OrderedStore, Range } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import { LogStore, type LogStoreOptions } from '../../src/log/log-store.ts'
import { nothingApplied, SettledRows, type Applied, type RowStore } from '../../src/log/settled.ts'

export const options: LogStoreOptions = {
  node: nodeId('node-1'),
  cluster: clusterId('test'),
  random: systemRandom,
  clock: systemClock,
  trace: silentTrace,
  flushBytesMax: 1024 * 1024,
  carryAfterFlushes: 1000,
  leaseMs: 1000,
}

export function openLog(
  store: OrderedStore,
  changed: Partial<LogStoreOptions> = {},
  data?: FakeData,
): Promise<LogStore> {
  return LogStore.open(
    new OrderedJournal(store),
    { ...options, ...changed },
    data && new SettledRows(data),
  )
}

/** The part of a data store that a log needs; its batches are durable when a test says so. */
export class FakeData implements RowStore {
  #names: Map<string, Uint8Array>
  #applied: Map<GroupId, Applied>

  constructor(from?: FakeData) {
    this.#names = new Map(from === undefined ? [] : from.#names)
    this.#applied = new Map(from === undefined ? [] : from.#applied)
  }

  applied(name: GroupId): Applied {
    return this.#applied.get(name) ?? nothingApplied
  }

  setApplied(name: GroupId, applied: Applied): void {
    this.#applied.set(name, applied)
  }

  meta(name: string): Uint8Array | undefined {
    return this.#names.get(name)
  }

  setMeta(name: string, value: Uint8Array): void {
    this.#names.set(name, value)
  }

  isWaiting(): boolean {
    return false
  }

  row(key: Uint8Array): Uint8Array | undefined {
    return this.#names.get(Buffer.from(key).toString('latin1'))
  }

  setRow(key: Uint8Array, payload: Uint8Array): void {
    this.#names.set(Buffer.from(key).toString('latin1'), payload)
  }

  dropRow(key: Uint8Array): void {
    this.#names.delete(Buffer.from(key).toString('latin1'))
  }

  /** Those behind `gt`, or all. */
  rows({ gte, gt, limit = Infinity }: Range): ReturnType<RowStore['rows']> {
    const [from, behind] = [gte, gt].map((key) => key && Buffer.from(key).toString('latin1'))
    const found = [...this.#names]
      .sort(([a], [b]) => compareText(a, b))
      .filter(([name]) => {
        return (
          name.startsWith('mat/') && name >= (from ?? '') && (behind === undefined || name > behind)
        )
      })
    const rows = found.slice(0, limit).map(([name, payload]) => {
      return { key: Buffer.from(name, 'latin1'), payload }
    })
    return Promise.resolve(rows)
  }

  /** How many rows there are, the mark and what is carried over included. */
  get size(): number {
    return this.#names.size
  }

  /** A batch that takes these groups to these positions; durable when it resolves. */
  async batch(log: LogStore, ...groups: readonly (readonly [string, Position])[]): Promise<void> {
    const settled = groups.map(([name, position]) => {
      const { flush, snapshot } = log.placeOf(group(name))
      const applied = { position, lastFlush: flush, snapshot }
      return { group: group(name), position, applied }
    })
    log.onBatch(settled)
    await log.sync()
    log.checkLogged(settled)
    for (const { group: name, applied } of settled) this.#applied.set(name, applied)
    log.onBatchWritten()
  }
}

export function group(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

export function ballot(round: number, node = 'node-1', incarnation = 1): Ballot {
  return { epoch: 1, round, node: nodeId(node), incarnation }
}

export function promise(name: string, position: number, round: number): LogRecord {
  return { kind: 'promise', group: group(name), position, ballot: ballot(round) }
}

export function accept(name: string, position: number, round: number, text: string): LogRecord {
  const value = Buffer.from(text)
  return { kind: 'accept', group: group(name), position, ballot: ballot(round), value }
}

export function chosen(name: string, position: number, round: number, text?: string): LogRecord {
  const record = { kind: 'chosen', group: group(name), position, ballot: ballot(round) } as const
  return text === undefined ? record : { ...record, value: Buffer.from(text) }
}

/** Appends and waits until it is durable. */
export function durable(log: LogStore, ...records: readonly LogRecord[]): Promise<void> {
  return new Promise((resolve, reject) => {
    log.onFailure = reject
    log.append(records, resolve)
  })
}

export function textOf(value: Uint8Array | 'faulty' | undefined): string | undefined {
  return value instanceof Uint8Array ? Buffer.from(value).toString() : value
}
