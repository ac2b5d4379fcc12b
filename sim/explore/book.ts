/**
 * The notes of an omniscient observer about the whole group so far: durable acceptances, chosen
 * values, and answers to clients. Part of the searched state; it knows no node's memory.
 *
 * PAX-1  At most one value is chosen; applied values are chosen. PAX-5 One ballot, one value.
 * PAX-6  Ballot zero by the leader that the chosen entry before names. PAX-7 Majorities of voters.
 * LOG-2  One position, one state. LOG-3 One intent, one effect. LOG-4 Acknowledged is chosen.
 * LEASE-3  A read, or a commit, sees all acknowledged or shown before it began.
 */
import { present } from '../../src/base/assert.ts'
import { equalBytes, latin1 } from '../../src/base/bytes.ts'
import type { Position } from '../../src/base/ids.ts'
import type { ReplicaSet } from '../../src/placement/placement.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import { describeBallot, type Ballot } from '../../src/paxos/ballot.ts'
import { movedKey } from '../../src/group/moved-row.ts'
import { decodeEntry, type Entry } from '../../src/replication/entry.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import { formatIntent } from '../../src/group/transaction.ts'
import { isListed } from './bucket.ts'
import type { Breach, Observation } from './observation.ts'
import type { Setting } from './setting.ts'

interface Proposed {
  readonly value: Uint8Array
  /** Bits of the nodes whose disk has held its acceptance. */
  readonly acceptedBy: number
}

export interface Book {
  /** By position and ballot. */
  readonly proposals: ReadonlyMap<string, Proposed>
  readonly chosen: ReadonlyMap<Position, Uint8Array>
  readonly states: ReadonlyMap<Position, Uint8Array>
  /** The highest position that a client knows of, by an acknowledgement or a read. */
  readonly shown: Position
  /** `shown` when a request began, by its name: intents and reads. */
  readonly floors: ReadonlyMap<string, Position>
  /** Attempts whose clients got the answer that they had no effect. */
  readonly refused: readonly string[]
  /** The row of the buckets, once a node has changed the one that closes the bucket of the group. */
  readonly row?: SharesRow
}

export const emptyBook: Book = {
  proposals: new Map(),
  chosen: new Map(),
  states: new Map(),
  shown: 0,
  floors: new Map(),
  refused: [],
}

export interface BookOutcome {
  readonly next: Book
  readonly breaches: readonly Breach[]
}

/** Notes the observations of one step of the node with this number. */
export function writeDown(
  setting: Setting,
  book: Book,
  node: number,
  observations: readonly Observation[],
): BookOutcome {
  const writing = new Writing(setting, book, node)
  for (const observation of observations) writing.take(observation)
  return writing.outcome
}

class Writing {
  readonly #setting: Setting
  readonly #node: number
  readonly #proposals: Map<string, Proposed>
  readonly #chosen: Map<Position, Uint8Array>
  readonly #states: Map<Position, Uint8Array>
  readonly #floors: Map<string, Position>
  #shown: Position
  #refused: readonly string[]
  #row: SharesRow | undefined
  readonly #breaches: Breach[] = []

  constructor(setting: Setting, book: Book, node: number) {
    this.#setting = setting
    this.#node = node
    this.#proposals = new Map(book.proposals)
    this.#chosen = new Map(book.chosen)
    this.#states = new Map(book.states)
    this.#floors = new Map(book.floors)
    this.#shown = book.shown
    this.#refused = book.refused
    this.#row = book.row
  }

