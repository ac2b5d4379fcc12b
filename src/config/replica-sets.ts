/**
 * The replica sets of a configuration, and the check that a data folder stays with those it was made
 * under: what a node has voted on counts in these alone.
 */
import { join } from 'node:path'
import { StoreError } from '../base/errors.ts'
import type { NodeId } from '../base/ids.ts'
import { readBounded } from '../adapters/bounded-file.ts'
import { writeDurably } from '../adapters/durable-file.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import type { NodeAddress } from './values.ts'

/** In the order in which the configuration first names them; of a set, in the order of its nodes. */
export function buildReplicaSets(nodes: readonly NodeAddress[]): readonly (readonly NodeId[])[] {
  const sets = [...new Set(nodes.map(({ set }) => set))]
  return sets.map((name) => nodes.filter(({ set }) => set === name).map(({ id }) => id))
}

/**
 * Notes the sets in a folder that is this node's, the first time. Rejects with `invalid` when it is of
 * others: with other voters, what a majority has chosen might be chosen anew.
 */
export async function keepReplicaSets(
  folder: string,
  sets: readonly (readonly NodeId[])[],
): Promise<void> {
  const path = join(folder, 'replica-sets')
  const text = sets.map((set) => set.join(' ')).join('\n')
  const known = await readKnown(path)
  if (known === undefined) return writeDurably(path, text)
  if (known === text) return
  const told = (lines: string): string => lines.split('\n').join(' | ')
  const mend = isReordered(known, text)
    ? 'name them in the order of the folder'
    : 'name those, or give the node its own folder'
  throw new StoreError(
    'invalid',
    `the data folder ${folder} is of nodes ${told(known)}, and the configuration names ${told(text)}; nodes and their order cannot be changed in this version: ${mend}`,
  )
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
