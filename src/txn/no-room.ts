/**
 * Why a transaction was refused for want of room. A client asks another node when it was the node, and asks that
 * one less; a group that is full is so at every node, and no other group has to wait for it. So a group is named
 * only where it was the group.
 */
import type { GroupId } from '../base/ids.ts'
import { problem, type Problem } from '../base/problem.ts'

const ofGroup =
  'this group has no room for another transaction: too many wait in it, or it still remembers too many; try again later'

const ofNode =
  'this node has no room for another transaction: its disk does not keep up, or too many wait; try again later'

export function noRoom(group: GroupId, why: { readonly isOfNode?: true }): Problem {
  if (why.isOfNode === true) return problem('overloaded', ofNode)
  return problem('overloaded', ofGroup, { group })
}
