/** The requests of an operator for the voters of a replica set: each becomes a change in the row of the set's own group. */
import { StoreError } from '../base/errors.ts'
import { isStoreId, type NodeId } from '../base/ids.ts'
import { nodeCountMax } from '../base/limits.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Peers } from '../peers/peers.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import * as changes from './change.ts'
import type { Mover } from './mover.ts'
import type { MemberReports } from './member-reports.ts'
import { checkSupported, raised } from './raising.ts'
import { beginDemote, beginPromote, removeReader } from './reader-change.ts'
import type { MembersPort, MembersReport } from './report.ts'
import type { SetVersion } from './set-version.ts'

export interface MemberRequestsParts {
  readonly node: NodeId
  readonly nodes: SetNodes
  readonly log: LogStore
  readonly mover: Mover
  readonly reports: MemberReports
  peers(): Peers
  /** The nodes that vote in the epoch of the row. */
  votersOf(row: changes.SetRow): readonly NodeId[]
  readonly version: SetVersion
}

/** A new store's first incarnation is this much above all that the old one is known to have had. */
const seatGap = 4_096
const seatMax = 2 ** 21 - 2 * seatGap

type Made = Promise<{ readonly change: changes.Change }>

export class MemberRequests implements MembersPort {
  readonly #parts: MemberRequestsParts

  constructor(parts: MemberRequestsParts) {
    this.#parts = parts
  }

  get report(): MembersReport {
    return this.#parts.reports.members
  }

  async replace(node: NodeId): Made {
    if (!this.#isReader(node)) this.#checkVoter(node, 'replacement')
    this.#checkBuilds(node)
    return this.#make((row, now) => {
      if (isGoingOn(row, 'replace', node)) return undefined
      return changes.beginReplace(row, node, this.#nextSeat(row, node), now)
    })
  }

  async add(node: NodeId, url: string): Made {
    this.#checkBuilds(undefined)
    return this.#add('add', node, url)
  }

  async addReader(node: NodeId, url: string): Made {
    this.#checkKnowReaders()
    return this.#add('add-reader', node, url)
  }

