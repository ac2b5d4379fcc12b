/** Words for the voters of a replica set, and for a change of them. */
import type { ChangeView, MembersView } from '../node/members-view.ts'

/** `n2 gets another store, seat 4097`; `all voters go on in a new epoch`. */
export function describeAim({ kind, node = '', seat = 0 }: ChangeView): string {
  return kind === 'replace'
    ? `${node} gets an empty store, seat ${seat}`
    : 'the same stores go on in a new epoch'
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

export function majorityOf({ members }: MembersView): Majority {
  const voting = members.filter(({ isAlive, standing }) => isAlive && standing === 'voting')
  const needed = Math.floor(members.length / 2) + 1
  return { voters: members.length, needed, voting: voting.map(({ node }) => node) }
}
