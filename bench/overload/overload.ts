/**
 * `bench overload`: puts come at a fixed rate, several times what the nodes can do, whatever becomes of them.
 * It measures how many the nodes acknowledge, how long their health takes to answer meanwhile, and how soon
 * all is well after it.
 *
 * The load is of processes of their own. They and the nodes share the machine, each with processors of its own
 * where it has two or more (`processors.ts`): what the nodes do is not bounded by what it takes to ask them.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { machine, type Machine } from '../common.ts'
import {
  cpuSeconds,
  pause,
  placeNodes,
  startNode,
  stopProcess,
  waitReady,
  type NodeProcess,
} from '../processes.ts'
import { sliceMs, type OpenEnds, type Slice } from './messages.ts'
import { moveTo, shareProcessors, type Processors } from './processors.ts'
import { Sender } from './sender-process.ts'

export interface OverloadOptions {
  /** Links, a third of them to each node. */
  readonly connections: number
  /** Of each step, and of the search for what the nodes can do. */
  readonly seconds: number
}

/** One rate that was offered. */
export interface Step {
  /** Of what the nodes could do before. */
  readonly times: number
  /** A second of the load, once queues have filled: asked, acknowledged, and refused with `overloaded`. */
  readonly offered: number
  readonly goodput: number
  readonly refused: number
  /** How all else ended, by code. */
  readonly others: Readonly<Record<string, number>>
  readonly p50Ms: number
  readonly p99Ms: number
  /** The slowest answer of `/livez`. */
  readonly healthMs: number
  /**
   * After the end of the load, when the same clients send half of the best rate: until the beginning of the
   * first second in all parts of which nearly all puts are acknowledged, in a second. Absent: there was none.
   */
  readonly recoveryMs?: number
  /** After the end of the load: until a client that comes then is answered in half a second. Absent: it was not. */
  readonly freshMs?: number
  /** Processors that the nodes, and those who asked them, used while the load lasted. */
  readonly nodeCpus: number
  readonly senderCpus: number
}

export interface OverloadReport {
  readonly bench: 'overload'
  readonly machine: Machine
  readonly options: OverloadOptions
  /** Absent: nodes and senders shared all of them. */
  readonly processors?: Processors
  /** Acknowledged a second, with as many under way as ten for each link: before the steps, and after them. */
  readonly best: number
  readonly bestAfter: number
  readonly steps: readonly Step[]
}

const factors = [0.5, 1, 1.5, 2, 4, 10]
const warmUpSeconds = 25
const underWayMax = 512
const sendersMax = 4
/** Queues fill before anything counts. */
const fillMs = 2_000
const afterMs = 6_000
const inTimePart = 0.95
/** After each step: its last puts end. */
const restMs = 1_000

export async function benchOverload(
  options: OverloadOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<OverloadReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const processors = shareProcessors()
  const nodes: NodeProcess[] = []
  const senders: Sender[] = []
  try {
    for (const place of await placeNodes(folder, 3)) nodes.push(startNode(place))
    if (processors !== undefined) {
      for (const { child } of nodes) moveTo(processors.nodes, child.pid ?? 0)
      moveTo(processors.senders, process.pid)
    }
    for (const node of nodes) await waitReady(node, { signal })
    const urls = nodes.map(({ url }) => url)
    const count = Math.max(1, Math.min(sendersMax, Math.floor(availableParallelism() / 2)))
    for (let n = 0; n < count; n++) {
      senders.push(await Sender.start(urls, Math.ceil(options.connections / count), signal))
    }
    const load = new Load(nodes, senders, options)
    await load.closed(warmUpSeconds * 1_000)
    const best = await load.closed(options.seconds * 1_000)
    say(`best: ${Math.round(best)}/s`)
    const steps: Step[] = []
    for (const times of factors) {
      const step = await load.open(times, best)
      say(describeStep(step))
      steps.push(step)
      await pause(restMs)
    }
    const bestAfter = await load.closed(options.seconds * 1_000)
    const shared = processors === undefined ? {} : { processors }
    return { bench: 'overload', machine: machine(), options, ...shared, best, bestAfter, steps }
  } finally {
    await Promise.all(senders.map((sender) => sender.stop()))
    await Promise.all(nodes.map(({ child }) => stopProcess(child)))
    await rm(folder, { recursive: true, force: true })
  }
}

class Load {
  readonly #nodes: readonly NodeProcess[]
  readonly #senders: readonly Sender[]
  readonly #options: OverloadOptions

  constructor(nodes: readonly NodeProcess[], senders: readonly Sender[], options: OverloadOptions) {
    this.#nodes = nodes
    this.#senders = senders
    this.#options = options
  }

