/** Adds a replica set to the cluster: the checks at a node of the first set, and the row that names it. */
import { StoreError } from '../base/errors.ts'
import type { NodeId } from '../base/ids.ts'
import { toStoreError } from '../base/problem.ts'
import { notAnAnswer } from '../client/call.ts'
import type { Relay } from '../client/relay.ts'
import type { LaterSetsPort } from '../members/later-set-requests.ts'
import { setGroupOf } from '../members/set-group.ts'
import type { LaterSet, Placement } from '../placement/placement.ts'

export interface AddingSetsParts {
  readonly placement: Placement
  /** The number of this node's set. */
  readonly own: number
  readonly sets: LaterSetsPort
  /** The nodes of all sets now, as far as this node knows them. */
  nodes(): Iterable<NodeId>
  relay(set: number): Pick<Relay, 'groups'>
  /** Looks at the row again. */
  look(): Promise<void>
}

export type AskedSet = Pick<LaterSet, 'name' | 'nodes'>

const callMs = 10_000

/**
 * Resolves when the row names the set; a set that it names with these nodes may be added again. Rejects with `invalid` where the name or a
 * node is in use, and with `unavailable` where a set of before has no majority, or another version.
 */
export async function addLaterSet(parts: AddingSetsParts, set: AskedSet): Promise<void> {
  const { placement, own, sets, look } = parts
  const { firstSetCount } = placement
  if (firstSetCount === 1) throw invalid(oneSetText)
  if (own !== 0) {
    throw invalid(`A node of replica set ${placement.siteOf(0).name} adds sets: ask one of those.`)
  }
  sets.checkVersion()
  await look()
  if (!placement.laterSets.some(({ name }) => name === set.name)) await checkNew(parts, set)
  await sets.add(set)
  await look()
}

async function checkNew(parts: AddingSetsParts, { name, nodes }: AskedSet): Promise<void> {
  const { placement } = parts
  if (placement.sites.some((site) => site.name === name)) {
    throw invalid(`There is a replica set ${name} already.`)
  }
  const known = new Set(parts.nodes())
  const member = nodes.find(({ node }) => known.has(node))
  if (member !== undefined) throw invalid(`${member.node} is a node of this cluster already.`)
  const others = placement.sites.map((_, number) => number).filter((one) => one !== parts.own)
  await Promise.all(others.map((number) => checkOther(parts, number)))
}

/** Each set has to know of later ones, and to have a majority. */
async function checkOther({ placement, own, relay }: AddingSetsParts, set: number): Promise<void> {
  const of = { group: setGroupOf(placement, set), from: placement.siteOf(own).name }
  const answer = await relay(set).groups.execute({ kind: 'admit-group', ...of }, callMs)
  if (answer.kind === 'problem') throw toStoreError(answer.problem)
  if (answer.kind !== 'admit-group') throw toStoreError(notAnAnswer)
}

function invalid(text: string): StoreError {
  return new StoreError('invalid', text)
}

const oneSetText =
  'This cluster began with one replica set, which holds all groups: sets can come later only to a cluster that began with several.'
