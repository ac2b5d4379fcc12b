/**
 * The replica sets of a configuration, and the check that a data folder stays with those it was made
 * under: what a node has voted on counts in these alone.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { StoreError } from '../base/errors.ts'
import type { NodeId } from '../base/ids.ts'
import type { NodeAddress } from './config-values.ts'

/** In the order in which the configuration first names them; of a set, in the order of its nodes. */
export function replicaSetsOf(nodes: readonly NodeAddress[]): readonly (readonly NodeId[])[] {
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
  const known = await readFile(path, 'utf8').catch(() => undefined)
  if (known === undefined) return writeFile(path, text)
  if (known === text) return
  const told = (lines: string): string => lines.split('\n').join(' | ')
  throw new StoreError(
    'invalid',
    `the data folder ${folder} is of nodes ${told(known)}, and the configuration names ${told(text)}; nodes and their order cannot be changed in this version`,
  )
}
