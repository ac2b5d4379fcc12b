/**
 * The part of a replica that hands a group over to another replica set. The log of a group that has left its set changes no more
 * there, so what a page says is the same at every node of the set and at every time.
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'

/** A row of the group, or a version of one, as it is stored. */
export interface MovedRow {
  readonly subspace: number
  /** Relative to the group and the subspace. */
  readonly key: Uint8Array
  readonly stamp: number
  readonly payload: Uint8Array
}

/** A part of all that a set has of a group that has left it. */
export interface MovedPage {
  /** Of the set's last entry. */
  readonly position: Position
  /** In the order of their keys, behind those of the page before. */
  readonly rows: readonly MovedRow[]
  /** Present on the last page: the state record, and the hash of the rows if it has one. */
  readonly end?: MovedEnd
}

export interface MovedEnd {
  readonly state: Uint8Array
  readonly hash?: Uint8Array
}

/** Where a page begins: behind this row. */
export interface AfterRow {
  readonly subspace: number
  readonly key: Uint8Array
}

export interface MovingPort {
  /** How far the group is applied here; 0: this node has nothing of it. */
  position(group: GroupId): Position
  /** The set in which the group's log goes on, as far as it is applied here. */
  movedTo(group: GroupId): string | undefined
  /**
   * The set to which this one has given the group's bucket, and the bucket's term. Undefined: this set has the bucket, or this node
   * has something of the group.
   */
  givenTo(group: GroupId): { readonly set: string; readonly term: number } | undefined
  /** Whether this set has, or had, the group's bucket in that term or in a later one. */
  hasTerm(group: GroupId, term: number): boolean
  /** Whether the group has left this set, and this node has deleted its rows: the next set had it by then. */
  isCleared(group: GroupId): boolean
  /**
   * A page of about `bytesMax`; undefined where the group has not left the set, as far as it is applied here. `cleared`: it has left,
   * and this node has deleted its rows.
   */
  page(
    group: GroupId,
    after: AfterRow | undefined,
    bytesMax: number,
  ): Promise<MovedPage | 'cleared' | undefined>
  /**
   * Deletes the rows and the versions of a group that has left the set by the entry at that position: the next set has them. Its state
   * record stays. Resolves with the topics under which its worklist had rows, or undefined where it cannot be cleared now.
   */
  clear(group: GroupId, position: Position): Promise<readonly string[] | undefined>
  /** A node of this set that is up and runs a build of before groups could move; undefined: there is none. */
  findOldNode(): NodeId | undefined
  /** Takes the group up as another set has left it. False: it is here already, or the pages are not whole. */
  take(group: GroupId, pages: AsyncIterable<MovedPage>): Promise<boolean>
}
