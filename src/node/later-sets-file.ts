/**
 * The replica sets that came after the cluster's beginning, as a data folder keeps them: a line for each, in the order of their numbers.
 * A node goes by the row that names them (`../members/later-sets-row.ts`); the file is for its next start.
 *
 *   third 2: g=http://10.0.0.7:4700 h=http://10.0.0.8:4700
 */
import { join } from 'node:path'
import { readBounded } from '../adapters/bounded-file.ts'
import { writeDurably } from '../adapters/durable-file.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import { StoreError } from '../base/errors.ts'
import { readLaterSets, type LaterSetsRow } from '../members/later-sets-row.ts'
import type { LaterSet } from '../placement/placement.ts'
import { listSets } from '../config/replica-sets.ts'
import type { NodeAddress } from '../config/values.ts'

export const laterSetsName = 'later-sets'

/** Far more than the names and addresses of all nodes of a cluster have. */
const fileBytesMax = 16_777_216

export function laterSetsText(sets: LaterSetsRow): string {
  return sets
    .map(({ name, version, nodes }) => {
      return `${name} ${version}: ${nodes.map(({ node, url }) => `${node}=${url}`).join(' ')}\n`
    })
    .join('')
}

/** Undefined for a text that no node wrote. */
export function readLaterSetsText(text: string): LaterSetsRow | undefined {
  const lines = text.split('\n').filter((line) => line !== '')
  return readLaterSets(
    lines.map((line) => {
      const [, name, version = '', nodes = ''] = /^(\S+) ([0-9]+): (.*)$/.exec(line) ?? []
      const pairs = nodes.split(' ').map((one) => {
        const at = one.indexOf('=')
        return [one.slice(0, at), one.slice(at + 1)]
      })
      return { name, version: Number(version), nodes: pairs }
    }),
  )
}

/** Rejects with `unavailable` where the file cannot be written, as on a full disk. */
export async function keepLaterSets(folder: string, sets: LaterSetsRow): Promise<void> {
  const path = join(folder, laterSetsName)
  try {
    await writeDurably(path, laterSetsText(sets))
  } catch (error) {
    const message = `${path} cannot be written: ${fileFailure(error)}`
    throw new StoreError('unavailable', message, {}, { cause: error })
  }
}

/** Empty where the folder keeps none. Rejects with `invalid` where the file cannot be read, or no node wrote it. */
export async function readKeptLaterSets(folder: string): Promise<LaterSetsRow> {
  const path = join(folder, laterSetsName)
  let why = 'no node wrote it so'
  try {
    const bytes = await readBounded(path, fileBytesMax)
    const sets = bytes && readLaterSetsText(bytes.toString())
    if (sets !== undefined) return sets
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    why = fileFailure(error)
  }
  const advice = 'remove it: the node asks the cluster for these sets again'
  throw new StoreError('invalid', `${path} cannot be read: ${why}; ${advice}`)
}

/** The name of the later set that the node is in, by its configuration: all nodes of such a set join. */
export function findLaterSet(nodes: readonly NodeAddress[], node: string): string | undefined {
  const set = nodes.find(({ id }) => id === node)?.set
  return set === undefined || listSets(nodes).includes(set) ? undefined : set
}

/** All nodes of the cluster: of the configuration, and those that later sets began with. */
export function withLaterNodes(
  configured: readonly NodeAddress[],
  sets: readonly LaterSet[],
): readonly NodeAddress[] {
  const later = sets.flatMap(({ name, nodes }) => {
    return nodes.map(({ node, url }): NodeAddress => {
      const { joins: _, ...known } = configured.find(({ id }) => id === node) ?? {}
      return { url, ...known, id: node, set: name }
    })
  })
  const ids = new Set(later.map(({ id }) => id))
  return [...configured.filter(({ id }) => !ids.has(id)), ...later]
}
