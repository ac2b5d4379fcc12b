/**
 * The replica sets of a configuration, and the check that a data folder stays with those it was made
 * under: what a node has voted on counts in these alone.
 */
import { join } from 'node:path'
import { StoreError } from '../base/errors.ts'
import { isNodeId, type NodeId } from '../base/ids.ts'
import { readBounded } from '../adapters/bounded-file.ts'
import { writeDurably } from '../adapters/durable-file.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import { keptText, readKept, refusalOfSites, type KeptSet } from './kept-sets.ts'
import type { NodeAddress } from './values.ts'

/**
 * The names of the sets, in the order in which the configuration first names a node of each. Nodes that join count for nothing
 * here: configurations with and without them must give the same order.
 */
export function listSets(nodes: readonly NodeAddress[]): readonly string[] {
  return [...new Set(listFirst(nodes).map(({ set }) => set))]
}

/** The nodes that the sets began with, in the order of the configuration. */
export function listFirst(nodes: readonly NodeAddress[]): readonly NodeAddress[] {
  return nodes.filter(({ joins = false }) => !joins)
}

/** The nodes that each set began with, in the order of the configuration. */
export function buildReplicaSets(nodes: readonly NodeAddress[]): readonly (readonly NodeId[])[] {
  const first = listFirst(nodes)
  return listSets(nodes).map((name) => first.filter(({ set }) => set === name).map(({ id }) => id))
}

/** The sets with their nodes and with where they are. A set is in the region that a majority of its first nodes is in. */
export function buildKeptSets(nodes: readonly NodeAddress[]): readonly KeptSet[] {
  const first = listFirst(nodes)
  return listSets(nodes).map((name) => {
    const ofSet = first.filter(({ set }) => set === name)
    const region = findRegion(ofSet)
    return { name, nodes: ofSet.map(({ id }) => id), ...(region !== undefined && { region }) }
  })
}

/** Undefined: no majority of them is in one region. */
export function findRegion(ofSet: readonly NodeAddress[]): string | undefined {
  const regions = ofSet.map(({ region }) => region)
  return regions.find((one) => {
    const count = regions.filter((region) => region === one).length
    return one !== undefined && count * 2 > ofSet.length
  })
}

/** A node that no set began with. */
interface JoiningNode {
  readonly node: NodeId
  /** The number of the set that it comes to, from 0. */
  readonly set: number
}

/** Those that come to a set that others began. `later`: the names of the sets that came later, as far as they are known. */
export function buildJoining(
  nodes: readonly NodeAddress[],
  later: readonly string[] = [],
): readonly JoiningNode[] {
  const sets = [...listSets(nodes), ...later]
  return nodes
    .filter(({ joins = false, set }) => joins && sets.includes(set))
    .map(({ id, set }) => ({ node: id, set: sets.indexOf(set) }))
}

/**
 * Notes the sets in a folder that is this node's, the first time. Rejects with `invalid` when it is of
 * others: with other voters, what a majority has chosen might be chosen anew. Rejects, too, when sets have other names or
 * regions: groups whose names have a place would be in another set.
 */
export async function keepReplicaSets(folder: string, sets: readonly KeptSet[]): Promise<void> {
  const path = join(folder, 'replica-sets')
  const written = await readKnown(path)
  const text = keptText(sets)
  if (written === text) return
  if (written !== undefined) checkKept(folder, readKept(written), sets)
  await writeDurably(path, text)
}

function checkKept(
  folder: string,
  kept: ReturnType<typeof readKept>,
  sets: readonly KeptSet[],
): void {
  const [known, given] = [nodesText(kept), nodesText(sets)]
  if (known !== given) {
    const mend = isReordered(known, given)
      ? 'name them in the order of the folder'
      : 'name those, or give the node its own folder'
    throw new StoreError(
      'invalid',
      `the data folder ${folder} is of nodes ${told(known)}, and the configuration names ${told(given)}; these are the nodes that the replica sets began with, and they stay so: ${mend}; a node that comes later has joins: true, and trilithon nodes add makes it a member`,
    )
  }
  const refusal = refusalOfSites(kept, sets)
  if (refusal !== undefined) {
    throw new StoreError('invalid', `the data folder ${folder} ${refusal}`)
  }
}

function nodesText(sets: readonly Pick<KeptSet, 'nodes'>[]): string {
  return sets.map(({ nodes }) => nodes.join(' ')).join('\n')
}

function told(lines: string): string {
  return lines.split('\n').join(' | ')
}

/** The first nodes of each set, as the folder keeps them; undefined: none were ever written. */
export async function readReplicaSets(
  folder: string,
): Promise<readonly (readonly NodeId[])[] | undefined> {
  const known = await readKnown(join(folder, 'replica-sets'))
  if (known === undefined) return undefined
  return readKept(known).map(({ nodes }) => nodes.filter((one) => isNodeId(one)))
}

/** The same sets of the same nodes. */
function isReordered(known: string, text: string): boolean {
  const sorted = (lines: string): string => {
    const sets = lines.split('\n').map((set) => set.split(' ').toSorted().join(' '))
    return sets.toSorted().join('\n')
  }
  return sorted(known) === sorted(text)
}

/** Far more than the names of all nodes of a cluster have. */
const setsBytesMax = 1_048_576

/** Undefined when it was never written; whatever else hides it is no reason to write it anew. */
async function readKnown(path: string): Promise<string | undefined> {
  try {
    const bytes = await readBounded(path, setsBytesMax)
    if (bytes !== undefined) return bytes.toString()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    const message = `${path} cannot be read: ${fileFailure(error)}; it says whose the data folder is`
    throw new StoreError('invalid', message, {}, { cause: error })
  }
  const text = `${path} has more than ${setsBytesMax} bytes: no node wrote it; it says whose the data folder is`
  throw new StoreError('invalid', text)
}
