/** Data stores that give and take snapshots of groups, and the content of a store as it is on the disk. */
import { systemClock } from '../../src/adapters/system-clock.ts'
import type { GroupId, Position } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { worklistPrefix } from '../../src/group/worklist-key.ts'
import type { OrderedStore, Put } from '../../src/ports/storage.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { RowWritten } from '../../src/replication/apply.ts'
import type { SnapshotRow } from '../../src/replication/message.ts'
import { DataStore } from '../../src/store/data-store.ts'
import { crcOfRows, sizeInBytes, type GroupSnapshot } from '../../src/store/group-snapshot.ts'
import { decodeStored } from '../../src/store/row-format.ts'
import { SnapshotIntake, type Taken } from '../../src/store/snapshot-intake.ts'
import { group } from '../log/log-fixture.ts'
import { written } from './rows.ts'
import { simulatedDisk } from './stores.ts'

export const a: GroupId = group('a')
export const b: GroupId = group('b')

export function openData(store: OrderedStore, changed: Partial<Limits> = {}): Promise<DataStore> {
  const limits = { ...defaultLimits, checkpointMs: 1, ...changed }
  return DataStore.open(store, { clock: systemClock, trace: silentTrace, limits })
}

export function put(key: string, value: string): RowWritten {
  return written(Buffer.from(key), Buffer.from(value))
}

export function gone(key: string): RowWritten {
  return written(Buffer.from(key))
}

export function listedRow(topic: string, name: string): RowWritten {
  const key = Buffer.concat([worklistPrefix(topic), Buffer.from(name)])
  return written(key, Buffer.from('to do'))
}

/** Commits with a state record that says its position, and time that is its position, too. */
export function commit(
  data: DataStore,
  to: GroupId,
  position: Position,
  ...rows: RowWritten[]
): void {
  data.commit({
    ...{ group: to, position, timestamp: position, horizonBefore: 0, horizon: 0, writes: rows },
    encodeState: () => Buffer.from(`state ${position}`),
  })
}

export interface Whole {
  readonly position: Position
  readonly rows: readonly SnapshotRow[]
  readonly state: Uint8Array
  readonly crc: number | undefined
  /** Rows of each part, and bytes of state. */
  readonly parts: readonly (readonly [rows: number, state: number])[]
}

/** All parts of it, of about `bytesMax` each; closes it. */
export async function readWhole(snapshot: GroupSnapshot, bytesMax = 1_000): Promise<Whole> {
  const rows: SnapshotRow[] = []
  const pieces: Uint8Array[] = []
  const parts: [number, number][] = []
  let crc: number | undefined
  for (let count = 0; crc === undefined; count++) {
    if (count > 100_000) throw new Error('a snapshot never ends')
    const part = await snapshot.next(bytesMax)
    rows.push(...part.rows)
    pieces.push(part.state)
    parts.push([part.rows.length, part.state.length])
    crc = part.crc
  }
  await snapshot.close()
  return { position: snapshot.position, rows, state: Buffer.concat(pieces), crc, parts }
}

/** A snapshot of the group at a store on which `fill` has committed. */
export async function snapshotOf(
  of: GroupId,
  fill: (data: DataStore) => void,
  limits: Partial<Limits> = {},
): Promise<Whole> {
  const disk = await simulatedDisk()
  try {
    const data = await openData(await disk.open(), limits)
    fill(data)
    await data.drain()
    const snapshot = data.openSnapshot(of)
    if (snapshot === undefined) throw new Error('there is no snapshot')
    const whole = await readWhole(snapshot)
    await data.stop()
    return whole
  } finally {
    await disk.remove()
  }
}

export function takenOf({ position, state }: Whole): Taken {
  return { position, state, horizonBefore: 0, horizon: 0 }
}

/** Takes the snapshot in, some rows at a time, and puts it in the place of the group. */
export async function takeIn(
  data: DataStore,
  into: GroupId,
  whole: Whole,
  batchBytesMax: number,
): Promise<void> {
  const intake = new SnapshotIntake(data, into, batchBytesMax)
  for (let at = 0; at < whole.rows.length; at += 7) await intake.add(whole.rows.slice(at, at + 7))
  await data.replace(into, () => intake.switchTo(takenOf(whole)))
  await intake.clean()
}

export function sizeOf(rows: readonly SnapshotRow[]): number {
  return rows.reduce((bytes, row) => bytes + sizeInBytes(row), 0)
}

export function crcOf(rows: readonly SnapshotRow[]): number {
  return crcOfRows(rows, 0)
}

/** All keys under a letter (`src/store/row-format.ts`) with stamp and payload, in order. */
export async function stored(store: OrderedStore, tag: string): Promise<readonly string[]> {
  const next = String.fromCharCode(tag.charCodeAt(0) + 1)
  const found: string[] = []
  for await (const rows of store.scan({ gte: Buffer.from(tag), lt: Buffer.from(next) })) {
    for (const { key, value } of rows) {
      const one = decodeStored(key, value)
      if (typeof one === 'string') throw new Error(`${Buffer.from(key).toString('hex')}: ${one}`)
      const payload = Buffer.from(one.payload).toString('latin1')
      found.push(`${Buffer.from(key).toString('latin1')} ${one.stamp} ${payload}`)
    }
  }
  return found
}

/** Rows, history and state records, and parts of snapshots that were put down. */
export async function contentOf(store: OrderedStore): Promise<Readonly<Record<string, unknown>>> {
  const [rows, states] = [await stored(store, 'g'), await stored(store, 's')]
  const [staged, staging] = [await stored(store, 'i'), await stored(store, 'j')]
  return { rows, states, staged, staging }
}

/** A store that takes `writesMax` writes, and refuses all later ones: its process ends there. */
export class EndingStore implements OrderedStore {
  writes = 0
  readonly #store: OrderedStore
  readonly #writesMax: number

  constructor(store: OrderedStore, writesMax: number = Number.POSITIVE_INFINITY) {
    this.#store = store
    this.#writesMax = writesMax
  }

  getSync(key: Uint8Array): Uint8Array | undefined {
    return this.#store.getSync(key)
  }

  async write(puts: readonly Put[]): Promise<void> {
    if (this.writes >= this.#writesMax) throw new Error('the process has ended')
    this.writes += 1
    await this.#store.write(puts)
  }

  scan(range: Parameters<OrderedStore['scan']>[0]): ReturnType<OrderedStore['scan']> {
    return this.#store.scan(range)
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}
