/** The voters and read-only members of a replica set as one of its nodes sees them: from its own part, and from what peers have told. */
import type { NodeId } from '../base/ids.ts'
import type { LogStore } from '../log/log-store.ts'
import { versionsOf } from '../peers/admission.ts'
import type { Peers } from '../peers/peers.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { StandingTold } from '../replication/message.ts'
import type { SetRow } from './change.ts'
import type { Epochs } from './epochs.ts'
import type { MemberReport, MembersReport, VotersReport } from './report.ts'
import type { SetVersion } from './set-version.ts'

export interface MemberReportsParts {
  readonly node: NodeId
  readonly nodes: SetNodes
  readonly log: Pick<LogStore, 'identity' | 'memory'>
  readonly epochs: Epochs
  peers(): Peers
  row(): SetRow
  /** The nodes that vote in the epoch of the row. */
  votersOf(row: SetRow): readonly NodeId[]
  /** The part that the peer has told. */
  told(node: NodeId): StandingTold | undefined
  readonly version: SetVersion
}

export class MemberReports {
  readonly #parts: MemberReportsParts

  constructor(parts: MemberReportsParts) {
    this.#parts = parts
  }

  get voters(): VotersReport {
    const row = this.#parts.row()
    const nodes = this.#parts.votersOf(row).map((node) => {
      const url = row.urls.get(node)
      return url === undefined ? { node } : { node, url }
    })
    return { epoch: row.epoch, nodes }
  }

  get members(): MembersReport {
    const { node, nodes, epochs } = this.#parts
    const { change, readers } = this.#parts.row()
    const { gate } = this.#parts.version
    const members = nodes.all.map((one) => {
      const standing = one === node ? this.#describeSelf() : this.#describe(one)
      const member = { ...standing, ...this.#versionsAt(one) }
      return readers.has(one) ? { ...member, isReader: true as const } : member
    })
    const voting = members.filter((one) => {
      return one.isAlive && one.standing === 'voting' && nodes.isVoter(one.node)
    })
    const canLose = voting.length - nodes.majority
    const { epoch, blocked } = epochs.own
    const { standing } = this.#describeSelf()
    const own = { epoch, standing, blockedGroups: blocked.length }
    const version = gate.knowsVersions ? { version: gate.inForce } : {}
    return { ...own, members, canLose, ...(change !== undefined && { change }), ...version }
  }

  /** A build that knows of no versions says nothing of them. */
  #versionsAt(node: NodeId): Pick<MemberReport, 'supports' | 'version'> {
    const { version: known, peers } = this.#parts
    const { gate } = known
    if (!gate.knowsVersions) return {}
    if (node === this.#parts.node) return { supports: gate.supports, version: gate.inForce }
    const link = peers().linkOf(node)
    const version = known.at(node)
    return {
      ...(link && { supports: versionsOf(link) }),
      ...(version !== undefined && { version }),
    }
  }

  #describeSelf(): MemberReport {
    const { node, log, epochs } = this.#parts
    const { epoch, isMember } = epochs.own
    const { storeId } = log.identity
    const voter = epochs.isVoting ? 'voting' : 'before-gate'
    const standing = isMember ? voter : epochs.isReader ? 'read-only' : 'newcomer'
    return { node, storeId, isAlive: true, epoch, standing }
  }

  #describe(node: NodeId): MemberReport {
    const { log, peers } = this.#parts
    const link = peers().linkOf(node)
    const reader = this.#parts.row().readers.get(node)?.store
    const storeId = reader ?? log.memory.of(node)?.storeId
    const told = this.#toldBy(node)
    const known = storeId === undefined ? {} : { storeId }
    const isAlive = peers().isHeardOf(node)
    if (!isAlive || told === undefined) return { node, ...known, isAlive, standing: 'unknown' }
    const { epoch } = told
    const come = link?.storeId
    const isReader = reader !== undefined && reader === come
    const standing = isReader ? 'read-only' : this.#standingOf(node, told)
    const own = standing === 'newcomer' && come !== undefined ? { storeId: come } : known
    return { node, ...own, isAlive, epoch, standing }
  }

  /** In the first epoch there is no gate: a store that has a link votes. */
  #toldBy(node: NodeId): Pick<StandingTold, 'epoch' | 'gated'> | undefined {
    const { epochs, peers, told } = this.#parts
    const isOfFirst = epochs.own.epoch === 1 && !peers().isNewcomer(node)
    return told(node) ?? (isOfFirst ? { epoch: 1, gated: 1 } : undefined)
  }

  #standingOf(
    node: NodeId,
    { epoch, gated }: Pick<StandingTold, 'epoch' | 'gated'>,
  ): MemberReport['standing'] {
    if (this.#parts.peers().isNewcomer(node)) return 'newcomer'
    return gated === epoch ? 'voting' : 'before-gate'
  }
}