  #add(kind: 'add' | 'add-reader', node: NodeId, url: string): Made {
    const { nodes, votersOf } = this.#parts
    if (nodes.isVoter(node)) {
      throw new StoreError('invalid', `${node} is a node of this replica set already.`)
    }
    return this.#make((row, now) => {
      if (isGoingOn(row, kind, node) && row.urls.get(node) === url) return undefined
      if (row.readers.has(node)) {
        const advice = `trilithon nodes promote ${node} gives it a vote.`
        throw new StoreError('invalid', `${node} is a read-only member already: ${advice}`)
      }
      if (votersOf(row).length + row.readers.size >= nodeCountMax) {
        throw new StoreError('invalid', `A replica set has at most ${nodeCountMax} nodes.`)
      }
      return changes.beginAdd(row, { kind, node, url, seat: this.#nextSeat(row, node) }, now)
    })
  }

  async promote(node: NodeId): Made {
    this.#checkKnowReaders()
    return this.#make((row, now) => {
      if (isGoingOn(row, 'promote', node)) return undefined
      if (row.readers.has(node)) return beginPromote(row, node, now)
      const isVoter = this.#parts.votersOf(row).includes(node)
      const why = isVoter ? 'has a vote already' : 'is no read-only member of this replica set'
      throw new StoreError('invalid', `${node} ${why}.`)
    })
  }

  async demote(node: NodeId): Made {
    if (this.#isReader(node)) {
      throw new StoreError('invalid', `${node} is a read-only member already.`)
    }
    this.#checkVoter(node, 'demotion')
    this.#checkKnowReaders()
    return this.#make((row, now) => {
      if (isGoingOn(row, 'demote', node)) return undefined
      const voters = this.#parts.votersOf(row)
      this.#checkNotLast(node, voters)
      const store = this.#parts.log.memory.of(node)?.storeId
      if (store === undefined || !isStoreId(store)) {
        const why = `The store of ${node} is not known here: it has not been met.`
        throw new StoreError('unavailable', `${why} Start it first.`)
      }
      return beginDemote(row, { node, voters, store }, now)
    })
  }

  async remove(node: NodeId): Made {
    if (!this.#isReader(node)) this.#checkVoter(node, 'removal')
    this.#checkBuilds(node)
    return this.#make((row, now) => {
      if (isGoingOn(row, 'remove', node)) return undefined
      const { log, peers, votersOf } = this.#parts
      if (row.readers.has(node)) {
        const lastSeat = peers().linkOf(node)?.incarnation ?? 0
        return removeReader(row, { node, lastSeat }, now)
      }
      const voters = votersOf(row)
      if (!voters.includes(node)) return undefined
      this.#checkNotLast(node, voters)
      const lastSeat = log.memory.of(node)?.incarnation ?? 0
      return changes.beginRemove(row, { node, voters, lastSeat }, now)
    })
  }

  #isReader(node: NodeId): boolean {
    return this.#parts.nodes.readers.includes(node)
  }

  #checkNotLast(node: NodeId, voters: readonly NodeId[]): void {
    if (voters.length > 1 || !voters.includes(node)) return
    throw new StoreError('invalid', `${node} is the last voter of this replica set: it stays.`)
  }

  #checkVoter(node: NodeId, what: string): void {
    const { node: own, nodes } = this.#parts
    if (!nodes.isVoter(node)) {
      throw new StoreError(
        'invalid',
        `${node} is no node of this replica set: ${nodes.voters.join(', ')}.`,
      )
    }
    if (node !== own) return
    const why = `${node} cannot begin the ${what} of its own store: the other nodes of its set can.`
    throw new StoreError('invalid', why)
  }

  /** The first incarnation of a store that comes to the name: above all that another one has had. */
  #nextSeat(row: changes.SetRow, node: NodeId): number {
    const { log, peers } = this.#parts
    const had = log.memory.of(node)?.incarnation ?? 0
    const has = peers().linkOf(node)?.incarnation ?? 0
    const seat = Math.max(row.lastSeat, had, has) + seatGap
    if (seat > seatMax) throw new StoreError('invalid', `${node} has no seat left.`)
    return seat
  }

  async renew(): Made {
    this.#checkBuilds(undefined)
    return this.#make((row, now) => changes.beginRenew(row, now))
  }

  async cancel(number?: number): Made {
    return this.#make((row, now) => changes.giveUp(row, now, number))
  }

  async raise(to: number): Promise<{ readonly version: number }> {
    const { node, mover, peers, votersOf, version } = this.#parts
    const seen = {
      ...{ node, votersOf, supports: version.gate.supports },
      linkOf: (peer: NodeId) => peers().linkOf(peer),
      isHeardOf: (peer: NodeId) => peers().isHeardOf(peer),
      versionAt: (peer: NodeId) => version.at(peer),
    }
    checkSupported(seen, to)
    const row = await mover.request((found) => raised(seen, found, to))
    return { version: changes.versionOf(row) }
  }

  /** A build of before would vote on in an epoch that the others have ended. */
  #checkBuilds(but: NodeId | undefined): void {
    const { nodes, peers } = this.#parts
    for (const node of nodes.otherVoters) {
      if (node === but || !peers().isAlive(node)) continue
      if (peers().knowsEpochs(node)) continue
      throw new StoreError(
        'unavailable',
        `${node} runs a build that knows no epochs: upgrade it first.`,
      )
    }
  }

  /** A build of before cannot read a row with read-only members: it would not know who votes from then on. */
  #checkKnowReaders(): void {
    this.#checkBuilds(undefined)
    const { nodes, peers } = this.#parts
    const old = nodes.otherVoters.find((node) => {
      return peers().isAlive(node) && peers().linkOf(node)?.knowsReaders !== true
    })
    if (old === undefined) return
    throw new StoreError(
      'unavailable',
      `${old} runs a build that knows no read-only members: upgrade it first.`,
    )
  }

  async #make(make: (row: changes.SetRow, now: number) => changes.SetRow | undefined): Made {
    const { change } = await this.#parts.mover.request(make)
    if (change === undefined)
      throw new StoreError('internal', 'a change was made, and there is none')
    return { change }
  }
}

function isGoingOn({ change }: changes.SetRow, kind: changes.ChangeKind, node: NodeId): boolean {
  return change?.kind === kind && change.node === node && changes.isUnderWay(change)
}
