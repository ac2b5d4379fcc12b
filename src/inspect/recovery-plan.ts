/**
 * The store of a node that is left after a majority of its replica set was lost for good: the epoch it stands in, and the
 * positions that its log holds beyond what it has applied. Of entries that the lost nodes alone had it knows nothing.
 */
import { StoreError } from '../base/errors.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import { metaName, tryDecodeMeta, type LogMeta } from '../log/log-meta.ts'
import type { OwnEpochs } from '../log/own-epochs.ts'
import { decodeEpochs, memoryName } from '../log/peer-memory.ts'
import { recoveryEpochAfter } from '../log/quorum-loss.ts'
import { DataLooks } from './data-looks.ts'
import { formatGroupHex, type NameGroup } from './finding.ts'
import { readFlushes } from './flush-pass.ts'
import type { StoppedNode } from './stopped-node.ts'

/** A group with positions above its last applied one. */
export interface UnappliedGroup {
  /** In hexadecimal digits. */
  readonly group: string
  readonly name: string
  readonly applied: Position
  /** Accepted, and not known as chosen: the recovered epoch chooses these values. */
  readonly accepted: readonly Position[]
  /** Of a later position there is a record, and of these there is none: their entries are lost. */
  readonly missing: readonly Position[]
}

export interface LeftStore {
  readonly identity: LogMeta
  readonly epochs: OwnEpochs
  /** The epoch that a recovery begins. */
  readonly nextEpoch: number
  readonly groups: readonly UnappliedGroup[]
  readonly damagedFlushes: number
}

export interface LookOptions {
  readonly nameGroup: NameGroup
  readonly onBytes: (bytes: number) => void
}

type Known = Map<Position, 'accepted' | 'chosen'>

/** Rejects with `invalid` where the store can recover nothing: it is no voter's, or its `data/` is not there. */
export async function lookAtLeftStore(node: StoppedNode, options: LookOptions): Promise<LeftStore> {
  const { identity, epochs } = readOwner(node)
  const looks = new DataLooks(readData(node))
  const { known, damagedFlushes } = await foldLog(node, identity.firstFlush, looks, options)
  const groups = [...known].map(([group, positions]) => describe(group, positions, looks, options))
  const isNews = ({ accepted, missing }: UnappliedGroup): boolean =>
    accepted.length + missing.length > 0
  const nextEpoch = recoveryEpochAfter(epochs.epoch)
  return { identity, epochs, nextEpoch, groups: groups.filter(isNews), damagedFlushes }
}

function readOwner({ log }: StoppedNode): Pick<LeftStore, 'identity' | 'epochs'> {
  const [meta, memory] = [log.record(metaName), log.record(memoryName)]
  const identity = meta && tryDecodeMeta(meta)
  const epochs = memory && decodeEpochs(memory)
  if (identity === undefined || epochs === undefined) {
    throw new StoreError(
      'invalid',
      'The log does not tell whose it is, or the epoch it stands in: it is damaged.',
    )
  }
  if (!epochs.isMember) {
    throw new StoreError(
      'invalid',
      'The store has no vote in its replica set: it was to join, or has left.',
    )
  }
  return { identity, epochs }
}

function readData({ data }: StoppedNode): NonNullable<StoppedNode['data']> {
  if (data !== undefined) return data
  throw new StoreError(
    'invalid',
    'The folder has no data/. The log alone may lack rows that were in it.',
  )
}

/** The positions above the applied ones of which the log has a record. */
async function foldLog(
  { log }: StoppedNode,
  from: number,
  looks: DataLooks,
  { onBytes }: LookOptions,
): Promise<{ readonly known: ReadonlyMap<GroupId, Known>; readonly damagedFlushes: number }> {
  const known = new Map<GroupId, Known>()
  let damagedFlushes = 0
  for await (const { bytes, header } of readFlushes(log, from)) {
    onBytes(bytes.length)
    if (header === undefined) damagedFlushes += 1
    for (const { kind, group, position } of header?.records ?? []) {
      if (kind === 'promise' || position <= appliedOf(looks, group)) continue
      const positions = known.get(group) ?? new Map<Position, 'accepted' | 'chosen'>()
      known.set(group, positions)
      if (kind === 'chosen') positions.set(position, 'chosen')
      else if (!positions.has(position)) positions.set(position, 'accepted')
    }
  }
  return { known, damagedFlushes }
}

/** The voters of the store's epoch; `first`: those with which its set began. */
export function votersOf({ epochs }: LeftStore, first: readonly NodeId[]): readonly NodeId[] {
  return epochs.voters ?? first
}

function appliedOf(looks: DataLooks, group: GroupId): Position {
  return looks.state(group)?.position ?? 0
}

function describe(
  group: GroupId,
  positions: Known,
  looks: DataLooks,
  { nameGroup }: LookOptions,
): UnappliedGroup {
  const applied = appliedOf(looks, group)
  const accepted: Position[] = []
  const missing: Position[] = []
  for (let position = applied + 1; position <= Math.max(...positions.keys()); position++) {
    const found = positions.get(position)
    if (found === undefined) missing.push(position)
    else if (found === 'accepted') accepted.push(position)
  }
  return { group: formatGroupHex(group), name: nameGroup(group), applied, accepted, missing }
}
