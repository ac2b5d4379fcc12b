/**
 * Requests of an operator for a node's groups, at any time: a round of comparing or of scrubbing now, how far that is, and
 * a decision about a group without a majority.
 */
import { assert } from '../base/assert.ts'
import { bytesOfGroup, type GroupId, type NodeId } from '../base/ids.ts'
import { countDamages } from '../log/log-mending.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Scrubber, ScrubFigures } from '../log/scrubber.ts'
import type { Comparison } from '../peers/comparison.ts'
import type { Differences } from '../peers/differences.ts'
import type { CompareFigures } from './comparing.ts'
import type { Healing } from './healing.ts'
import type { RowScrub, RowScrubFigures } from './row-scrub.ts'

export interface UpkeepParts {
  readonly comparing: {
    readonly comparison: Pick<Comparison, 'now' | 'isUnderWay'>
    readonly rows: Pick<RowScrub, 'now' | 'isUnderWay' | 'figures'>
    readonly healing: Pick<Healing, 'asides'>
    readonly differences: Pick<Differences, 'undecided' | 'resolve'>
    readonly figures: CompareFigures
  }
  readonly scrubber: Pick<Scrubber, 'now' | 'isUnderWay' | 'figures'>
  readonly log: {
    readonly identity: Pick<LogStore['identity'], 'incarnation'>
    readonly damages: LogStore['damages']
  }
}

/** A round that an operator has begun. */
export interface Begun {
  /** Its number, from 1 since the start of the node: it is over when `ended` has come to it. */
  readonly round: number
  /** The node was at a round already, and goes on with that one. */
  readonly isJoined: boolean
}

interface Rounds {
  /** Counts the starts of the node: rounds are numbered anew after each. */
  readonly incarnation: number
  /** The last round of an operator's that has come to its end; 0: there is none. */
  readonly ended: number
}

export interface CompareReport extends CompareFigures, Rounds {}

export interface ScrubReport extends ScrubFigures, RowScrubFigures, Rounds {
  readonly isUnderWay: boolean
  /** How often a scrub has found damage in `log/` since the start. */
  readonly scrubLogDamages: number
  /** Groups that are put aside here until a snapshot has mended them. */
  readonly aside: number
}

/** Names of groups in hexadecimal, a hundred at most of each kind. */
export interface GroupLists {
  readonly asideGroups: readonly string[]
  readonly undecidedGroups: readonly string[]
}

const namesMax = 100

export class Upkeep {
  readonly #parts: UpkeepParts
  readonly #compared: AskedRounds
  readonly #scrubbed: AskedRounds

  constructor(parts: UpkeepParts) {
    const { comparison, rows } = parts.comparing
    const { scrubber } = parts
    this.#parts = parts
    this.#compared = new AskedRounds({
      isUnderWay: () => comparison.isUnderWay,
      now: () => comparison.now(),
    })
    this.#scrubbed = new AskedRounds({
      isUnderWay: () => scrubber.isUnderWay || rows.isUnderWay,
      now: () => Promise.all([scrubber.now(), rows.now()]),
    })
  }

  /** Compares this node's groups with each peer's now. */
  compare(): Begun {
    return this.#compared.begin()
  }

  /** Reads all files of both stores, and counts the rows of all groups, now. */
  scrub(): Begun {
    return this.#scrubbed.begin()
  }

  /**
   * Takes what `from` has of a group without a majority. Rejects with `invalid` where it has one, `not-found` where the
   * peer does not have the group, `unavailable` where the peer does not answer.
   */
  resolve(group: GroupId, from: NodeId): Promise<void> {
    return this.#parts.comparing.differences.resolve(group, from)
  }

  get compareReport(): CompareReport {
    return { ...this.#parts.comparing.figures, ...this.#rounds(this.#compared) }
  }

  get scrubReport(): ScrubReport {
    const { comparing, scrubber, log } = this.#parts
    return {
      ...{ ...scrubber.figures, ...comparing.rows.figures },
      isUnderWay: this.#scrubbed.isUnderWay,
      scrubLogDamages: countDamages(log.damages).scrubLogDamages,
      aside: comparing.figures.aside,
      ...this.#rounds(this.#scrubbed),
    }
  }

  #rounds({ ended }: AskedRounds): Rounds {
    const { incarnation } = this.#parts.log.identity
    assert(incarnation > 0, 'HEAL-7: rounds of a node that has not started')
    return { incarnation, ended }
  }

  get groupLists(): GroupLists {
    const { healing, differences } = this.#parts.comparing
    return {
      asideGroups: healing.asides.slice(0, namesMax).map(hexOf),
      undecidedGroups: differences.undecided.slice(0, namesMax).map(hexOf),
    }
  }
}

function hexOf(group: GroupId): string {
  return Buffer.from(bytesOfGroup(group)).toString('hex')
}

interface Work {
  /** Also one that the node has begun by itself. */
  isUnderWay(): boolean
  /** Begins, or joins. Resolves at the end. */
  now(): Promise<unknown>
}

/** Rounds of one kind, numbered; one at a time. */
class AskedRounds {
  readonly #work: Work
  #begun = 0
  #ended = 0

  constructor(work: Work) {
    this.#work = work
  }

  get ended(): number {
    return this.#ended
  }

  get isUnderWay(): boolean {
    return this.#work.isUnderWay()
  }

  begin(): Begun {
    const isJoined = this.isUnderWay
    assert(this.#ended <= this.#begun, 'HEAL-7: a round has ended that was not begun')
    if (this.#ended === this.#begun) {
      this.#begun += 1
      void this.#work.now().then(() => this.#end())
    }
    assert(this.#begun - this.#ended === 1, 'HEAL-7: two rounds of an operator are under way')
    return { round: this.#begun, isJoined }
  }

  #end(): void {
    assert(this.#ended < this.#begun, 'HEAL-7: a round of an operator ends twice')
    this.#ended = this.#begun
  }
}
