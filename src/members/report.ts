/** The voters of a replica set as one of its nodes sees them, for operators. */
import type { Versions } from '../base/cluster-version.ts'
import type { NodeId } from '../base/ids.ts'
import type { Change } from './change.ts'

export interface MemberReport {
  readonly node: NodeId
  /** The store that votes under the name; absent: this node does not know it. */
  readonly storeId?: string
  /** Whether the node is heard of. */
  readonly isAlive: boolean
  /** Whether the row names it as a read-only member; absent: it does not. */
  readonly isReader?: true
  /** The epoch that it acts in; absent: it has not told. */
  readonly epoch?: number
  /**
   * `voting`: it votes in its epoch. `before-gate`: it has yet to take up what the epoch before chose. `newcomer`: it copies,
   * and has no vote. `read-only`: it has a replica of each group, and no vote. `unknown`: it has not told.
   */
  readonly standing: 'voting' | 'before-gate' | 'newcomer' | 'read-only' | 'unknown'
  /** The cluster versions that its build supports; absent: it has no link, or this node knows of no versions. */
  readonly supports?: Versions
  /** The version that is in force at it; absent: it has not told. */
  readonly version?: number
}

export interface MembersReport {
  /** The epoch that this node acts in. */
  readonly epoch: number
  /** This node's own part in it. */
  readonly standing: MemberReport['standing']
  /** Groups in which it has no vote all the same, until a further node has told its seal. */
  readonly blockedGroups: number
  /** Every node of the replica set, this one and the read-only members included. */
  readonly members: readonly MemberReport[]
  /** The last change, as far as this node knows. */
  readonly change?: Change
  /** How many more voters may fail before nothing commits: those alive and voting, less a majority. Below 0: it does not now. */
  readonly canLose: number
  /** The cluster version that is in force at this node; absent: its build knows of none. */
  readonly version?: number
}

/** The voters of the last epoch that a node knows to have begun. */
export interface VotersReport {
  readonly epoch: number
  /** `url`: where the node is reached, of those that the set did not begin with. */
  readonly nodes: readonly { readonly node: NodeId; readonly url?: string }[]
}

/** The requests of an operator for the voters of a node's replica set. */
export interface MembersPort {
  readonly report: MembersReport
  /**
   * Begins the replacement of that node's store by an empty one, or finds it begun. Resolves with the seat that the empty store is to
   * start with. Rejects with `invalid` for a node of another set, for this node itself, and while another change is under way;
   * with `unavailable` where no majority answers in time.
   */
  replace(node: NodeId): Promise<{ readonly change: Change }>
  /**
   * Has a node with an empty store join, and vote once it has what the others have. `url`: scheme, host and port where the others reach
   * it. Resolves with the seat that its store is to start with. Rejects as `replace` does.
   */
  add(node: NodeId, url: string): Promise<{ readonly change: Change }>
  /**
   * Has a node with an empty store join as a read-only member: it gets a replica of each group, and no vote. Its death delays
   * no write. Rejects as `add` does.
   */
  addReader(node: NodeId, url: string): Promise<{ readonly change: Change }>
  /** Gives a read-only member a vote, with the store that it has. Rejects as `replace` does. */
  promote(node: NodeId): Promise<{ readonly change: Change }>
  /** Makes a voter a read-only member, with the store that it has. Rejects as `replace` does. */
  demote(node: NodeId): Promise<{ readonly change: Change }>
  /** Has a node leave, a voter or a read-only member: its store never takes part again. Rejects as `replace` does. */
  remove(node: NodeId): Promise<{ readonly change: Change }>
  /** Begins a new epoch with the same stores. Rejects as `replace` does. */
  renew(): Promise<{ readonly change: Change }>
  /**
   * Gives the change under way up. Rejects with `invalid` where there is none, or it can only go on, or it is not of that number.
   * `number`: absent, whichever is under way.
   */
  cancel(number?: number): Promise<{ readonly change: Change }>
  /**
   * Puts that cluster version in force in the replica set, or finds it in force. Resolves with the version in force as of then. Rejects
   * with `invalid` where this build does not support it, or one before it is not in force; with `unavailable` where a member is down or
   * supports less, and where no majority answers in time.
   */
  raise(to: number): Promise<{ readonly version: number }>
}
