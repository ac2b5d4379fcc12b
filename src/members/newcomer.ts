/** The stores that may have a link, and have no vote, as the row of the voters names them. */
import type { NodeId } from '../base/ids.ts'
import type { Newcomer } from '../peers/admission.ts'
import type { StandingTold } from '../replication/message.ts'
import { isUnderWay, type SetRow } from './change.ts'

/** Of the node's name. Undefined: a store under it votes, or has no part in the replica set. */
export function findWithoutVote(row: SetRow, node: NodeId): Newcomer | undefined {
  const { change, readers } = row
  if (change?.node === node && change.seat !== undefined && isUnderWay(change)) {
    const { seat, store, number } = change
    return store === undefined ? { seat, number } : { seat, number, store }
  }
  const reader = readers.get(node)
  return reader && { ...reader, number: change?.number ?? 0, isReader: true }
}

/** Whether the peer has all of the epochs before the one that it has sealed last: it has passed that gate. */
export function hasTakenUp({ epoch, gated }: StandingTold): boolean {
  return epoch > 1 && gated >= epoch - 1
}
