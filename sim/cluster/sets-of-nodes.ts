/** The sets that each node of a run knows, those that have come later included, and its links to them. */
import { ownVersions } from '../../src/base/cluster-version.ts'
import { nodeId } from '../../src/base/ids.ts'
import { placementOver, type LaterSet, type Placement } from '../../src/placement/placement.ts'
import type { Transport } from '../../src/ports/transport.ts'
import type { Coverage } from '../coverage.ts'
import type { SwarmOptions } from '../swarm.ts'
import type { Network } from '../world/network.ts'
import type { SimProcess } from '../world/sim-process.ts'
import type { World } from '../world/world.ts'
import { buildSets, listLater, listSpares, outgoing } from './endpoints.ts'

/** A node that may wait for its set. */
export interface Waiting {
  readonly isWaiting: boolean
  begin(): void
}

export interface SetsOfNodesParts<ClientFrame> {
  readonly world: World
  readonly coverage: Coverage
  readonly options: SwarmOptions
  /** With the set that may come later. */
  readonly placement: Placement
  readonly links: Network<ClientFrame>
  hosts(): readonly Waiting[]
}

/** As a node starts with it. */
interface KnownSets<ClientFrame> {
  readonly placement: Placement
  readonly elsewhere: ReadonlyMap<number, Transport<ClientFrame>>
  openElsewhere(set: number): Transport<ClientFrame>
  keepSets(sets: readonly LaterSet[]): Promise<void>
}

export class SetsOfNodes<ClientFrame> {
  readonly #parts: SetsOfNodesParts<ClientFrame>
  /** How often each node has begun to ask other sets. */
  readonly #lives = new Map<string, number>()
  /** The sets that have come later, as each node has written them down. */
  readonly #kept = new Map<string, readonly LaterSet[]>()

  constructor(parts: SetsOfNodesParts<ClientFrame>) {
    this.#parts = parts
  }

  /** The node starts. A node of the later set asks the others first; the others hear of the set in time. */
  open(process: SimProcess): KnownSets<ClientFrame> {
    const { options, placement: all } = this.#parts
    const { name } = process
    const isLater = all.setOfNode(nodeId(name)) >= all.firstSetCount
    const placement = placeNodes(options, isLater ? all.laterSets : (this.#kept.get(name) ?? []))
    this.#lives.set(name, (this.#lives.get(name) ?? 0) + 1)
    const others = this.#othersOf(name).filter((set) => set < placement.setCount)
    return {
      placement,
      elsewhere: new Map(others.map((set) => [set, this.#linkTo(process, set)])),
      openElsewhere: (set) => this.#linkTo(process, set),
      keepSets: async (sets) => this.#keep(name, sets),
    }
  }

  /** The endpoints at which the node asks other sets. */
  outgoings(node: string): readonly string[] {
    return this.#othersOf(node).map((set) => this.#outgoing(node, set))
  }

  /** The numbers of the sets that the node is not in. */
  #othersOf(node: string): readonly number[] {
    const { placement } = this.#parts
    const own = placement.setOfNode(nodeId(node))
    return placement.sites.map((_, set) => set).filter((set) => set !== own)
  }

  #outgoing(node: string, set: number): string {
    const nth = this.#othersOf(node).indexOf(set)
    return outgoing(node, this.#lives.get(node) ?? 0, nth)
  }

  /** No set names a node that joins later. */
  #linkTo(process: SimProcess, set: number): Transport<ClientFrame> {
    const { placement, links } = this.#parts
    return links.attach(process, placement.nodesOf(set), this.#outgoing(process.name, set))
  }

  /** The set has come: its nodes may have waited for it. */
  #keep(node: string, sets: readonly LaterSet[]): void {
    const { world, coverage, hosts } = this.#parts
    this.#kept.set(node, sets)
    const waiting = hosts().filter(({ isWaiting }) => isWaiting)
    for (const host of waiting) world.schedule(0, 'a set has come', () => host.begin())
    if (waiting.length > 0) coverage.count('sets: came later')
  }
}

/** All nodes of the run, and all sets. */
export function placeAll(options: SwarmOptions): Placement {
  return placeNodes(options, listLaterSets(options))
}

/** At most one: the judge knows it from the beginning. */
function listLaterSets(options: SwarmOptions): readonly LaterSet[] {
  const nodes = listLater(options).map((node) => ({ node, url: `http://${node}:1` }))
  const name = `s${(options.setCount ?? 1) + 1}`
  return nodes.length === 0 ? [] : [{ name, nodes, version: ownVersions.max }]
}

/** Spares may come to the first set. Each set is in a region of its own: `r1`, `r2`. */
function placeNodes(options: SwarmOptions, later: readonly LaterSet[]): Placement {
  const joining = listSpares(options).map((node) => ({ node, set: 0 }))
  const sets = buildSets(options.nodeCount, options.setCount)
  const sites = sets.map((_, set) => ({ name: `s${set + 1}`, region: `r${set + 1}` }))
  const placement = placementOver(sets, joining, sets.length === 1 ? undefined : sites)
  placement.takeLater(later)
  return placement
}
