/** A log store under test, and records to put into it. */
import { groupOfBytes, nodeId, clusterId, type GroupId } from '../../src/base/ids.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import { LogStore, type LogStoreOptions } from '../../src/replica/log-store.ts'

export const options: LogStoreOptions = {
  node: nodeId('node-1'),
  cluster: clusterId('test'),
  random: systemRandom,
  clock: systemClock,
  trace: silentTrace,
  flushBytesMax: 1024 * 1024,
  leaseMs: 1000,
}

export function openLog(
  store: OrderedStore,
  changed: Partial<LogStoreOptions> = {},
): Promise<LogStore> {
  return LogStore.open(store, { ...options, ...changed })
}

export function group(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

export function ballot(round: number, node = 'node-1', incarnation = 1): Ballot {
  return { round, node: nodeId(node), incarnation }
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
