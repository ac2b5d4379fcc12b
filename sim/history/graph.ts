/**
 * A directed graph of operations and of helper nodes between them, with the kind of each edge, and
 * its strongly connected components (Tarjan, without recursion).
 *
 * A helper stands for many: `a -> helper -> b` says of a and b what the first edge says. Edges that
 * leave helpers are of the kind `via`.
 */

export const edgeKinds = {
  /** Wrote what the other one wrote on top of. */
  ww: 1,
  /** Wrote what the other one saw. */
  wr: 2,
  /** Saw the state before what the other one wrote. */
  rw: 4,
  session: 8,
  realtime: 16,
  via: 32,
} as const

export type EdgeKind = Exclude<keyof typeof edgeKinds, 'via'>

export interface Edge {
  readonly from: number
  readonly to: number
  readonly bit: number
  /** Why there is an edge, for those that carry it; told with the operations at both its ends. */
  readonly reason: string
}

export class Graph {
  readonly operationCount: number
  readonly edges: Edge[] = []
  #nodeCount: number
  #starts: Int32Array = new Int32Array(0)
  #sorted: Int32Array = new Int32Array(0)

  constructor(operationCount: number) {
    this.operationCount = operationCount
    this.#nodeCount = operationCount
  }

  get nodeCount(): number {
    return this.#nodeCount
  }

  isOperation(node: number): boolean {
    return node < this.operationCount
  }

  addHelper(): number {
    return this.#nodeCount++
  }

  addEdge(from: number, to: number, kind: EdgeKind, reason: string = ''): void {
    if (from !== to) this.edges.push({ from, to, bit: edgeKinds[kind], reason })
  }

  addVia(helper: number, to: number): void {
    this.edges.push({ from: helper, to, bit: edgeKinds.via, reason: '' })
  }

  /** Puts the edges in the order of where they leave. To be called when all of them are there. */
  seal(): void {
    const starts = new Int32Array(this.#nodeCount + 1)
    for (const { from } of this.edges) starts[from + 1] = (starts[from + 1] ?? 0) + 1
    for (let node = 0; node < this.#nodeCount; node++) {
      starts[node + 1] = (starts[node + 1] ?? 0) + (starts[node] ?? 0)
    }
    const next = starts.slice()
    const sorted = new Int32Array(this.edges.length)
    for (const [index, { from }] of this.edges.entries()) {
      const at = next[from] ?? 0
      sorted[at] = index
      next[from] = at + 1
    }
    this.#starts = starts
    this.#sorted = sorted
  }

  /** How many edges leave a node. */
  degree(node: number): number {
    return (this.#starts[node + 1] ?? 0) - (this.#starts[node] ?? 0)
  }

  edgeAt(node: number, place: number): Edge | undefined {
    return this.edges[this.#sorted[(this.#starts[node] ?? 0) + place] ?? -1]
  }

  *edgesFrom(node: number): Generator<Edge> {
    const degree = this.degree(node)
    for (let place = 0; place < degree; place++) {
      const edge = this.edgeAt(node, place)
      if (edge !== undefined) yield edge
    }
  }

  /**
   * Components of at least two operations that hang together by edges of these kinds, helpers
   * included; among `nodes` alone, when given.
   */
  components(mask: number, nodes?: ReadonlySet<number>): number[][] {
    return new Tarjan(this, mask, nodes).run()
  }
}

class Tarjan {
  readonly #graph: Graph
  readonly #mask: number
  readonly #nodes: ReadonlySet<number> | undefined
  /** When a node was reached, from 1; 0 before that. */
  readonly #reached: Int32Array
  readonly #low: Int32Array
  readonly #isOpen: Uint8Array
  /** The next edge to follow from each node. */
  readonly #place: Int32Array
  readonly #stack: number[] = []
  readonly #found: number[][] = []
  #count = 0

  constructor(graph: Graph, mask: number, nodes: ReadonlySet<number> | undefined) {
    this.#graph = graph
    this.#mask = mask | edgeKinds.via
    this.#nodes = nodes
    this.#reached = new Int32Array(graph.nodeCount)
    this.#low = new Int32Array(graph.nodeCount)
    this.#isOpen = new Uint8Array(graph.nodeCount)
    this.#place = new Int32Array(graph.nodeCount)
  }

  run(): number[][] {
    const roots = this.#nodes ?? Array.from({ length: this.#graph.nodeCount }, (_, node) => node)
    for (const root of roots) if (this.#reached[root] === 0) this.#walk(root)
    return this.#found
  }

  #walk(root: number): void {
    const path = [root]
    this.#open(root)
    for (;;) {
      const node = path.at(-1)
      if (node === undefined) return
      const next = this.#follow(node)
      if (next !== undefined) {
        this.#open(next)
        path.push(next)
        continue
      }
      path.pop()
      const parent = path.at(-1)
      if (parent !== undefined) this.#lower(parent, this.#low[node] ?? 0)
      if (this.#low[node] === this.#reached[node]) this.#close(node)
    }
  }

  /** The next node that was not reached before. */
  #follow(node: number): number | undefined {
    const degree = this.#graph.degree(node)
    for (;;) {
      const place = this.#place[node] ?? 0
      if (place >= degree) return undefined
      this.#place[node] = place + 1
      const edge = this.#graph.edgeAt(node, place)
      if (edge === undefined || (edge.bit & this.#mask) === 0) continue
      const { to } = edge
      if (this.#nodes !== undefined && !this.#nodes.has(to)) continue
      if (this.#reached[to] === 0) return to
      if (this.#isOpen[to] === 1) this.#lower(node, this.#reached[to] ?? 0)
    }
  }

  #open(node: number): void {
    this.#count += 1
    this.#reached[node] = this.#count
    this.#low[node] = this.#count
    this.#isOpen[node] = 1
    this.#stack.push(node)
  }

  #lower(node: number, to: number): void {
    this.#low[node] = Math.min(this.#low[node] ?? 0, to)
  }

  #close(root: number): void {
    const component: number[] = []
    for (;;) {
      const node = this.#stack.pop()
      if (node === undefined) break
      this.#isOpen[node] = 0
      component.push(node)
      if (node === root) break
    }
    if (component.filter((node) => this.#graph.isOperation(node)).length > 1) {
      this.#found.push(component.toSorted((a, b) => a - b))
    }
  }
}
