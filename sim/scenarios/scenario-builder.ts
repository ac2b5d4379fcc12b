/**
 * Directed scenarios in TypeScript:
 * `scenario('name').at(100).put('c1', cell).at(150).crash('n1')…`.
 * A scenario starts from the calm world; moments are milliseconds from the start of the run. The
 * builder makes an ordinary scenario, which can be run, written to a file and replayed.
 */
import type { Limits } from '../../src/base/limits.ts'
import { clientName, nodeName } from '../cluster/endpoints.ts'
import type { Fault, Way } from '../faults/fault.ts'
import { hotRows, hotShards } from '../workloads/hot-rows.ts'
import { calmOptions, calmSkew } from './scenario-calm.ts'
import type { Operation } from './scenario-operation.ts'
import type { Expectation, Scenario } from './scenario.ts'
import { noFaultRates } from '../faults/swarm-faults.ts'
import type { SwarmOptions } from '../swarm.ts'
import type { LinkConditions } from '../world/weather.ts'

/** A cell, and of which hot row: rows of one shard are in one group. */
export interface CellAt {
  readonly shard?: number
  readonly row?: number
  readonly column?: string
  readonly refKey?: number
}

interface Place {
  readonly row: string
  readonly column: string
  readonly refKey: number
}

export function scenario(name: string): ScenarioBuilder {
  return new ScenarioBuilder(name)
}

/** The group's shard by its place in the list of hot shards. */
export function shardAt(index: number): number {
  return hotShards[index] ?? 0
}

export function rowAt(shard: number, row: number): string {
  return hotRows().get(shardAt(shard))?.[row] ?? ''
}

export class ScenarioBuilder {
  readonly #name: string
  readonly #faults: Fault[] = []
  readonly #operations: Operation[] = []
  readonly #nodesByClient: Record<string, readonly string[]> = {}
  readonly #blindCounts = new Map<string, number>()
  #options: SwarmOptions = { ...calmOptions(1), workload: { ...roomyWorkload } }
  #atMicros = 0
  #expect: Expectation = { outcome: 'clean' }

  constructor(name: string) {
    this.#name = name
  }

  /** The steps that follow happen at this moment. */
  at(ms: number): this {
    this.#atMicros = Math.round(ms * 1_000)
    return this
  }