  /** A put follows the one before. Gives what was acknowledged a second. */
  async closed(ms: number): Promise<number> {
    const all = Math.min(underWayMax, this.#options.connections * 10)
    const underWay = Math.ceil(all / this.#senders.length)
    const load = { kind: 'closed', underWay, ms } as const
    const ends = await Promise.all(this.#senders.map((sender) => sender.run(load)))
    return sumBy(ends, ({ ok }) => ok) / (ms / 1_000)
  }

  async open(times: number, best: number): Promise<Step> {
    const ms = this.#options.seconds * 1_000
    const part = best / this.#senders.length
    const rates = { perSecond: times * part, afterPerSecond: part / 2 }
    const load = { kind: 'open', fillMs, ms, afterMs, ...rates } as const
    const health = this.#watchHealth()
    const [cpus, ends] = await Promise.all([
      this.#cpus(ms),
      Promise.all(this.#senders.map((sender) => sender.run(load))),
    ])
    return { times, ...cpus, ...summarizeStep(ends, ms), healthMs: await health() }
  }

  async #cpus(ms: number): Promise<Pick<Step, 'nodeCpus' | 'senderCpus'>> {
    const pids = [this.#nodes.map(({ child }) => child.pid ?? 0), this.#senders.map((of) => of.pid)]
    const usedBy = async (of: readonly number[] = []): Promise<number> =>
      sumBy(await Promise.all(of.map(cpuSeconds)), (one) => one)
    await pause(fillMs)
    const before = await Promise.all(pids.map(usedBy))
    await pause(ms)
    const after = await Promise.all(pids.map(usedBy))
    const [nodeCpus = 0, senderCpus = 0] = after.map(
      (used, at) => (used - (before[at] ?? 0)) / (ms / 1_000),
    )
    return { nodeCpus, senderCpus }
  }

  /** Asks until the function it gives is called, which resolves with the slowest answer, milliseconds. */
  #watchHealth(): () => Promise<number> {
    const life = { longestMs: 0, isOver: false }
    const watch = async (url: string): Promise<void> => {
      while (!life.isOver) {
        const startMs = performance.now()
        await (await fetch(`${url}/livez`)).text()
        life.longestMs = Math.max(life.longestMs, performance.now() - startMs)
        await pause(50)
      }
    }
    const watching = Promise.all(this.#nodes.map(({ url }) => watch(url)))
    return async () => {
      life.isOver = true
      await watching
      return life.longestMs
    }
  }
}

type Told = Omit<Step, 'times' | 'healthMs' | 'nodeCpus' | 'senderCpus'>

function summarizeStep(all: readonly OpenEnds[], ms: number): Told {
  const perSecond = (of: (ends: OpenEnds) => number): number => sumBy(all, of) / (ms / 1_000)
  const others: Record<string, number> = {}
  for (const ends of all) {
    for (const [code, count] of Object.entries(ends.others)) {
      others[code] = (others[code] ?? 0) + count
    }
  }
  const tookMs = Float64Array.from(all.flatMap((ends) => ends.tookMs)).sort()
  const msAt = (part: number): number => tookMs[Math.floor(tookMs.length * part)] ?? 0
  const recoveryMs = findRecovery(all.map(({ after }) => after))
  const fresh = all.map(({ freshMs = Number.POSITIVE_INFINITY }) => freshMs)
  const freshMs = Math.max(...fresh)
  return {
    offered: perSecond(({ sent }) => sent),
    goodput: perSecond(({ ok }) => ok),
    refused: perSecond(({ refused }) => refused),
    others,
    p50Ms: msAt(0.5),
    p99Ms: msAt(0.99),
    ...(recoveryMs !== undefined && { recoveryMs }),
    ...(Number.isFinite(freshMs) && { freshMs }),
  }
}

function findRecovery(all: readonly (readonly Slice[])[]): number | undefined {
  const [first = []] = all
  const isGood = first.map((_, at) => {
    const asked = sumBy(all, (slices) => slices[at]?.asked ?? 0)
    const inTime = sumBy(all, (slices) => slices[at]?.inTime ?? 0)
    return asked > 0 && inTime >= inTimePart * asked
  })
  const inSecond = 1_000 / sliceMs
  const at = isGood.findIndex((_, from) => {
    const second = isGood.slice(from, from + inSecond)
    return second.length === inSecond && second.every((good) => good)
  })
  return at < 0 ? undefined : at * sliceMs
}

function sumBy<One>(all: readonly One[], of: (one: One) => number): number {
  return all.reduce((sum, one) => sum + of(one), 0)
}

function describeStep(step: Step): string {
  const { times, offered, goodput, refused, others, p50Ms, p99Ms, healthMs } = step
  const { recoveryMs, freshMs, nodeCpus, senderCpus } = step
  const odd = Object.entries(others).map(([code, count]) => `, ${count} ${code}`)
  const said = (ms: number | undefined): string =>
    ms === undefined ? 'none' : `${Math.round(ms)} ms`
  return [
    `${times} x: ${Math.round(offered)}/s offered, ${Math.round(goodput)}/s acknowledged, ${Math.round(refused)}/s refused${odd.join('')}`,
    `p50 ${said(p50Ms)}, p99 ${said(p99Ms)}, health ${said(healthMs)}`,
    `recovery ${said(recoveryMs)}, fresh client ${said(freshMs)}`,
    `processors: nodes ${nodeCpus.toFixed(2)}, senders ${senderCpus.toFixed(2)}`,
  ].join('; ')
}

export function describeOverload(report: OverloadReport): string {
  const { options, processors, best, bestAfter, steps } = report
  const { connections, seconds } = options
  const shares =
    processors === undefined
      ? 'nodes and senders share all processors'
      : `nodes on processors ${processors.nodes}, senders on ${processors.senders}`
  return [
    `${connections} connections, ${seconds} s a step; ${shares}; the nodes can do ${Math.round(best)}/s, and ${Math.round(bestAfter)}/s after all steps`,
    ...steps.map(describeStep),
    '',
  ].join('\n')
}
