/**
 * An operator puts the next cluster version in force in a replica set.
 *
 * UPG-2  The version of a set rises by one. It rises only when each voter, each read-only member and each newcomer is heard of
 *        and supports the version that follows.
 */
import { supportsVersion, versionsText, type Versions } from '../base/cluster-version.ts'
import { StoreError } from '../base/errors.ts'
import type { NodeId } from '../base/ids.ts'
import { versionsOf } from '../peers/admission.ts'
import type { LinkInfo } from '../ports/transport.ts'
import { isUnderWay, raiseVersion, versionOf, type SetRow } from './change.ts'

/** The other nodes as the node sees them that raises the version. */
export interface RaisingParts {
  readonly node: NodeId
  /** Its own versions. */
  readonly supports: Versions
  votersOf(row: SetRow): readonly NodeId[]
  /** The facts that the peer told as its link began; undefined: it has none. */
  linkOf(peer: NodeId): LinkInfo | undefined
  isHeardOf(peer: NodeId): boolean
  /** The cluster version that the peer has told to be in force at it; undefined: it has told none. */
  versionAt(peer: NodeId): number | undefined
}

/** Throws `invalid` where the node itself does not support that version. */
export function checkSupported({ supports }: Pick<RaisingParts, 'supports'>, to: number): void {
  if (supportsVersion(supports, to)) return
  const why = `This node supports ${versionsText(supports)}, and not version ${to}.`
  throw new StoreError('invalid', why)
}

/**
 * The row with that version; undefined where it is in force. Throws `invalid` where another version comes first, `unavailable` where a
 * member is not ready for it.
 */
export function raised(parts: RaisingParts, row: SetRow, to: number): SetRow | undefined {
  const version = versionOf(row)
  if (version >= to) return undefined
  if (version + 1 < to) {
    const why = `Cluster version ${version} is in force: version ${version + 1} comes first.`
    throw new StoreError('invalid', why)
  }
  checkMembers(parts, row, to)
  return raiseVersion(row, to)
}

function checkMembers(parts: RaisingParts, row: SetRow, to: number): void {
  for (const node of listMembers(row, parts.votersOf(row))) {
    const why = node === parts.node ? undefined : findHindrance(parts, node, row, to)
    if (why !== undefined) throw new StoreError('unavailable', why)
  }
}

function findHindrance(
  { linkOf, isHeardOf, versionAt }: RaisingParts,
  node: NodeId,
  row: SetRow,
  to: number,
): string | undefined {
  const link = linkOf(node)
  if (link === undefined || !isHeardOf(node)) {
    return `${node} does not answer here: start it, or remove it from the replica set.`
  }
  const supports = versionsOf(link)
  if (!supportsVersion(supports, to)) {
    return `${node} runs a build that supports ${versionsText(supports)}: upgrade it first.`
  }
  const version = versionOf(row)
  // Nodes tell it from version 2 on.
  const isLate = version > 1 && (versionAt(node) ?? 0) < version
  return isLate ? `${node} has not put cluster version ${version} in force yet.` : undefined
}

/** Voters, read-only members, and a node that comes or leaves. */
function listMembers(row: SetRow, voters: readonly NodeId[]): readonly NodeId[] {
  const { readers, change } = row
  const isChanging = change?.node !== undefined && isUnderWay(change)
  const changing = isChanging && change.node !== undefined ? [change.node] : []
  return [...new Set([...voters, ...readers.keys(), ...changing])]
}
