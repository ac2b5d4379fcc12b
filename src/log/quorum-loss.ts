/**
 * Recovery from the loss of a quorum: a majority of the voters is lost for good, so no entry can begin the next epoch. An
 * operator begins it, at the nodes that are left, and accepts that entries may be gone which the lost nodes alone had.
 */
import { assert } from '../base/assert.ts'
import type { NodeId } from '../base/ids.ts'
import type { OwnEpochs } from './own-epochs.ts'

export interface Recovery {
  /** The store that it is of: another one in its place does not take it up. */
  readonly storeId: string
  /** Of `recoveryEpochAfter`: the same at all nodes that are left. */
  readonly epoch: number
  /** The nodes that are left, 1 to `recoveryVotersMax`, in the same order at each. */
  readonly voters: readonly NodeId[]
}

/** The gate of the epoch wants a majority of the seals: of two, both. Of three it would leave one out. */
export const recoveryVotersMax = 2

/** A recovered epoch is this much above the one before, at least: no change of voters that is under way begins as many. */
export const recoveryStep = 1_000

/** The first multiple of the step that is more than a step above: nodes that are left may be some epochs apart. */
export function recoveryEpochAfter(epoch: number): number {
  return (Math.floor(epoch / recoveryStep) + 2) * recoveryStep
}

/** Whether a node acts in an epoch that no entry has begun, given the last one that did. */
export function isRecovered(own: number, lastBegun: number): boolean {
  return own >= lastBegun + recoveryStep
}

/**
 * The node seals its last epoch, whether or not it is sure to have passed the gate of that one, and acts in the recovered epoch:
 * at its gate the seals of the nodes that are left count, and no other.
 */
export function recoveredEpochs(own: OwnEpochs, { epoch, voters }: Recovery): OwnEpochs {
  assert(epoch > own.epoch, 'MOVE-2: a recovery begins an epoch that is over')
  return {
    ...{ epoch, gated: Math.min(own.gated, own.epoch), soundFor: epoch },
    ...{ voters, before: voters, isMember: true, isDoubted: false },
    ...{ blocked: [], unsound: own.blocked },
  }
}
