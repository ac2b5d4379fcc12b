/**
 * Which nodes hold a group. A bucket (4,096 of them) is the unit of placement; a map says which
 * nodes hold it, under an epoch that every replication message names.
 *
 * The configuration names replica sets, one or several; a node is in one of them, and is a full replica of its
 * buckets. Here they are in epoch 1: `../members` has the later ones. Buckets go to the sets in turn; the order of a bucket's
 * replicas rotates, so that the first position of each group (whose leader is the first full replica)
 * spreads over the nodes. A group whose name has a place (`../base/placed-group.ts`) is in that set, or in one of the sets of that
 * region, by its bucket.
 *
 * MOVE-16  Only the sets that the cluster began with take groups by the hash of a name. A set that comes later gets the groups that
 *          are moved to it, those of buckets that are given to it, and those whose names have it as their place.
 */
import { assert, present } from '../base/assert.ts'
import { bytesOfGroup, type GroupId, type NodeId } from '../base/ids.ts'
import { sha256Start } from '../base/bytes.ts'
import { placeOf, placeWords, type Place } from '../base/placed-group.ts'

export interface ReplicaSet {
  readonly epoch: number
  /** Nodes whose answers make a majority (full replicas and, later, witnesses). Order matters. */
  readonly voters: readonly NodeId[]
  /** Nodes beside the voters that hear of chosen values, and have no vote. Absent: none. */
  readonly readers?: readonly NodeId[]
  /** The leader of position 1. */
  readonly firstFull: NodeId
}

export interface Placement {
  /** All of them, set by set. */
  readonly nodes: readonly NodeId[]
  readonly setCount: number
  /** Of these sets, those that the cluster began with. They have the numbers from 0, and share all groups without a place. */
  readonly firstSetCount: number
  /** The sets that have come later, in the order of their numbers. */
  readonly laterSets: readonly LaterSet[]
  /** Takes up the sets that are new here. `sets`: all later ones, or the first of them. Gives the numbers of the new ones. */
  takeLater(sets: readonly LaterSet[]): readonly number[]
  replicasOf(group: GroupId): ReplicaSet
  /** The number of the set that holds the group, from 0. A function of the name alone: for equal configurations it is the same. */
  setOf(group: GroupId): number
  /** The set whose groups without a place, in that bucket, the configuration gives it. */
  setOfBucket(bucket: number): number
  /** The numbers of the sets that share the groups of the same place, in order: all of them where its name has none. */
  setsAlong(group: GroupId): readonly number[]
  /** Why no set takes the group, in words: its name has a place that the configuration does not have. Undefined: one takes it. */
  refusalOf(group: GroupId): string | undefined
  /** Whether a set is in a region. */
  readonly hasRegions: boolean
  /** The set's name and region, as the configuration has them. */
  siteOf(set: number): SetSite
  /** Those of all sets, in their order. */
  readonly sites: readonly SetSite[]
  /** The number of the set that the node is in. */
  setOfNode(node: NodeId): number
  /** The first voters of a set. */
  nodesOf(set: number): readonly NodeId[]
}

/** 12 bits of the SHA-256 of the root key. */
export function hashToBucket(group: GroupId): number {
  return sha256Start(bytesOfGroup(group)) >> 4
}

export function computeMajority(voters: { readonly length: number }): number {
  return Math.floor(voters.length / 2) + 1
}

/** Whether the node is the first of these voters that is alive. That one does the work in the background for a group. */
export function isFirstAlive(
  node: NodeId,
  voters: readonly NodeId[],
  isAlive: (node: NodeId) => boolean,
): boolean {
  return voters.find(isAlive) === node
}

/** Every node holds everything. `nodes` are distinct; their order is the same at every node. */
export function staticPlacement(nodes: readonly NodeId[]): Placement {
  return placementOver([nodes])
}

/** A node that has come to a set later than its first voters. */
export interface Joining {
  readonly node: NodeId
  /** The number of the set, from 0. */
  readonly set: number
}

/** A set's name, and the region that a majority of its first voters is in. */
export interface SetSite {
  readonly name: string
  /** Absent: it is in none. */
  readonly region?: string
  /** The cluster version with which it began; absent: the first one. */
  readonly version?: number
}

/** A set that the cluster did not begin with. */
export interface LaterSet {
  readonly name: string
  /** The nodes that it began with, and where they are reached: scheme, host and port. */
  readonly nodes: readonly { readonly node: NodeId; readonly url: string }[]
  /** The cluster version with which it began. */
  readonly version: number
}

/**
 * Each set holds its share of the buckets. `sets`: the first voters of each. The order, of sets and in each, is the same at
 * every node. `joining`: nodes that no set began with, as far as the caller's configuration names them. `sites`: in the order of
 * the sets; absent: the sets have their numbers as names, and no region.
 */
