/** The voters of a node's replica set, and the change of them that is under way, in figures and in words. */
import { isUnderWay, type Change } from '../members/change.ts'
import type { MembersReport } from '../members/report.ts'
import type { Figure } from './metrics.ts'

export function membersFigures(members: MembersReport | undefined): readonly Figure[] {
  if (members === undefined) return []
  const { epoch, blockedGroups, change } = members
  return [
    {
      name: 'trilithon_members_nodes',
      help: 'Nodes of the replica set that this node knows now: voters, and those that join or leave.',
      value: members.members.length,
    },
    {
      name: 'trilithon_members_epoch',
      help: "The epoch of the replica set's voters that this node acts in.",
      value: epoch,
    },
    {
      name: 'trilithon_members_voting',
      help: '1 when this node votes in its epoch.',
      value: Number(members.standing === 'voting'),
    },
    {
      name: 'trilithon_members_blocked_groups',
      help: 'Groups in which this node has no vote until a further node has told its seal.',
      value: blockedGroups,
    },
    {
      name: 'trilithon_members_changing',
      help: "1 while a change of the replica set's voters is under way.",
      value: Number(change !== undefined && isUnderWay(change)),
    },
  ]
}

/** Empty when nothing is to be said. */
export function describeMembers(members: MembersReport): readonly string[] {
  const { epoch, standing, blockedGroups, change } = members
  const messages: string[] = []
  if (change?.phase === 'copying') {
    messages.push(`change ${change.number}: ${describeCopy(change)} (trilithon nodes list)`)
  }
  if (change?.phase === 'sealing') {
    messages.push(`change ${change.number}: epoch ${epoch} begins; it goes on by itself`)
  }
  if (standing === 'read-only') {
    messages.push('this node is a read-only member: it has a replica of each group, and no vote')
  }
  if (standing === 'newcomer') {
    messages.push('this node copies what the others hold, and has no vote before it has that')
  }
  if (standing === 'before-gate') {
    messages.push(
      `this node has no vote in epoch ${epoch} before it has what a majority of the voters had accepted before`,
    )
  }
  if (blockedGroups > 0) {
    messages.push(
      `this node has no vote in ${blockedGroups} groups, whose records were damaged at other nodes as epoch ${epoch} began: start the nodes that are down`,
    )
  }
  return messages
}

function describeCopy({ kind, node, seat }: Change): string {
  if (kind === 'promote') return `${node} gets a vote once it has what the others hold`
  const what = { add: 'joins with', 'add-reader': 'joins as a read-only member with' }
  const how = kind === 'add' || kind === 'add-reader' ? what[kind] : 'gets'
  return `${node} ${how} an empty store; start it with an empty data folder and --seat ${seat}, if it does not run`
}
