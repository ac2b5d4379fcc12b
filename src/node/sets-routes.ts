/**
 * The requests by which an operator sees how many buckets a replica set has, and has it give some to another set: `/sets`. GET is open as
 * all figures are; POST takes the cluster's secret. Buckets go on by themselves after the answer: GET tells how far they are.
 */
import type { Context, Hono } from 'hono'
import { StoreError } from '../base/errors.ts'
import { isNodeId } from '../base/ids.ts'
import { bucketCount, nodeCountMax } from '../base/limits.ts'
import { scalarText } from '../config/source.ts'
import { formatAddress, isWildcard, readCalledUrl, type NodeAddress } from '../config/values.ts'
import { isPlaceName } from '../base/placed-group.ts'
import type { SharesPort } from '../members/share-requests.ts'
import type { Placement } from '../placement/placement.ts'
import type { SharePhase } from '../placement/shares.ts'
import type { AskedSet } from './adding-sets.ts'
import type { BucketProgress } from './bucket-mover.ts'
import {
  findPart,
  findTrusted,
  jsonType as json,
  quoted,
  refusalPage,
  refusals,
  refusalsOfTrust,
  type OperationAccess,
} from './operation-access.ts'
import type { OperationAnswer } from './operation-answer.ts'
import { problemContentType } from './refusals.ts'

/** The buckets of a node's replica set. */
export interface BucketsPort {
  readonly shares: SharesPort
  readonly placement: Placement
  /** The number of this node's set. */
  readonly own: number
  /** Buckets that leave this set; undefined: there are none. */
  readonly progress: BucketProgress | undefined
  /** Adds a set to the cluster: at a node of the first set. */
  add(set: AskedSet): Promise<void>
}

export interface SetsPort extends BucketsPort {
  readonly nodes: readonly NodeAddress[]
}

type SetsAccess = OperationAccess<{ readonly sets: SetsPort }>

/** The answer to `GET /sets`. */
export interface SetReport {
  readonly set: string
  /** Of 4,096: the buckets in which groups begin in this set. */
  readonly buckets: number
  /** All sets, with their nodes. */
  readonly sets: readonly {
    readonly set: string
    /** Of a set that came later: the cluster version with which it began. */
    readonly version?: number
    readonly nodes: readonly { readonly id: string; readonly url: string }[]
  }[]
  /** Buckets that have gone to other sets, and come from them. */
  readonly shares: readonly {
    readonly phase: SharePhase
    readonly set: string
    readonly term: number
    readonly buckets: number
  }[]
  /** Buckets that are on their way to another set now. */
  readonly leaving?: BucketProgress
}

const given = {
  202: { what: 'The buckets of the set, and those that leave it.', type: json },
  ...refusalsOfTrust,
  400: {
    what: 'Other buckets are on their way, or there is no such set, or it has fewer buckets.',
    type: problemContentType,
  },
  ...refusals,
  503: {
    what: 'No majority answers, or the stores are being opened, or closed.',
    type: problemContentType,
  },
}

export const setsAnswers: readonly OperationAnswer[] = [
  {
    path: '/sets',
    operationId: 'getSet',
    summary: "The buckets of this node's replica set, and those that are on their way",
    answers: { 200: { what: 'The buckets, as this node knows them.', type: json }, ...refusals },
  },
  {
    path: '/sets/give',
    method: 'POST',
    operationId: 'giveBuckets',
    summary: 'Begins to give buckets of this replica set to another one, with their groups',
    texts: { to: 'the name of the other set', buckets: 'how many' },
    answers: given,
  },
  {
    path: '/sets/add',
    method: 'POST',
    operationId: 'addSet',
    summary: 'Adds a replica set to the cluster: its nodes wait for that',
    texts: { set: 'the name of the new set', nodes: 'its nodes: NAME=URL, with commas between' },
    answers: {
      ...given,
      202: { what: 'The sets of the cluster, with the new one.', type: json },
      400: {
        what: 'The name or a node is in use, or the cluster began with one set.',
        type: problemContentType,
      },
    },
  },
  {
    path: '/sets/stay',
    method: 'POST',
    operationId: 'keepBuckets',
    summary: 'Keeps the buckets that are leaving, where they are not closed yet',
    answers: {
      ...given,
      400: {
        what: 'No buckets are on their way, or they can only go on.',
        type: problemContentType,
      },
    },
  },
]

export function addSetsRoutes(app: Hono, access: SetsAccess | undefined): void {
  app.get('/sets', (context) => {
    const groups = findPart(access, context)
    return groups instanceof Response ? groups : context.json(describe(groups.sets))
  })
  app.post('/sets/give', (context) =>
    change(access, context, async (sets) => {
      const to = readSet(sets, context)
      await sets.shares.leave({ set: to, buckets: pick(sets, readCount(context)) })
    }),
  )
  app.post('/sets/add', (context) =>
    change(access, context, (sets) => sets.add(readAdded(sets, context))),
  )
  app.post('/sets/stay', (context) => change(access, context, (sets) => sets.shares.stay()))
}

