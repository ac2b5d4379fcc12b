/**
 * The one place that says what a node may use of formats and messages that earlier builds do not know.
 *
 * UPG-3  A format or a message of a version is written or sent only by a node at which that version is in force.
 */
import { assert } from '../base/assert.ts'
import {
  allowsFeature,
  firstVersion,
  supportsVersion,
  type Feature,
  type Versions,
} from '../base/cluster-version.ts'

export class VersionGate {
  /** The versions that this node's build supports, or those of the build that it acts as. */
  readonly supports: Versions
  #inForce = firstVersion

  constructor(supports: Versions) {
    this.supports = supports
  }

  /** The version that this node has applied; the first one until it has read the row of its set. */
  get inForce(): number {
    return this.#inForce
  }

  /** Whether the build knows of versions at all. */
  get knowsVersions(): boolean {
    return this.supports.max > firstVersion
  }

  allows(feature: Feature): boolean {
    return allowsFeature(this.#inForce, feature)
  }

  /** Called right before a format of the feature is written, or a message of it sent. */
  use(feature: Feature): void {
    assert(this.allows(feature), `UPG-3: ${feature} is used before its version is in force`)
  }

  /** The node has applied a row of this version. A node that lost its data store may begin with an earlier one. */
  apply(version: number): void {
    assert(
      supportsVersion(this.supports, version),
      'UPG-1: a version is in force that is not supported',
    )
    this.#inForce = version
  }
}