  /** The next events happen this much later than those before. */
  later(ms: number): this {
    return this.at(this.#atMicros / 1_000 + ms)
  }

  // The world

  seed(seed: number): this {
    return this.#with({ seed })
  }

  nodes(nodeCount: number): this {
    return this.#with({ nodeCount, skews: Array.from({ length: nodeCount }, () => calmSkew) })
  }

  /** A client asks these nodes and no others. */
  client(name: string, ...nodes: readonly string[]): this {
    this.#nodesByClient[name] = nodes
    return this
  }

  /** Nodes that may be added. */
  spares(count: number): this {
    return this.#with({ spares: count })
  }

  /** Nodes begin with a build that knows cluster versions through this one. */
  firstBuild(build: number): this {
    return this.#with({ faultRates: { ...this.#options.faultRates, firstBuild: build } })
  }

  /** Faults strike for this long; then all heals. */
  lasting(ms: number): this {
    const { firstBuild } = this.#options.faultRates
    const faultRates = noFaultRates(ms * 1_000)
    return this.#with({
      faultRates: { ...faultRates, ...(firstBuild !== undefined && { firstBuild }) },
    })
  }

  link(link: Partial<LinkConditions>): this {
    return this.#with({ link: { ...this.#options.link, ...link } })
  }

  disk(disk: Partial<SwarmOptions['disk']>): this {
    return this.#with({ disk: { ...this.#options.disk, ...disk } })
  }

  limits(limits: Partial<Limits>): this {
    return this.#with({ limits: { ...this.#options.limits, ...limits } })
  }

  skew(node: string, skew: Partial<SwarmOptions['skews'][number]>): this {
    const skews = this.#options.skews.map((one, index) =>
      nodeName(index) === node ? { ...one, ...skew } : one,
    )
    return this.#with({ skews })
  }

  endingWithRestart(): this {
    return this.#with({ endsWithRestart: true })
  }

  // Faults

  crash(node: string, downMs = 100): this {
    return this.fault({ kind: 'crash', ...this.#moment, node, downMicros: downMs * 1_000 })
  }

  /** Every node at once. */
  crashAll(downMs = 100): this {
    for (const node of this.#nodeNames) this.crash(node, downMs)
    return this
  }

  /** When a write of its disks is next under way. */
  crashInWrite(node: string, downMs = 100): this {
    const downMicros = downMs * 1_000
    return this.fault({ kind: 'crash', ...this.#moment, node, downMicros, inWriteMicros: 0 })
  }

  stop(node: string, downMs = 100): this {
    return this.fault({ kind: 'stop', ...this.#moment, node, downMicros: downMs * 1_000 })
  }

  pause(node: string, lengthMs: number): this {
    return this.fault({ kind: 'pause', ...this.#moment, node, lengthMicros: lengthMs * 1_000 })
  }

  suspend(node: string, lengthMs: number): this {
    return this.fault({ kind: 'suspend', ...this.#moment, node, lengthMicros: lengthMs * 1_000 })
  }

  /** Two sides that do not hear each other. Clients belong to the side that names them. */
  partition(side: readonly string[], lengthMs: number): this {
    const all = [...this.#nodeNames, ...this.#clientNames]
    const others = all.filter((name) => !side.includes(name))
    const ways = side.flatMap((from) =>
      others.flatMap((to): readonly Way[] => [
        [from, to],
        [to, from],
      ]),
    )
    return this.#cut(ways, lengthMs)
  }

  /** Only these ways, in this direction. */
  cut(ways: readonly Way[], lengthMs: number): this {
    return this.#cut(ways, lengthMs)
  }

  clog(ways: readonly Way[], lengthMs: number): this {
    return this.fault({ kind: 'clog', ...this.#moment, lengthMicros: lengthMs * 1_000, ways })
  }

  reset(a: string, b: string): this {
    return this.fault({ kind: 'reset', ...this.#moment, between: [a, b] })
  }

  /** An operator asks the node for a new epoch with the same stores. */
  renew(node: string): this {
    return this.fault({ kind: 'renew', ...this.#moment, node })
  }

  /** Its disks are gone for good; it comes with empty ones this long after it has a seat. */
  replace(node: string, downMs = 100): this {
    return this.fault({ kind: 'replace', ...this.#moment, node, downMicros: downMs * 1_000 })
  }

  /** A spare node is added; it comes with empty disks this long after it has a seat. */
  add(node: string, downMs = 100): this {
    return this.fault({ kind: 'add', ...this.#moment, node, downMicros: downMs * 1_000 })
  }

  /** An operator makes the node a read-only member, and gives it its vote back after that time. */
  demote(node: string, lengthMs: number): this {
    return this.fault({ kind: 'demote', ...this.#moment, node, lengthMicros: lengthMs * 1_000 })
  }

  /** An operator has the node leave. */
  remove(node: string): this {
    return this.fault({ kind: 'remove', ...this.#moment, node })
  }

  /** The node starts again with a build that knows cluster versions through this one. */
  changeBuild(node: string, build: number, downMs = 100): this {
    const downMicros = downMs * 1_000
    return this.fault({ kind: 'change-build', ...this.#moment, node, downMicros, build })
  }

  /** An operator asks the node to put the last cluster version in force, whatever others run. */
  finalize(node: string): this {
    return this.fault({ kind: 'finalize', ...this.#moment, node, looksFirst: false })
  }

  fault(fault: Fault): this {
    this.#faults.push(fault)
    return this
  }

  // Operations of clients

  put(client: string, cell: CellAt = {}, body: string | number = client): this {
    return this.operation({ kind: 'put', client, ...this.#moment, ...toPlace(cell), body })
  }

  get(client: string, cell: CellAt = {}, isCurrent = true): this {
    return this.operation({ kind: 'get', client, ...this.#moment, isCurrent, ...toPlace(cell) })
  }

  latest(client: string, cell: CellAt = {}, isCurrent = true): this {
    const { row, column } = toPlace(cell)
    return this.operation({ kind: 'latest', client, ...this.#moment, isCurrent, row, column })
  }

  log(client: string, shardIndex = 0, isCurrent = true): this {
    const page = { shard: shardAt(shardIndex), after: 0, limit: 1_000 }
    return this.operation({ kind: 'log', client, ...this.#moment, isCurrent, ...page })
  }

  /** A write without a read, straight to a replica, tried until it has an outcome. */
  blind(session: string, group: 'x' | 'y' = 'x'): this {
    const sequence = (this.#blindCounts.get(session) ?? 0) + 1
    this.#blindCounts.set(session, sequence)
    return this.operation({ kind: 'blind', client: session, ...this.#moment, group, sequence })
  }

  operation(operation: Operation): this {
    this.#operations.push(operation)
    return this
  }

  // The end

  expect(expect: Expectation): this {
    this.#expect = expect
    return this
  }

  build(): Scenario {
    const lists = { faults: this.#faults, operations: this.#operations }
    const plan = { options: this.#options, ...lists, nodesByClient: this.#nodesByClient }
    return { name: this.#name, plan, expect: this.#expect }
  }

  get #moment(): { readonly atMicros: number } {
    return { atMicros: this.#atMicros }
  }

  get #nodeNames(): string[] {
    return Array.from({ length: this.#options.nodeCount }, (_, i) => nodeName(i))
  }

  get #clientNames(): string[] {
    return Array.from({ length: this.#options.workload.clientCount }, (_, i) => clientName(i))
  }

  #with(options: Partial<SwarmOptions>): this {
    this.#options = { ...this.#options, ...options }
    return this
  }

  #cut(ways: readonly Way[], lengthMs: number): this {
    const lengthMicros = lengthMs * 1_000
    return this.fault({ kind: 'cut', ...this.#moment, lengthMicros, ways, resets: false })
  }
}

/**
 * Every client and row that a scenario may name exists; a client without operations does nothing.
 */
const roomyWorkload: SwarmOptions['workload'] = {
  ...calmOptions(1).workload,
  clientCount: 4,
  shardCount: 4,
  rowsPerShard: 4,
}

function toPlace({ shard = 0, row = 0, column = 'BASE', refKey = 0 }: CellAt): Place {
  return { row: rowAt(shard, row), column, refKey }
}
