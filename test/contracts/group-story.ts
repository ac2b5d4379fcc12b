/** A group port as its suite uses it: where it lives, and a session with a group of its own. */
import type { GroupPort, ReadFrom, View } from '../../src/group/group-port.ts'
import type { Outcome, RowRange, Submission } from '../../src/group/replica-port.ts'
import type { Clock } from '../../src/ports/clock.ts'
import {
  allRows,
  bytesOf,
  committedOf,
  Session,
  textOf,
  textsOf,
  timeoutMs,
  type Committed,
} from './submissions.ts'

/** Where a port lives. */
export interface GroupPlace {
  readonly port: GroupPort
  /** The same groups by another way: through another node, or for another caller. */
  readonly other: GroupPort
  readonly clock: Clock
  /** Lets happen what has to, until the promise has settled; gives its value. */
  settled<Value>(work: Promise<Value>): Promise<Value>
  /** From now on no majority answers `port`. */
  cutOff?(): void
  /** Ends `port`. */
  close(): Promise<void>
  remove(): Promise<void>
}

/** The abilities that not every port has. */
export interface GroupAbilities {
  /** It can lose its majority. */
  readonly canBeCutOff: boolean
  /** Also rows of mebibytes are tried on it, which take long. */
  readonly isHeavy?: boolean
  /** It takes signals, and reads the first rows with their view. */
  readonly isClient: boolean
}

export const current: ReadFrom = { kind: 'current' }
export const snapshot: ReadFrom = { kind: 'snapshot' }

/** A session with a group of its own at a place. */
export class GroupStory extends Session {
  readonly place: GroupPlace

  constructor(place: GroupPlace) {
    super(place.clock)
    this.place = place
  }

  async commit(texts: readonly string[], change?: Partial<Submission>): Promise<Committed> {
    const { place } = this
    return committedOf(
      await place.settled(place.port.commit(this.submission(texts, change), timeoutMs)),
    )
  }

  view(from: ReadFrom, port: GroupPort = this.place.port, atLeast?: number): Promise<View> {
    return this.place.settled(port.view(this.group, from, timeoutMs, atLeast))
  }

  async rows(view: View, port: GroupPort = this.place.port): Promise<string> {
    return textsOf(await this.place.settled(allRows(port, this.group, view)))
  }

  async get(
    view: View,
    keys: readonly string[],
    port: GroupPort = this.place.port,
  ): Promise<string> {
    const asked = port.get(this.group, view, keys.map(bytesOf), timeoutMs)
    return textsOf(await this.place.settled(asked))
  }

  /** The page's rows, and `…` where it says that there may be more. */
  async page(view: View, range: RowRange): Promise<string> {
    const { place } = this
    const asked = place.port.scan(this.group, view, range, timeoutMs)
    const { rows, isWhole } = await place.settled(asked)
    return [...rows.map(textOf), ...(isWhole ? [] : ['…'])].join(' ')
  }

  /** The kind of the outcome, or the code of the error. */
  told(commit: Promise<Outcome>): Promise<unknown> {
    const told = commit.then(
      ({ kind }) => kind,
      (error: { code?: unknown }) => error.code,
    )
    return this.place.settled(told)
  }

  async now(): Promise<string> {
    return this.rows(await this.view(current))
  }
}
