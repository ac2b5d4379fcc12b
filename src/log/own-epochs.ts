/** A node's part in the epochs of its replica set, as its log remembers it (`../members/SPEC.md`). */
import { groupOfBytes, bytesOfGroup, isNodeId, type GroupId, type NodeId } from '../base/ids.ts'
import type { Packable } from '../base/pack.ts'

export interface OwnEpochs {
  /** The last epoch that it has heard of: it acts in no earlier one. */
  readonly epoch: number
  /** The last epoch whose gate it has passed; 0: none. */
  readonly gated: number
  /** The epoch that its seal counts for: it had passed the gate of the one before. 0: there is none. */
  readonly soundFor: number
  /** The nodes that vote in `epoch`; absent: those that the set began with. */
  readonly voters?: readonly NodeId[]
  /** The same of the epoch before. */
  readonly before?: readonly NodeId[]
  /** Whether its store is one of the voters of `epoch`. */
  readonly isMember: boolean
  /** The record of this was lost: the node has no vote before a majority of the others has told it the epoch. */
  readonly isDoubted: boolean
  /** Groups outside of the gate that it has passed: too few seals were sound there. */
  readonly blocked: readonly GroupId[]
  /** Groups that were so as it sealed the epoch before: its seal counts for nothing in them. */
  readonly unsound: readonly GroupId[]
}

/** Before any change. */
export const firstEpochs: OwnEpochs = {
  ...{
    epoch: 1,
    gated: 1,
    soundFor: 0,
    isMember: true,
    isDoubted: false,
    blocked: [],
    unsound: [],
  },
}

/**
 * Of a node that lost its record; and of an empty store at a seat, which has none. `epoch`: as the record of its identity
 * names it. Its votes stand in its log, so it may pass the gate of an epoch again.
 */
export function lostEpochs(seat: number, epoch: number): OwnEpochs {
  return {
    ...firstEpochs,
    epoch,
    gated: 0,
    isMember: seat === 0,
    isDoubted: seat === 0 || epoch > 1,
  }
}

export function isFirst({ epoch, gated }: OwnEpochs): boolean {
  return epoch === 1 && gated === 1
}

export function packEpochs(own: OwnEpochs): Packable {
  const { epoch, gated, soundFor, isMember, isDoubted, blocked, unsound, voters, before } = own
  const groups = [blocked.map(bytesOfGroup), unsound.map(bytesOfGroup)]
  return [epoch, gated, soundFor, isMember, isDoubted, ...groups, voters ?? [], before ?? []]
}

/** Undefined for fields that are none. */
export function readEpochs(packed: unknown): OwnEpochs | undefined {
  const fields: readonly unknown[] = Array.isArray(packed) ? packed : []
  const [epoch, gated, soundFor, isMember, isDoubted] = fields
  const [blocked, unsound] = [readGroups(fields[5]), readGroups(fields[6])]
  if (!isCount(epoch) || !isCount(gated) || !isCount(soundFor)) return undefined
  if (epoch < 1 || gated > epoch || typeof isMember !== 'boolean') return undefined
  if (blocked === undefined || unsound === undefined || typeof isDoubted !== 'boolean')
    return undefined
  const [voters, before] = [readNodes(fields[7]), readNodes(fields[8])]
  if (voters === undefined || before === undefined) return undefined
  return {
    ...{ epoch, gated, soundFor, isMember, isDoubted, blocked, unsound },
    ...(voters.length > 0 && { voters }),
    ...(before.length > 0 && { before }),
  }
}

/** A list of nodes; undefined for anything else. */
export function readNodes(list: unknown): readonly NodeId[] | undefined {
  if (!Array.isArray(list)) return undefined
  const nodes = list.filter((one: unknown): one is NodeId => {
    return typeof one === 'string' && isNodeId(one)
  })
  return nodes.length === list.length ? nodes : undefined
}

function readGroups(list: unknown): readonly GroupId[] | undefined {
  if (!Array.isArray(list)) return undefined
  const groups: GroupId[] = []
  for (const bytes of list) {
    if (!(bytes instanceof Uint8Array) || bytes.length === 0) return undefined
    groups.push(groupOfBytes(bytes))
  }
  return groups
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
