/**
 * The row that names the replica sets which the cluster did not begin with. It stands in the own group of the first set. Sets are only
 * added to it, so the place of a set in the row gives its number, for all time.
 */
import { isVersion } from '../base/cluster-version.ts'
import { StoreError } from '../base/errors.ts'
import { isNodeId, type NodeId } from '../base/ids.ts'
import { nodeCountMax, nodeUrlCharsMax, setCountMax } from '../base/limits.ts'
import { pack, unpack } from '../base/pack.ts'
import { isPlaceName } from '../base/placed-group.ts'
import { encodeTuple } from '../base/tuple.ts'
import type { LaterSet } from '../placement/placement.ts'

/** Relative to the group. */
export const laterSetsKey: Uint8Array = encodeTuple(['sets'])

const rowFormat = 1

export type LaterSetsRow = readonly LaterSet[]

/** The same row where it has the set, with the same nodes, already. Throws `invalid` where a name or a node is in use. */
export function addSet(row: LaterSetsRow, set: LaterSet, firstSetCount: number): LaterSetsRow {
  const twin = row.find(({ name }) => name === set.name)
  if (twin !== undefined) {
    if (isSameNodes(twin, set)) return row
    throw new StoreError('invalid', `There is a replica set ${set.name} already, with other nodes.`)
  }
  if (firstSetCount + row.length >= setCountMax) {
    throw new StoreError('invalid', `A cluster has at most ${setCountMax} replica sets.`)
  }
  for (const { node } of set.nodes) {
    const other = row.find(({ nodes }) => nodes.some((one) => one.node === node))
    if (other === undefined) continue
    throw new StoreError('invalid', `${node} is a node of replica set ${other.name} already.`)
  }
  return [...row, set]
}

function isSameNodes({ nodes }: LaterSet, other: LaterSet): boolean {
  return (
    nodes.length === other.nodes.length &&
    nodes.every(({ node, url }, at) => {
      const of = other.nodes[at]
      return of?.node === node && of.url === url
    })
  )
}

export function encodeLaterSets(row: LaterSetsRow): Uint8Array {
  return pack([
    rowFormat,
    ...row.map(({ name, version, nodes }) => {
      return [name, version, nodes.map(({ node, url }) => [node, url])]
    }),
  ])
}

/** Undefined for bytes that are not such a row. */
export function decodeLaterSets(bytes: Uint8Array): LaterSetsRow | undefined {
  const fields = unpack(bytes)
  if (!Array.isArray(fields)) return undefined
  const [format, ...packed]: unknown[] = fields
  if (format !== rowFormat || packed.length > setCountMax) return undefined
  return readLaterSets(
    packed.map((one) => {
      const [name, version, nodes]: unknown[] = Array.isArray(one) ? one : []
      return { name, version, nodes }
    }),
  )
}

/** A set as it comes from a file, a row or another node. */
interface Told {
  readonly name: unknown
  readonly version: unknown
  /** Pairs of a name and an address. */
  readonly nodes: unknown
}

/** Undefined where these are no later sets: a name, or a node, stands there once. */
export function readLaterSets(told: readonly Told[]): LaterSetsRow | undefined {
  const sets = told.flatMap(readOne)
  const names = new Set(sets.map(({ name }) => name))
  const nodes = sets.flatMap((set) => set.nodes.map(({ node }) => node))
  const isRow = sets.length === told.length && names.size === sets.length
  return isRow && new Set(nodes).size === nodes.length ? sets : undefined
}

function readOne({ name, version, nodes }: Told): readonly LaterSet[] {
  if (typeof name !== 'string' || !isPlaceName(name) || !isVersion(version)) return []
  if (!Array.isArray(nodes) || nodes.length === 0 || nodes.length > nodeCountMax) return []
  const listed = nodes.flatMap(readNode)
  return listed.length === nodes.length ? [{ name, version, nodes: listed }] : []
}

function readNode(told: unknown): readonly { readonly node: NodeId; readonly url: string }[] {
  const [node, url]: unknown[] = Array.isArray(told) ? told : []
  if (typeof node !== 'string' || !isNodeId(node)) return []
  if (typeof url !== 'string' || url.length > nodeUrlCharsMax) return []
  return [{ node, url }]
}
