/**
 * The cluster version of a replica set as one of its nodes knows it: in force here, and in force at its peers.
 *
 * UPG-1  A node takes part only while its build supports the cluster version in force in its set. It ends when it starts with a
 *        row of another version, or applies one.
 */
import { supportsVersion, versionsText, type Versions } from '../base/cluster-version.ts'
import { StoreError } from '../base/errors.ts'
import type { NodeId } from '../base/ids.ts'
import type { Peers } from '../peers/peers.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Trace } from '../ports/trace.ts'
import type { EpochMessage } from '../replication/message.ts'
import { versionOf, type SetRow } from './change.ts'
import { decodeRow } from './row-codec.ts'
import type { VersionGate } from './version-gate.ts'

export interface SetVersionParts {
  readonly gate: VersionGate
  readonly nodes: Pick<SetNodes, 'others'>
  readonly trace: Trace
  peers(): Pick<Peers, 'checkVersions'>
  send(to: NodeId, message: EpochMessage): void
}

export class SetVersion {
  readonly gate: VersionGate
  readonly #parts: SetVersionParts
  readonly #told = new Map<NodeId, number>()

  constructor(parts: SetVersionParts) {
    this.#parts = parts
    this.gate = parts.gate
  }

  /** The row, which may be of a version that this build does not support: throws `UnsupportedVersion`. */
  read(bytes: Uint8Array): SetRow {
    const { supports } = this.gate
    const row = decodeRow(bytes, supports)
    // Taken for the first row it would be overwritten by the next change.
    if (row === undefined) throw new UnsupportedVersion(supports)
    const version = versionOf(row)
    if (!supportsVersion(supports, version)) throw new UnsupportedVersion(supports, version)
    return row
  }

  /** The row of this version is applied here. */
  apply(version: number): void {
    const { peers, trace } = this.#parts
    if (version === this.gate.inForce) return
    this.gate.apply(version)
    trace.mark('version_applied')
    peers().checkVersions()
    this.tellAll()
  }

  /** The version that the peer has told to be in force at it; undefined: it has told none over its present link. */
  at(peer: NodeId): number | undefined {
    return this.#told.get(peer)
  }

  hear(from: NodeId, inForce: number): void {
    // A build that does not know the message refuses the frame.
    if (this.gate.knowsVersions) this.#told.set(from, inForce)
  }

  onJoined(peer: NodeId): void {
    this.#told.delete(peer)
    this.#tell(peer)
  }

  tellAll(): void {
    for (const node of this.#parts.nodes.others) this.#tell(node)
  }

  #tell(to: NodeId): void {
    if (!this.gate.allows('told-version')) return
    this.gate.use('told-version')
    this.#parts.send(to, { kind: 'version', inForce: this.gate.inForce })
  }
}

/** The row of the set is of a cluster version that this build does not support. */
export class UnsupportedVersion extends StoreError {
  /** `version`: absent, the row is of a format that this build does not know. */
  constructor(supports: Versions, version?: number) {
    const inForce = version === undefined ? 'A later cluster version' : `Cluster version ${version}`
    super(
      'invalid',
      `${inForce} is in force in this replica set, and this build supports ${versionsText(supports)}: start the node with the build that ran it before.`,
    )
  }
}
