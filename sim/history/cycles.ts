/**
 * Cycles of a history's graph, named as Adya and Elle name them. The name says how often an
 * operation saw the state before another's write, and which order beside data the cycle needs.
 *
 * Of each component it reports the gravest cycle. One by data alone comes before one that needs
 * sessions, and that before one that needs real time. Among these, one without `rw` comes first,
 * then one with a single `rw`.
 */
import type { CycleName, CycleShape } from './anomaly.ts'
import { edgeKinds, type Edge, type Graph } from './graph.ts'

export interface Step {
  readonly from: number
  readonly to: number
  /** The first edge of the step; helpers between the two are left out. */
  readonly edge: Edge
}

export interface Cycle {
  readonly name: CycleName
  /** Back to where the first one began. */
  readonly steps: readonly Step[]
}

const { ww, wr, rw, session, realtime, via } = edgeKinds
const orders = [0, session, session | realtime]
/**
 * Where a search for a short cycle begins, at most: any cycle is proof, a shorter one reads better.
 */
const searchesMax = 300

/** One for each component that has any. */
export function findCycles(graph: Graph): readonly Cycle[] {
  const everything = ww | wr | rw | session | realtime
  return graph.components(everything).flatMap((component) => {
    const cycle = gravest(graph, new Set(component))
    return cycle === undefined ? [] : [cycle]
  })
}

function gravest(graph: Graph, nodes: ReadonlySet<number>): Cycle | undefined {
  for (const order of orders) {
    const found =
      shortestIn(graph, nodes, ww | order) ??
      shortestIn(graph, nodes, ww | wr | order) ??
      withOneRw(graph, nodes, ww | wr | order) ??
      shortestIn(graph, nodes, ww | wr | rw | order)
    if (found !== undefined) return { name: nameCycle(found), steps: found }
  }
  return undefined
}

/** A short cycle through edges of these kinds. */
function shortestIn(
  graph: Graph,
  nodes: ReadonlySet<number>,
  mask: number,
): readonly Step[] | undefined {
  let best: readonly Step[] | undefined
  let searches = 0
  for (const component of graph.components(mask, nodes)) {
    const inside = new Set(component)
    for (const start of component) {
      if (!graph.isOperation(start)) break
      if (best?.length === 2 || (searches += 1) > searchesMax) return best
      const found = walk(graph, inside, mask, [start], start)
      if (found !== undefined && found.length < (best?.length ?? Infinity)) best = found
    }
  }
  return best
}

/** A short cycle with exactly one edge of kind `rw`. */
function withOneRw(
  graph: Graph,
  nodes: ReadonlySet<number>,
  mask: number,
): readonly Step[] | undefined {
  let best: readonly Step[] | undefined
  let searches = 0
  for (const component of graph.components(mask | rw, nodes)) {
    const inside = new Set(component)
    for (const from of component) {
      for (const edge of graph.edgesFrom(from)) {
        if (edge.bit !== rw || !inside.has(edge.to)) continue
        for (const to of findTargets(graph, edge.to, inside)) {
          if (best?.length === 2 || (searches += 1) > searchesMax) return best
          const rest = walk(graph, inside, mask, [to], from)
          if (rest === undefined || rest.length + 1 >= (best?.length ?? Infinity)) continue
          best = [{ from, to, edge }, ...rest]
        }
      }
    }
  }
  return best
}

/** The operations that an edge to this node leads to. */
function findTargets(graph: Graph, node: number, inside: ReadonlySet<number>): number[] {
  const found: number[] = []
  const seen = new Set([node])
  for (const one of seen) {
    if (graph.isOperation(one)) found.push(one)
    else for (const { to } of graph.edgesFrom(one)) if (inside.has(to)) seen.add(to)
  }
  return found
}

/** The shortest way from a start to `goal`, at least one step long; helpers cost nothing. */
function walk(
  graph: Graph,
  inside: ReadonlySet<number>,
  mask: number,
  starts: readonly number[],
  goal: number,
): readonly Step[] | undefined {
  const cameBy = new Map<number, Edge>()
  let level = [...starts]
  while (level.length > 0) {
    const next: number[] = []
    // Grows while it is gone through: helpers belong to the level of who leads to them.
    for (const node of level) {
      for (const edge of graph.edgesFrom(node)) {
        const { to, bit } = edge
        if ((bit & (mask | via)) === 0 || !inside.has(to)) continue
        if (to === goal) return stepsTo(graph, cameBy, edge, starts)
        if (cameBy.has(to) || starts.includes(to)) continue
        cameBy.set(to, edge)
        if (graph.isOperation(to)) next.push(to)
        else level.push(to)
      }
    }
    level = next
  }
  return undefined
}

function stepsTo(
  graph: Graph,
  cameBy: ReadonlyMap<number, Edge>,
  last: Edge,
  starts: readonly number[],
): readonly Step[] {
  const steps: Step[] = []
  let to = last.to
  for (let edge: Edge | undefined = last; edge !== undefined; edge = cameBy.get(edge.from)) {
    if (!graph.isOperation(edge.from)) continue
    steps.unshift({ from: edge.from, to, edge })
    to = edge.from
    if (starts.includes(to)) break
  }
  return steps
}

function nameCycle(steps: readonly Step[]): CycleName {
  const bits = steps.map(({ edge }) => edge.bit)
  const rwCount = bits.filter((bit) => bit === rw).length
  const shape = classifyShape(rwCount, bits.includes(wr))
  if (bits.includes(realtime)) return `${shape}-realtime`
  return bits.includes(session) ? `${shape}-session` : shape
}

function classifyShape(rwCount: number, hasWr: boolean): CycleShape {
  if (rwCount === 0) return hasWr ? 'G1c' : 'G0'
  return rwCount === 1 ? 'G-single' : 'G2-item'
}
