/**
 * Histories: the clients' operations, their times, and their answers. Nothing here knows the code
 * under test. A history may come from the simulator, from a recorder around a client, or from a
 * file.
 *
 * Objects are lists, to which each element is appended once, and registers with numbered versions,
 * each of which is written once. Times are numbers of one clock, in any unit.
 */

/** Unique among the elements of its list. */
export type Element = string | number

export type MicroOperation =
  | {
      readonly kind: 'append'
      readonly key: string
      readonly element: Element
      /** Its index, from 0, when the answer named it. */
      readonly index?: number
    }
  | {
      readonly kind: 'read'
      readonly key: string
      /** Absent in operations without a good answer. */
      readonly elements?: readonly Element[]
      /** The first element read is at this index. */
      readonly after: number
      /** Whether the list ended where the elements do. */
      readonly isEnd: boolean
    }
  | {
      readonly kind: 'write'
      readonly key: string
      readonly version: number
      readonly value?: Element
    }
  /** The highest version; absent when there is no version, or no answer. */
  | {
      readonly kind: 'latest'
      readonly key: string
      readonly version?: number
      readonly value?: Element
    }
  | {
      readonly kind: 'get'
      readonly key: string
      readonly version: number
      readonly isPresent: boolean
      readonly value?: Element
    }
  /** Of the versions `from` to `to` exactly these exist; absent without an answer. */
  | {
      readonly kind: 'range'
      readonly key: string
      readonly from: number
      /** Absent: to the highest. */
      readonly to?: number
      readonly versions?: readonly SeenVersion[]
    }

export interface SeenVersion {
  readonly version: number
  readonly value?: Element
}

/** `fail`: it did not happen and never will. `unknown`: it may have happened, or happen yet. */
export type Outcome = 'ok' | 'fail' | 'unknown'

/**
 * - `current`: a transaction, or a read that sees all that was acknowledged before it began
 * - `snapshot`: a read of some replica; it sees one state, never older than what its session has seen of
 *   the same group
 */
export type Level = 'current' | 'snapshot'

export interface HistoryOperation {
  readonly client: string
  readonly micro: readonly MicroOperation[]
  readonly level: Level
  /** Objects of a group share a log; without a name, all of them are of one group. */
  readonly group?: string
  /** Whom the client asked, for those who read the history. */
  readonly node?: string
  readonly start: number
  /** Absent when the client never learned what became of it. */
  readonly end?: number
  readonly outcome: Outcome
}

export type History = readonly HistoryOperation[]

export function isWriting(operation: HistoryOperation): boolean {
  return operation.micro.some(({ kind }) => kind === 'append' || kind === 'write')
}