  get outcome(): BookOutcome {
    const next: Book = {
      proposals: this.#proposals,
      chosen: this.#chosen,
      states: this.#states,
      shown: this.#shown,
      floors: this.#floors,
      refused: this.#refused,
      ...(this.#row && { row: this.#row }),
    }
    return { next, breaches: this.#breaches }
  }

  take(seen: Observation): void {
    switch (seen.kind) {
      case 'proposed':
        return this.#propose(seen.position, seen.ballot, seen.value)
      case 'accepted':
        return this.#accept(seen.position, seen.ballot, seen.value)
      case 'told': {
        const proposed = this.#proposals.get(formatKey(seen.position, seen.ballot))
        const isChosen =
          proposed !== undefined && this.#isMajority(proposed.acceptedBy, seen.ballot)
        return this.#check(
          isChosen,
          'PAX-7',
          'A ballot is told as chosen that no majority accepted.',
        )
      }
      case 'applied': {
        const chosen = this.#chosen.get(seen.position)
        const isIt = chosen !== undefined && equalBytes(chosen, seen.value)
        return this.#check(isIt, 'PAX-1', 'A value was applied that is not the chosen one.')
      }
      case 'state': {
        const known = this.#states.get(seen.position) ?? seen.bytes
        this.#states.set(seen.position, known)
        const isSame = equalBytes(known, seen.bytes)
        return this.#check(isSame, 'LOG-2', 'One position has two states.')
      }
      case 'submitted': {
        const name = this.#readIntent(seen.request)
        if (!this.#floors.has(name)) this.#floors.set(name, this.#shown)
        return undefined
      }
      case 'verdict':
        return this.#answer(seen.request, seen.verdict)
      case 'read':
        this.#floors.set(`read ${seen.read}`, this.#shown)
        return undefined
      case 'served':
        return this.#serve(seen.read, seen.position)
      case 'row':
        this.#row = seen.row
        return undefined
    }
  }

  #check(holds: boolean, rule: string, sentence: string): void {
    if (!holds) this.#breaches.push({ rule, sentence })
  }

  /** Of the voters of the ballot's epoch. */
  #isMajority(bits: number, { epoch }: Ballot): boolean {
    const { names } = this.#setting
    const { voters } = this.#setOf(epoch)
    let count = 0
    for (const voter of voters) count += (bits >> names.indexOf(voter)) & 1
    return count > voters.length / 2
  }

