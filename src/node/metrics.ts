/**
 * A node's figures in the Prometheus text format. One registry a node, nothing global: three nodes
 * may live in one process. Trace events only raise counters in a map; the rest is read when asked.
 */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Trace, TraceEvent } from '../ports/trace.ts'
import { counterEnding } from './figure-names.ts'

/** Different events and marks that are counted; further ones go under `other`. */
const eventKindsMax = 200

export interface NodeMetrics {
  /** Give this to the node. */
  readonly trace: Trace
  /** Counts a request of the HTTP interface. */
  countRequest(request: CountedRequest): void
  /** Counts a turn of the loop that answered no client for `ms` milliseconds. */
  countStall(ms: number): void
  /** The whole page, and its content type. */
  page(figures: readonly Figure[]): Promise<{ readonly text: string; readonly contentType: string }>
  close(): void
}

export interface CountedRequest {
  readonly method: string
  readonly status: number
  readonly seconds: number
}

/** A figure, read when a caller requests the page. */
export interface Figure {
  /** That of a counter, which never falls, ends with `_total`; any other is a gauge. */
  readonly name: string
  readonly help: string
  readonly value: number
  readonly labels?: Readonly<Record<string, string>>
}

export function createMetrics(labels: Readonly<Record<string, string>>): NodeMetrics {
  const registry = new Registry()
  registry.setDefaultLabels(labels)
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const counts = new Map<string, Count>()
  const requests = requestFigures(registry)
  const countStall = stallFigures(registry)
  addProcessFigures(registry, delay)
  addEventCounter(registry, counts)
  addBoundedReads(registry, counts)
  const meters = new Map<string, Meter>()
  return {
    trace: countingTrace(counts),
    countRequest: requests,
    countStall,
    page: async (figures) => {
      setFigures(registry, meters, figures)
      return { text: await registry.metrics(), contentType: registry.contentType }
    },
    close: () => delay.disable(),
  }
}

/** Raised many times for each commit: a map would be written to as often. */
interface Count {
  value: number
}

function countingTrace(counts: Map<string, Count>): Trace {
  const count = (name: string): void => {
    const one = counts.get(name) ?? ensureCount(counts, name)
    one.value += 1
  }
  return { emit: (event: TraceEvent) => count(event.kind), mark: count }
}

function ensureCount(counts: Map<string, Count>, name: string): Count {
  const key = counts.size < eventKindsMax ? name : 'other'
  const one = counts.get(key) ?? { value: 0 }
  counts.set(key, one)
  return one
}

function addEventCounter(registry: Registry, counts: ReadonlyMap<string, Count>): void {
  const counter: Counter<'event'> = new Counter({
    name: 'trilithon_events_total',
    help: 'What the replica did, by kind; rare branches have a line of their own.',
    labelNames: ['event'],
    registers: [registry],
    collect: () => {
      counter.reset()
      for (const [event, { value }] of counts) counter.inc({ event }, value)
    },
  })
}

function addBoundedReads(registry: Registry, counts: ReadonlyMap<string, Count>): void {
  const counter: Counter<'answer'> = new Counter({
    name: 'trilithon_bounded_reads_total',
    help: 'Reads of bounded staleness: answered from what this node has applied, or by a current read.',
    labelNames: ['answer'],
    registers: [registry],
    collect: () => {
      counter.reset()
      for (const answer of ['local', 'current']) {
        counter.inc({ answer }, counts.get(`bounded_read_${answer}`)?.value ?? 0)
      }
    },
  })
}

function requestFigures(registry: Registry): (request: CountedRequest) => void {
  const seconds = new Histogram({
    name: 'trilithon_http_request_seconds',
    help: 'Requests of the HTTP interface by method and status, with the time they took.',
    labelNames: ['method', 'status'],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers: [registry],
  })
  return ({ method, status, seconds: took }) => {
    seconds.observe({ method, status: String(status) }, took)
  }
}

function stallFigures(registry: Registry): (ms: number) => void {
  const seconds = new Histogram({
    name: 'trilithon_stall_seconds',
    help: 'Turns of the event loop of more than 0.05 s: no request is answered meanwhile.',
    buckets: [0.1, 0.2, 0.5, 1, 2, 5, 10],
    registers: [registry],
  })
  const longest = new Gauge({
    name: 'trilithon_longest_stall_seconds',
    help: 'The longest of these turns since the start.',
    registers: [registry],
  })
  let longestMs = 0
  return (ms) => {
    seconds.observe(ms / 1000)
    longestMs = Math.max(longestMs, ms)
    longest.set(longestMs / 1000)
  }
}

type AddGauge = (name: string, help: string, read: () => number) => void

/** The parts of the resident memory that the engine counts. LevelDB and the allocator's free room take the rest. */
function addMemoryFigures(gauge: AddGauge): void {
  gauge('process_resident_memory_bytes', 'Memory of the process.', () => process.memoryUsage.rss())
  const heap = 'JavaScript objects'
  gauge(
    'nodejs_heap_size_used_bytes',
    `${heap}, those included that the next collection drops.`,
    () => {
      return process.memoryUsage().heapUsed
    },
  )
  gauge('nodejs_heap_size_total_bytes', `Memory that the engine has taken for ${heap}.`, () => {
    return process.memoryUsage().heapTotal
  })
  gauge('nodejs_external_memory_bytes', 'Buffers, and other memory that objects hold.', () => {
    return process.memoryUsage().external
  })
}

/** Of the process as a whole: three nodes in one process give equal lines. */
function addProcessFigures(registry: Registry, delay: IntervalHistogram): void {
  const gauge: AddGauge = (name, help, read) => {
    const one: Gauge = new Gauge({
      name,
      help,
      registers: [registry],
      collect: () => one.set(read()),
    })
  }
  addMemoryFigures(gauge)
  const cpu: Counter = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process, user and system.',
    registers: [registry],
    collect: () => {
      const { user, system } = process.cpuUsage()
      cpu.reset()
      cpu.inc((user + system) / 1e6)
    },
  })
  gauge('process_uptime_seconds', 'Since the process began.', () => process.uptime())
  gauge('trilithon_event_loop_lag_p99_seconds', 'Of the time since it was last asked.', () => {
    const lag = delay.percentile(99) / 1e9
    delay.reset()
    return Number.isFinite(lag) ? lag : 0
  })
}

/** A counter or a gauge, which takes what was counted elsewhere. */
interface Meter {
  reset(): void
  set(labels: Readonly<Record<string, string>>, value: number): void
}

/** Of figures whose set is known only when they are read. */
function setFigures(
  registry: Registry,
  meters: Map<string, Meter>,
  figures: readonly Figure[],
): void {
  for (const meter of meters.values()) meter.reset()
  for (const { name, help, value, labels = {} } of figures) {
    const meter = meters.get(name) ?? makeMeter({ name, help, value, labels }, registry)
    meters.set(name, meter)
    meter.set(labels, value)
  }
}

function makeMeter({ name, help, labels = {} }: Figure, registry: Registry): Meter {
  const known = { name, help, labelNames: Object.keys(labels), registers: [registry] }
  if (!name.endsWith(counterEnding)) return new Gauge(known)
  const counter = new Counter(known)
  return { reset: () => counter.reset(), set: (of, value) => counter.inc(of, value) }
}
