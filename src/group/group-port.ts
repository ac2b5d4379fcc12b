/**
 * The port under transactions: one group's rows at a timestamp, and a commit. In a node it is the
 * replica itself, in an application the client library over the wire; both behave alike.
 */
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Outcome, Row, RowRange, Submission } from './replica-port.ts'

/**
 * Where a read begins.
 * - `current`: sees everything acknowledged, and everything shown to any read, before it began.
 * - `snapshot`: whole entries up to the last one that the replica asked has applied.
 * - `bounded`: sees everything acknowledged more than `maxStalenessMs` before the replica asked took the read up, and maybe
 *   more. Where that replica cannot show that it has all of it, the read is current.
 * - `at`: the state at a timestamp of the past; one of the future is read as of now.
 * - `inconsistent`: each row's newest version as the replica asked has it, without a common moment.
 */
export type ReadFrom =
  | { readonly kind: 'current' }
  | { readonly kind: 'snapshot' }
  | { readonly kind: 'bounded'; readonly maxStalenessMs: number }
  | { readonly kind: 'at'; readonly timestamp: Timestamp }
  | { readonly kind: 'inconsistent' }

/** The state that a read sees: every commit up to `asOf`, none after; for `inconsistent`, no `asOf`. */
export interface View {
  /** The replica that answered had applied so far. A session never reads below it again. */
  readonly position: Position
  readonly asOf: Timestamp | undefined
}

export interface RowPage {
  /** In the range's order. */
  readonly rows: readonly Row[]
  /** False: the answer was full; go on after the last row. */
  readonly isWhole: boolean
}

/** The keys and the range that are read first. */
export interface FirstAsked {
  readonly keys: readonly Uint8Array[]
  readonly range?: RowRange
}

/** A view, with what was read first at it. */
export interface FirstRead {
  readonly view: View
  /** In the order of the keys; fewer when the answer was full. */
  readonly rows: readonly (Row | undefined)[]
  /** Present when the read names a range. */
  readonly page?: RowPage
}

/**
 * Rejects with StoreErrors: `unavailable`, `snapshot-too-old`, `overloaded`, `too-large`, `closed`; with
 * `invalid` for what no answer has named, such as a position that no entry of the group has.
 */
export interface GroupPort {
  /**
   * `atLeast`: a position that the session has seen already. A read at a timestamp does not wait for it: each
   * replica that has applied the timestamp has its whole state.
   */
  view(group: GroupId, from: ReadFrom, timeoutMs: number, atLeast?: Position): Promise<View>
  /**
   * The same, with what is read first at the view: one request instead of two, where reads are requests.
   * Absent: `view`, and then `get` or `scan`.
   */
  begin?(
    group: GroupId,
    from: ReadFrom,
    asked: FirstAsked,
    timeoutMs: number,
    atLeast?: Position,
  ): Promise<FirstRead>
  /** In the order of `keys`; undefined where there is no row. Keys are relative to the group. */
  get(
    group: GroupId,
    view: View,
    keys: readonly Uint8Array[],
    timeoutMs: number,
  ): Promise<readonly (Row | undefined)[]>
  scan(group: GroupId, view: View, range: RowRange, timeoutMs: number): Promise<RowPage>
  /** Throws `closed` where nothing more can be asked: also a function that asks nothing is not run then. */
  checkOpen?(): void
  /** The same port for calls that the signal gives up. Absent: calls go on to their end. */
  until?(signal: AbortSignal): GroupPort
  /** Rejects only when nothing has happened, and nothing will. */
  commit(submission: Submission, timeoutMs: number): Promise<Outcome>
}
