/** The requests of an operator for the voters of a replica set: each becomes a change in the row of the set's own group. */
import { StoreError } from '../base/errors.ts'
import type { NodeId } from '../base/ids.ts'
import { nodeCountMax } from '../base/limits.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Peers } from '../peers/peers.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import * as changes from './change.ts'
import type { Mover } from './mover.ts'
import type { MembersPort } from './report.ts'

export interface MemberRequestsParts {
  readonly node: NodeId
  readonly nodes: SetNodes
  readonly log: LogStore
  readonly mover: Mover
  peers(): Peers
  /** The nodes that vote in the epoch of the row. */
  votersOf(row: changes.SetRow): readonly NodeId[]
}

/** A new store's first incarnation is this much above all that the old one is known to have had. */
const seatGap = 4_096
const seatMax = 2 ** 21 - 2 * seatGap

export class MemberRequests implements Omit<MembersPort, 'report'> {
  readonly #parts: MemberRequestsParts

  constructor(parts: MemberRequestsParts) {
    this.#parts = parts
  }

  async replace(node: NodeId): Promise<{ readonly change: changes.Change }> {
    this.#checkVoter(node, 'replacement')
    this.#checkBuilds(node)
    return this.#make((row, now) => {
      if (isGoingOn(row, 'replace', node)) return undefined
      return changes.beginReplace(row, node, this.#nextSeat(row, node), now)
    })
  }

  async add(node: NodeId, url: string): Promise<{ readonly change: changes.Change }> {
    if (this.#parts.nodes.isVoter(node)) {
      throw new StoreError('invalid', `${node} is a node of this replica set already.`)
    }
    this.#checkBuilds(undefined)
    return this.#make((row, now) => {
      if (isGoingOn(row, 'add', node) && row.urls.get(node) === url) return undefined
      const count = this.#parts.votersOf(row).length
      if (count >= nodeCountMax) {
        throw new StoreError('invalid', `A replica set has at most ${nodeCountMax} nodes.`)
      }
      return changes.beginAdd(row, { node, url, seat: this.#nextSeat(row, node) }, now)
    })
  }

  async remove(node: NodeId): Promise<{ readonly change: changes.Change }> {
    this.#checkVoter(node, 'removal')
    this.#checkBuilds(node)
    return this.#make((row, now) => {
      if (isGoingOn(row, 'remove', node)) return undefined
      const voters = this.#parts.votersOf(row)
      if (!voters.includes(node)) return undefined
      const lastSeat = this.#parts.log.memory.of(node)?.incarnation ?? 0
      return changes.beginRemove(row, { node, voters, lastSeat }, now)
    })
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
    const had = this.#parts.log.memory.of(node)?.incarnation ?? 0
    const seat = Math.max(row.lastSeat, had) + seatGap
    if (seat > seatMax) throw new StoreError('invalid', `${node} has no seat left.`)
    return seat
  }

  async renew(): Promise<{ readonly change: changes.Change }> {
    this.#checkBuilds(undefined)
    return this.#make((row, now) => changes.beginRenew(row, now))
  }

  async cancel(): Promise<{ readonly change: changes.Change }> {
    return this.#make((row, now) => changes.giveUp(row, now))
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

  async #make(
    make: (row: changes.SetRow, now: number) => changes.SetRow | undefined,
  ): Promise<{ readonly change: changes.Change }> {
    const { change } = await this.#parts.mover.request(make)
    if (change === undefined)
      throw new StoreError('internal', 'a change was made, and there is none')
    return { change }
  }
}

function isGoingOn({ change }: changes.SetRow, kind: changes.ChangeKind, node: NodeId): boolean {
  return change?.kind === kind && change.node === node && changes.isUnderWay(change)
}
