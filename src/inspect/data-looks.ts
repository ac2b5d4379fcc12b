/** Point reads of the data store: state records, the mark, and what earlier builds kept of open positions. */
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position } from '../base/ids.ts'
import { SettledRows, type Carried, type FlushMark, type PositionRow } from '../log/settled.ts'
import type { OrderedStore } from '../ports/storage.ts'
import type { GroupState } from '../replication/state.ts'
import type { GroupHash } from '../store/group-hash.ts'
import {
  decodeStored,
  groupPrefix,
  listedKey,
  nameKey,
  positionKey,
  rowStoreKey,
  stateKey,
  stagingKey,
  type Stored,
} from '../store/row-format.ts'
import { decodeDataRow } from './data-row.ts'

/** States of groups that were looked at last: neighbours in a scan are of one group. */
const statesKept = 64

export class DataLooks {
  readonly #store: Pick<OrderedStore, 'getSync'>
  readonly #rows: SettledRows
  readonly #states = new Map<GroupId, GroupState | undefined>()

  constructor(store: Pick<OrderedStore, 'getSync'>) {
    this.#store = store
    const read = (key: Uint8Array): Uint8Array | undefined => this.#payload(key)
    this.#rows = new SettledRows({
      applied: (group) => {
        const lastFlush = this.lastFlush(group)
        const position = this.state(group)?.position ?? 0
        const snapshot = this.snapshot(group)
        return { position, lastFlush: typeof lastFlush === 'number' ? lastFlush : 0, snapshot }
      },
      isWaiting: () => false,
      meta: (name) => read(nameKey(name)),
      row: read,
      setMeta: () => undefined,
      setRow: () => undefined,
      dropRow: () => undefined,
      rows: () => Promise.resolve([]),
    })
  }

  #payload(key: Uint8Array): Uint8Array | undefined {
    const value = this.#store.getSync(key)
    const stored = value && decodeStored(key, value)
    return typeof stored === 'object' ? stored.payload : undefined
  }

  /** The newest version of a row. */
  row(group: GroupId, key: Uint8Array): Uint8Array | undefined {
    return this.#payload(rowStoreKey(group, key))
  }

  /** Undefined where there is none, or none that can be read. */
  state(group: GroupId): GroupState | undefined {
    if (this.#states.has(group)) return this.#states.get(group)
    const key = stateKey(groupPrefix(group))
    const value = this.#store.getSync(key)
    const found = value && decodeDataRow({ key, value })
    const state = found !== undefined && 'state' in found ? found.state : undefined
    if (this.#states.size >= statesKept) this.#states.clear()
    this.#states.set(group, state)
    return state
  }

  /**
   * The last flush of the log that names the group, as its state record says; `untold`: an earlier build wrote
   * it; undefined: there is none that can be read.
   */
  lastFlush(group: GroupId): number | 'untold' | undefined {
    const stored = this.#record(group)
    return stored && (stored.flush ?? 'untold')
  }

  /** The position of the last snapshot of the group that was taken in; 0: there was none. */
  snapshot(group: GroupId): Position {
    return this.#record(group)?.snapshot ?? 0
  }

  /** Of the group's rows, as its state record says; undefined: it does not, or cannot be read. */
  hash(group: GroupId): GroupHash | undefined {
    return this.#record(group)?.hash
  }

  #record(group: GroupId): Stored | undefined {
    const key = stateKey(groupPrefix(group))
    const value = this.#store.getSync(key)
    const stored = value && decodeStored(key, value)
    return typeof stored === 'object' ? stored : undefined
  }

  /** Whether the node ended while it took in a snapshot of the group. */
  isTakenOver(group: GroupId): boolean {
    return this.#store.getSync(stagingKey(groupPrefix(group))) !== undefined
  }

  /** Whether the worklist lists the group under the topic. */
  isListed(topic: string, group: GroupId): boolean {
    return this.#store.getSync(listedKey(topic, group)) !== undefined
  }

  /** `damaged`: it is there, and cannot be understood. */
  mark(): FlushMark | 'damaged' | undefined {
    return readable(() => this.#rows.mark())
  }

  carried(): readonly Carried[] | 'damaged' {
    return readable(() => this.#rows.carried())
  }

  position(group: GroupId, position: Position): PositionRow | 'damaged' | undefined {
    const hasRow = this.#store.getSync(positionKey(group, position)) !== undefined
    return readable(() => this.#rows.row(group, position)) ?? (hasRow ? 'damaged' : undefined)
  }
}

function readable<Value>(read: () => Value): Value | 'damaged' {
  try {
    return read()
  } catch (error) {
    if (error instanceof StoreError) return 'damaged'
    throw error
  }
}
