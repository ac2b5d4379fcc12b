/** Words for the voters of a replica set, and for a change of them. */
import type { ChangeView, MembersView } from '../node/members-view.ts'

/** `n2 gets an empty store, seat 4097`; `the same stores go on in a new epoch`. */
export function describeAim({ kind, node = '', seat = 0 }: ChangeView): string {
  switch (kind) {
    case 'replace':
      return `${node} gets an empty store, seat ${seat}`
    case 'add':
      return `${node} joins with an empty store, seat ${seat}`
    case 'remove':
      return `${node} leaves for good`
    case 'add-reader':
      return `${node} joins as a read-only member with an empty store, seat ${seat}`
    case 'promote':
      return `${node}, a read-only member, gets a vote`
    case 'demote':
      return `${node} becomes a read-only member`
    case 'renew':
      return 'the same stores go on in a new epoch'
    case 'recover':
      return 'a majority was lost for good, and the nodes that were left went on without it'
  }
}

/** The command that starts the empty store of a change; undefined where none is waited for. */
export function startCommand({ phase, seat, store }: ChangeView): string | undefined {
  if (phase !== 'copying' || seat === undefined || store !== undefined) return undefined
  return `trilithon node --config … --seat ${seat}`
}

export interface Majority {
  readonly voters: number
  readonly needed: number
  /** Voters that are alive and vote. */
  readonly voting: readonly string[]
}

export function majorityOf(view: MembersView): Majority {
  const voters = votersOf(view)
  const voting = voters.filter(({ isAlive, standing }) => isAlive && standing === 'voting')
  const needed = majority(voters.length)
  return { voters: voters.length, needed, voting: voting.map(({ node }) => node) }
}

/** The nodes that majorities are of: a node that joins is not among them before its epoch, and a read-only member never is. */
export function votersOf({ members, change }: MembersView): MembersView['members'] {
  const isJoin = change?.kind === 'add' || change?.kind === 'add-reader'
  const joining = isJoin && change?.phase === 'copying' ? change.node : undefined
  return members.filter(({ node, isReader }) => node !== joining && isReader !== true)
}

export function majority(voters: number): number {
  return Math.floor(voters / 2) + 1
}

/** How many of this number of voters may fail, and a majority is left. All of them are alive now. */
export function spareOf(voters: number): number {
  return voters - majority(voters)
}
