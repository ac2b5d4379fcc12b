/** The rows of the data store, decoded as far as they can be; of the others the reason. */
import { StoreError } from '../base/errors.ts'
import type { GroupId } from '../base/ids.ts'
import {
  decodePositionRow,
  decodeStretchEnd,
  isStretchEnd,
  type PositionRow,
} from '../log/settled.ts'
import { decodeState, type GroupState } from '../replication/state.ts'
import { decodeStored } from '../store/row-format.ts'
import { decodeStoreKey, type StoreKey } from '../store/store-key.ts'
import type { KeyValue } from '../ports/storage.ts'

/** `unknown`: its key is of none of the others. */
export type RowKind = StoreKey['kind'] | 'unknown'

export const rowKinds: readonly RowKind[] = [
  ...(['row', 'history', 'state', 'staged', 'staging', 'position'] as const),
  ...(['worklist', 'marker', 'name', 'unknown'] as const),
]

type Decoded<Kind extends RowKind> = Extract<StoreKey, { readonly kind: Kind }>

/** `stamp` and `value` are those of `../store/row-format.ts`. */
export type DataRow =
  | (Decoded<'row' | 'history' | 'staged' | 'staging' | 'worklist' | 'marker' | 'name'> & Content)
  /** `flush`: the last one that names the group, where the build that wrote it says so. */
  | (Decoded<'state'> & Content & { readonly state: GroupState; readonly flush?: number })
  | (Decoded<'position'> & Content & { readonly row: PositionRow | StretchEnd })

/** The flush from which a search for the values of positions up to the row's may begin. */
export interface StretchEnd {
  readonly searchFrom: number
}

interface Content {
  readonly stamp: number
  readonly value: Uint8Array
}

export interface Unreadable {
  readonly kind: RowKind
  readonly group: GroupId | undefined
  /** The fault, to follow `a row` or the like. */
  readonly problem: string
}

export function decodeDataRow({ key, value }: KeyValue): DataRow | Unreadable {
  const named = decodeStoreKey(key)
  if (named === undefined) {
    const hex = Buffer.from(key).toString('hex', 0, 64)
    return { kind: 'unknown', group: undefined, problem: `has a key of no known kind, ${hex}` }
  }
  const bad = (problem: string): Unreadable => ({
    kind: named.kind,
    group: groupIn(named),
    problem,
  })
  const stored = decodeStored(key, value)
  if (stored === 'damaged') return bad('does not match its checksum')
  if (stored === 'unknown format') return bad('is of a format that this version does not know')
  const content = { stamp: stored.stamp, value: stored.payload }
  if (named.kind === 'state') {
    const state = decodeState(stored.payload)
    if (state === undefined) return bad('is of a format that this version does not know')
    if (state.position !== stored.stamp) return bad('has another position within than before it')
    const { flush } = stored
    return { ...named, ...content, state, ...(flush !== undefined && { flush }) }
  }
  if (named.kind !== 'position') return { ...named, ...content }
  const row = positionRowIn(stored.payload)
  return row === undefined ? bad('cannot be understood') : { ...named, ...content, row }
}

function positionRowIn(payload: Uint8Array): PositionRow | StretchEnd | undefined {
  try {
    if (isStretchEnd(payload)) return { searchFrom: decodeStretchEnd(payload) }
    return decodePositionRow(payload)
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}

function groupIn(key: StoreKey): GroupId | undefined {
  return 'group' in key ? key.group : undefined
}