async function change(
  access: SetsAccess | undefined,
  context: Context,
  ask: (sets: SetsPort) => Promise<void>,
): Promise<Response> {
  const groups = findTrusted(access, context)
  if (groups instanceof Response) return groups
  try {
    await ask(groups.sets)
    return context.json(describe(groups.sets), 202)
  } catch (error) {
    return refusalPage(context, error)
  }
}

function describe(sets: SetsPort): SetReport {
  const { placement, own, progress, shares, nodes } = sets
  return {
    set: placement.siteOf(own).name,
    buckets: listBuckets(sets).length,
    sets: placement.sites.map(({ name, version }) => {
      const ofSet = nodes.filter((one) => one.set === name).map(({ id, url }) => ({ id, url }))
      return { set: name, ...(version !== undefined && { version }), nodes: ofSet }
    }),
    shares: shares.row.map(({ phase, set, term, buckets }) => {
      return { phase, set, term, buckets: buckets.length }
    }),
    ...(progress !== undefined && { leaving: progress }),
  }
}

/** `nodes` is `g=http://host:4700,h=…`. */
function readAdded({ nodes: known, placement }: SetsPort, context: Context): AskedSet {
  const { set = '', nodes = '' } = context.req.query()
  if (!isPlaceName(set)) throw invalid(`set: ${quoted(set)} is not 1 to 32 of a-z, 0-9 and -`)
  if (placement.sites.slice(0, placement.firstSetCount).some(({ name }) => name === set)) {
    throw invalid(`There is a replica set ${set} already.`)
  }
  const listed = nodes.split(',').map(readAddedNode)
  if (listed.length > nodeCountMax)
    throw invalid(`nodes: a replica set has at most ${nodeCountMax}`)
  const others = known.filter((one) => one.set !== set)
  for (const [at, { node, url }] of listed.entries()) {
    const before = listed.slice(0, at).map((one) => ({ id: one.node, url: one.url }))
    const address = formatAddress(url)
    const twin = [...before, ...others].find((one) => {
      return one.id === node || formatAddress(one.url) === address
    })
    if (twin === undefined) continue
    const what = twin.id === node ? 'the name' : `the address ${url}`
    throw invalid(`nodes: ${node} has ${what} of a node that there is: give it its own`)
  }
  return { name: set, nodes: listed }
}

function readAddedNode(text: string): AskedSet['nodes'][number] {
  const [id = '', ...rest] = text.split('=')
  const url = readCalledUrl(scalarText(rest.join('='), { kind: 'flag', name: 'nodes' }))
  if (!isNodeId(id)) throw invalid(`nodes: ${quoted(text)} is no NAME=URL`)
  if (!url.ok) throw invalid(`nodes: ${url.problems.map(({ reason }) => reason).join('; ')}`)
  if (isWildcard(url.value)) throw invalid(`nodes: ${url.value} is an address to listen on`)
  return { node: id, url: url.value }
}

function invalid(text: string): StoreError {
  return new StoreError('invalid', text)
}

/** The buckets in which groups begin in this set, as this node knows them. */
export function listBuckets({ shares, placement, own }: BucketsPort): readonly number[] {
  const others = new Map(
    shares.row.flatMap(({ phase, buckets }) => {
      return buckets.map((bucket) => [bucket, phase === 'here' || phase === 'leaving'] as const)
    }),
  )
  return Array.from({ length: bucketCount }, (_, bucket) => bucket).filter((bucket) => {
    return others.get(bucket) ?? placement.setOfBucket(bucket) === own
  })
}

/** Spread over all that the set has, so that each of its nodes leads fewer groups. */
function pick(sets: SetsPort, count: number): readonly number[] {
  const all = listBuckets(sets)
  if (count > all.length) {
    throw new StoreError('invalid', `buckets: this replica set has ${all.length} buckets`)
  }
  return all.filter(
    (_, at) => Math.floor((at + 1) * (count / all.length)) > Math.floor(at * (count / all.length)),
  )
}

function readSet({ placement, own }: SetsPort, context: Context): string {
  const { to = '' } = context.req.query()
  const names = placement.sites.map(({ name }) => name)
  const isOther = isPlaceName(to) && names.includes(to) && to !== placement.siteOf(own).name
  if (isOther) return to
  const others = names.filter((name) => name !== placement.siteOf(own).name)
  const there = others.length === 0 ? 'there is no other one' : `there are ${others.join(', ')}`
  throw new StoreError('invalid', `to: ${quoted(to)} is no other replica set; ${there}`)
}

function readCount(context: Context): number {
  const { buckets = '' } = context.req.query()
  const count = Number(buckets)
  if (/^[1-9][0-9]{0,3}$/.test(buckets) && count <= bucketCount) return count
  throw new StoreError(
    'invalid',
    `buckets: ${quoted(buckets)} is no number from 1 to ${bucketCount}`,
  )
}