export function placementOver(
  sets: readonly (readonly NodeId[])[],
  joining: readonly Joining[] = [],
  sites: readonly SetSite[] = sets.map((_, set) => ({ name: String(set) })),
): Placement {
  const nodes = [...sets.flat(), ...joining.map(({ node }) => node)]
  const [all, later]: [(readonly NodeId[])[], LaterSet[]] = [[...sets], []]
  assert(sets.length > 0 && sets.every((set) => set.length > 0), 'placement: a set has nodes')
  assert(new Set(nodes).size === nodes.length, 'placement: a node is named twice')
  const rotations = sets.map(buildRotations)
  assert(sites.length === sets.length, 'placement: each set has a site')
  const numbers = sets.map((_, set) => set)
  const sitesOf = new Sites(sites)
  /** The sets that share the buckets of the group's kind. */
  const sharing = (group: GroupId): readonly number[] => sitesOf.sharing(group) ?? numbers
  const setOf = (group: GroupId): number => pick(sharing(group), hashToBucket(group))
  const takeOne = (set: LaterSet): number => {
    const { name, version } = set
    const voters = set.nodes.map(({ node }) => node)
    const isKnown = voters.some((one) => all.some((others) => others.includes(one)))
    assert(!isKnown && voters.length > 0, 'MOVE-16: a node begins a second set')
    later.push(set)
    rotations.push(buildRotations(voters))
    sitesOf.add({ name, version })
    nodes.push(...voters.filter((one) => !nodes.includes(one)))
    return all.push(voters) - 1
  }
  return {
    nodes,
    get setCount() {
      return all.length
    },
    firstSetCount: sets.length,
    laterSets: later,
    takeLater: (of) => {
      const isSame = later.every(({ name }, at) => of[at] === undefined || of[at].name === name)
      assert(isSame, 'MOVE-16: the sets that came later have other numbers')
      return of.slice(later.length).map(takeOne)
    },
    setOf,
    setOfBucket: (bucket) => pick(numbers, bucket),
    setsAlong: sharing,
    hasRegions: sitesOf.hasRegions,
    refusalOf: (group) => sitesOf.refusalOf(group),
    sites: sitesOf.all,
    siteOf: (set) => present(sitesOf.all[set], 'placement: there is such a set'),
    setOfNode: (node) =>
      joining.find((one) => one.node === node)?.set ?? all.findIndex((set) => set.includes(node)),
    nodesOf: (number) => present(all[number], 'placement: there is such a set'),
    replicasOf: (group) => {
      const bucket = hashToBucket(group)
      const among = sharing(group)
      const ordered = present(rotations[pick(among, bucket)], 'placement: a bucket has a set')
      const turn = Math.floor(bucket / among.length) % ordered.length
      return present(ordered[turn], 'placement: a bucket has a replica set')
    },
  }
}

function pick(sets: readonly number[], bucket: number): number {
  return present(sets[bucket % sets.length], 'placement: a bucket has a set')
}

/** The sets by their names and regions. */
class Sites {
  readonly hasRegions: boolean
  readonly #sites: SetSite[]
  readonly #byPlace = new Map<string, number[]>()

  constructor(sites: readonly SetSite[]) {
    this.#sites = [...sites]
    this.hasRegions = sites.some(({ region }) => region !== undefined)
    for (const [set, { name, region }] of sites.entries()) {
      this.#add({ kind: 'set', name }, set)
      if (region !== undefined) this.#add({ kind: 'region', name: region }, set)
    }
  }

  get all(): readonly SetSite[] {
    return this.#sites
  }

  /** A set that has come later: it is in no region, since it would take groups of the other sets there. */
  add(site: Omit<SetSite, 'region'>): void {
    const isKnown = this.#sites.some(({ name }) => name === site.name)
    assert(
      !isKnown && this.#sites.length > 1,
      'MOVE-16: two sets have one name, or one set had all',
    )
    this.#add({ kind: 'set', name: site.name }, this.#sites.push(site) - 1)
  }

  #add(place: Place, set: number): void {
    const words = placeWords(place)
    const sets = this.#byPlace.get(words) ?? []
    this.#byPlace.set(words, [...sets, set])
  }

  /** Those of the group's place; undefined: its name has none, or one that no set has. */
  sharing(group: GroupId): readonly number[] | undefined {
    if (this.#sites.length === 1) return undefined
    const place = placeOf(group)
    return place && this.#byPlace.get(placeWords(place))
  }

  refusalOf(group: GroupId): string | undefined {
    // One set without a region: a program on one machine runs with the schema that a cluster has.
    if (this.#sites.length === 1 && !this.hasRegions) return undefined
    const place = placeOf(group)
    if (place === undefined || this.#byPlace.has(placeWords(place))) return undefined
    if (place.kind === 'set') {
      const names = this.#sites.map(({ name }) => name)
      return `no replica set has the name "${place.name}"; there are ${names.join(', ')}`
    }
    const regions = [...new Set(this.#sites.flatMap(({ region }) => region ?? []))]
    const there = regions.length === 0 ? 'no node has one' : `there are ${regions.join(', ')}`
    return `no replica set is in region "${place.name}"; of regions, ${there}`
  }
}

/** The set's nodes beginning with each of them. */
function buildRotations(set: readonly NodeId[]): readonly ReplicaSet[] {
  return set.map((firstFull, first): ReplicaSet => {
    const voters = [...set.slice(first), ...set.slice(0, first)]
    return { epoch: 1, voters, firstFull }
  })
}