  #setOf(epoch: number): ReplicaSet {
    const { set, nextSet } = this.#setting
    return epoch === set.epoch ? set : present(nextSet, 'explore: a ballot of no epoch')
  }

  #propose(position: Position, ballot: Ballot, value: Uint8Array): void {
    const key = formatKey(position, ballot)
    const known = this.#proposals.get(key)
    if (known !== undefined) {
      const isSame = equalBytes(known.value, value)
      return this.#check(isSame, 'PAX-5', 'Two values were proposed at one ballot.')
    }
    this.#proposals.set(key, { value, acceptedBy: 0 })
    if (ballot.round === 0) this.#checkLeader(position, ballot)
  }

  #checkLeader(position: Position, ballot: Ballot): void {
    if (position === 1) {
      const isFirst = ballot.node === this.#setOf(ballot.epoch).firstFull
      return this.#check(isFirst, 'PAX-6', 'Position 1 has ballot zero of another than its leader.')
    }
    const leader = this.#entryAt(position - 1)?.nextLeader
    this.#check(
      leader?.node === ballot.node && leader.incarnation === ballot.incarnation,
      'PAX-6',
      'Ballot zero was used by another than the leader that the chosen entry before names.',
    )
  }

  #entryAt(position: Position): Entry | undefined {
    const value = this.#chosen.get(position)
    return value === undefined ? undefined : decodeEntry(value)
  }

  #accept(position: Position, ballot: Ballot, value: Uint8Array): void {
    const key = formatKey(position, ballot)
    const known = this.#proposals.get(key)
    const isSame = known !== undefined && equalBytes(known.value, value)
    this.#check(isSame, 'PAX-5', 'A value was accepted that was not proposed at its ballot.')
    const { closed } = this.#setting
    const isClosed =
      closed !== undefined && position === 1 && ballot.epoch > this.#setting.set.epoch
    this.#check(
      !isClosed || isListed(this.#setting, this.#row),
      'MOVE-14',
      'A node takes part in the beginning of a group in a bucket that is closed.',
    )
    const acceptedBy = (known?.acceptedBy ?? 0) | (1 << this.#node)
    this.#proposals.set(key, { value, acceptedBy })
    if (this.#isMajority(acceptedBy, ballot)) this.#choose(position, value)
  }

  #choose(position: Position, value: Uint8Array): void {
    const before = this.#chosen.get(position)
    if (before !== undefined) {
      const isSame = equalBytes(before, value)
      return this.#check(isSame, 'PAX-1', 'Two values are chosen at one position.')
    }
    this.#chosen.set(position, value)
    this.#checkEnd()
    const seen = new Set<string>()
    for (const at of this.#chosen.keys()) {
      for (const { session, sequence, attempt } of this.#entryAt(at)?.transactions ?? []) {
        const intent = formatIntent({ session, sequence })
        this.#check(!seen.has(intent), 'LOG-3', 'A transaction is in two chosen entries.')
        seen.add(intent)
        const isRefused = this.#refused.includes(`${intent}/${attempt}`)
        this.#check(!isRefused, 'LOG-3', 'A transaction that was refused took effect.')
      }
    }
    this.#checkReads()
  }

  /** MOVE-9: the set chooses nothing behind the entry by which the group leaves it. */
  #checkEnd(): void {
    // In such a scope the entries of the other set are there before the search begins.
    if (this.#setting.scope.isArrival === true) return
    const last = Math.max(...this.#chosen.keys())
    for (const at of this.#chosen.keys()) {
      const mutations = this.#entryAt(at)?.transactions.flatMap((one) => one.mutations) ?? []
      const isMove = mutations.some(({ key }) => equalBytes(key, movedKey))
      this.#check(
        !isMove || at === last,
        'MOVE-9',
        'A value is chosen behind the last entry of the set.',
      )
    }
  }

  /** Nothing that a transaction has read was written between its read position and itself. */
  #checkReads(): void {
    const before: { readonly position: Position; readonly keys: readonly string[] }[] = []
    for (const position of [...this.#chosen.keys()].sort((a, b) => a - b)) {
      for (const { sequence, mutations } of this.#entryAt(position)?.transactions ?? []) {
        const own = this.#setting.submissions.find((one) => one.transaction.sequence === sequence)
        const { readPosition = 0, reads = [], ranges = [] } = own ?? {}
        const keys = before.filter((one) => one.position > readPosition).flatMap((one) => one.keys)
        const isRead = (key: string): boolean => reads.some((one) => latin1(one) === key)
        const isIn = (key: string): boolean =>
          ranges.some(({ gte, lt }) => latin1(gte) <= key && key < latin1(lt))
        this.#check(!keys.some(isRead), 'TXN-1', 'A key was written after it was read.')
        this.#check(!keys.some(isIn), 'TXN-2', 'A range was written to after it was read.')
        before.push({ position, keys: mutations.map(({ key }) => latin1(key)) })
      }
    }
  }

  #readIntent(request: number): string {
    const submitted = present(this.#setting.submissions[request], 'explore: no such request')
    return formatIntent(submitted.transaction)
  }

  #answer(request: number, verdict: Verdict): void {
    const intent = this.#readIntent(request)
    if (verdict.kind === 'overloaded') return
    // The other set answers: it has the group with this transaction, or nothing of the group has begun (MOVE-14).
    if (verdict.kind === 'moved' && verdict.position === 0) return
    if (verdict.kind !== 'committed') {
      const { attempt } = present(
        this.#setting.submissions[request],
        'explore: no such',
      ).transaction
      const refused = `${intent}/${attempt}`
      if (!this.#refused.includes(refused)) this.#refused = [...this.#refused, refused].sort()
      const isChosen = this.#findPosition(intent) !== undefined
      return this.#check(!isChosen, 'LOG-3', 'A transaction that took effect is refused.')
    }
    const isThere = this.#findPosition(intent) === verdict.position
    this.#check(isThere, 'LOG-4', 'A commit is acknowledged that is not in the chosen entry.')
    const floor = this.#floors.get(intent) ?? 0
    const isLater = verdict.position > floor
    this.#check(isLater, 'LEASE-3', 'A commit comes before one acknowledged before it began.')
    this.#shown = Math.max(this.#shown, verdict.position)
  }

  #findPosition(intent: string): Position | undefined {
    for (const position of this.#chosen.keys()) {
      const transactions = this.#entryAt(position)?.transactions ?? []
      if (transactions.some((one) => formatIntent(one) === intent)) return position
    }
    return undefined
  }

  #serve(read: number, position: Position): void {
    const floor = this.#floors.get(`read ${read}`) ?? 0
    const isCurrent = position >= floor
    this.#check(isCurrent, 'LEASE-3', 'A read misses what was shown before it began.')
    this.#shown = Math.max(this.#shown, position)
  }
}

function formatKey(position: Position, ballot: Ballot): string {
  return `${position} ${describeBallot(ballot)}`
}
