/**
 * The sets that came later, at the start of a node: those that its folder keeps. A node of such a set that does not know its set yet asks
 * the nodes of its configuration, until an operator has added the set.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { askNode, isObject } from '../adapters/node-asks.ts'
import { StoreError } from '../base/errors.ts'
import { findLaterSet, keepLaterSets, readKeptLaterSets } from './later-sets-file.ts'
import type { NodeConfig } from '../config/node-config.ts'
import { listFirst } from '../config/replica-sets.ts'
import { readLaterSets, type LaterSetsRow } from '../members/later-sets-row.ts'

export interface KnownSetsParts {
  readonly config: Pick<NodeConfig, 'node' | 'nodes' | 'data'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
  /** Ends the questions. */
  readonly signal: AbortSignal | undefined
  /** Called with the reason for which the start waits. */
  onWait(why: string): void
}

const askMs = 5_000
const waitMs = 1_000

/** The folder is there. Rejects with `closed` when the signal ends it. */
export async function prepareLaterSets(parts: KnownSetsParts): Promise<LaterSetsRow> {
  const { node, nodes, data } = parts.config
  const kept = await readKeptLaterSets(data)
  const own = findLaterSet(nodes, node)
  if (own === undefined || kept.some(({ name }) => name === own)) return kept
  const found = await askForSet(parts, own)
  await keepLaterSets(data, found)
  return found
}

async function askForSet(
  { config, logger, signal, onWait }: KnownSetsParts,
  own: string,
): Promise<LaterSetsRow> {
  const { node, nodes } = config
  const first = listFirst(nodes)
  let told = ''
  for (;;) {
    if (signal?.aborted === true) throw new StoreError('closed', 'this node was stopped')
    const answers = await Promise.all(first.map(({ url }) => askSets(url, signal)))
    const found = answers.find((row) => row?.some(({ name }) => name === own) === true)
    if (found !== undefined) return found
    const url = nodes.find(({ id }) => id === node)?.url ?? ''
    const isSilent = answers.every((row) => row === undefined)
    const why = isSilent
      ? `no node of the cluster tells of replica set ${own} yet: start the others`
      : `the cluster has no replica set ${own} yet; add it with all its nodes: trilithon sets add ${own} --nodes ${node}=${url}`
    onWait(why)
    if (told !== why) logger.warn(`this node waits: ${why}`)
    told = why
    await delay(waitMs, undefined, signal === undefined ? {} : { signal }).catch(() => undefined)
  }
}

/** The later sets as that node knows them; undefined: it does not answer. */
async function askSets(
  url: string,
  signal: AbortSignal | undefined,
): Promise<LaterSetsRow | undefined> {
  const request = { method: 'GET', url, path: '/sets', headers: {}, timeoutMs: askMs } as const
  const { body } = await askNode({ ...request, ...(signal !== undefined && { signal }) })
  const sets: unknown = body?.['sets']
  if (!Array.isArray(sets)) return undefined
  const later = sets.filter((one) => isObject(one) && one['version'] !== undefined)
  return readLaterSets(later.map(readTold))
}

function readTold(set: unknown): Parameters<typeof readLaterSets>[0][number] {
  const { set: name, version, nodes } = isObject(set) ? set : {}
  const listed: unknown[] = Array.isArray(nodes) ? nodes : []
  return {
    ...{ name, version },
    nodes: listed.map((one) => (isObject(one) ? [one['id'], one['url']] : [])),
  }
}
