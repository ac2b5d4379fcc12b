/**
 * A healed cluster under more than it can do: clients send puts at a fixed rate, answered or not (open loop).
 * Before that, sessions that put one cell after another show what the nodes can do at best.
 *
 * LOAD-10  A healed cluster that is offered several times its best acknowledges at least four fifths of its best.
 *          Calls end in their time, and for most of them their outcome is known. Two seconds after the load the
 *          cluster acknowledges nearly as much as before it. Each acknowledged cell is there. While clients offer
 *          no such load, no node and no client refuses a call with `overloaded`.
 */
import type { StoreError } from '../../src/base/errors.ts'
import { toStoreError, captureOutcome } from '../../src/base/problem.ts'
import { Client } from '../../src/client/client.ts'
import { defaultClientLimits } from '../../src/client/client-limits.ts'
import { createClock } from '../world/clock.ts'
import type { SimCluster } from '../cluster/comparison.ts'
import type { LoadOptions } from './load-draw.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { SwarmOptions } from '../swarm.ts'

const second = 1_000_000
const phaseMicros = 120 * second
const timeoutMs = 10_000
/**
 * Each turn costs this many times its usual cost: then two thousand puts are an overload, and the
 * run stays short.
 */
const costFactor = 100
const loops = 32
const warmUpSeconds = 1
const bestSeconds = 2
const loadSeconds = 4
const stillSeconds = 5
/** Of each client, and of all. */
const fewPerSecond = 1.5
const fewPerSecondMax = 5
/**
 * Not counted at the beginning of a load: answers to puts from before it, and the time that a first
 * put takes.
 */
const fillSeconds = 1
/** Of the best. */
const goodputMin = 0.8
const recoverySeconds = 2
const tickMicros = 20_000
/** Of requests that wait at a node, and in a group. */
const queueMin = 64
/** A cluster that does less has other troubles: its limits are drawn, too. */
const bestMin = 20

/** How puts ended. */
interface Ends {
  asked: number
  ok: number
  refused: number
  others: number
  longestMs: number
}

/**
 * Before the load, of few calls at nodes that stood still, under the load, and two seconds after
 * it.
 */
interface Told {
  readonly before: Ends
  readonly still: Ends
  readonly under: Ends
  readonly after: Ends
}

/**
 * Offers no load where turns take no time, since such nodes never saturate. Offers none either
 * where limits are so low that one client's burst is an overload.
 */
export async function offerLoad(
  cluster: SimCluster,
  { workload, times, limits }: SwarmOptions,
  isBroken: () => boolean,
): Promise<void> {
  const { openLoad } = workload
  const { world, hosts, inService, referee } = cluster
  const usual = times?.costFactor ?? 0
  if (openLoad === undefined || usual === 0 || inService.length < hosts.length) return
  if (Math.min(limits.groupQueueMax, limits.nodeQueueMax) < queueMin) return
  for (const host of hosts) host.slowBy(costFactor / usual)
  const phase = new LoadPhase(cluster, openLoad)
  phase.start()
  const isDone = (): boolean => isBroken() || phase.isDone
  const ending = await world.run(isDone, world.nowMicros + phaseMicros)
  for (const host of hosts) host.slowBy(1)
  const isOver = isBroken() || ending === 'done'
  referee.check(isOver, 'LOAD-10', 'Calls under load did not end.', () => ({ ending }))
}

class LoadPhase {
  readonly #cluster: SimCluster
  readonly #options: LoadOptions
  readonly #clients: readonly Client[]
  readonly #written: string[] = []
  #nth = 0
  #underWay = 0
  isDone = false

  constructor(cluster: SimCluster, options: LoadOptions) {
    this.#cluster = cluster
    this.#options = options
    this.#clients = Array.from({ length: options.clients }, (_, at) => this.#client(at))
  }

  start(): void {
    const { world, coverage } = this.#cluster
    coverage.count(`load: ${this.#options.times} times too much`)
    this.#run().then(
      () => (this.isDone = true),
      (error: unknown) => world.fail(error),
    )
  }

  #client(at: number): Client {
    const { world, clientNetwork, hosts } = this.#cluster
    const name = `load-${at}`
    const process = new SimProcess(world, name)
    const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
    const clock = createClock(process, skew, world.random.fork(`clock ${name}`))
    const transport = clientNetwork.attach(
      process,
      hosts.map((host) => host.name),
      name,
    )
    const ports = { transport, clock, random: world.random.fork(name) }
    return new Client(ports, { ...defaultClientLimits, timeoutMs })
  }

  async #run(): Promise<void> {
    const { times } = this.#options
    const best = await this.#closed()
    if (best < bestMin) return
    this.#cluster.coverage.count('load: judged')
    // Some nodes cannot do a part of what they could easily do: their disks are full, say.
    const before = noEnds()
    await this.#open(0.4 * best, 1, before)
    await this.#rest()
    const still = await this.#standStill(best)
    const under = noEnds()
    const okAtFirst = await this.#open(times * best, fillSeconds, under)
    const okInTime = await this.#open(times * best, loadSeconds - fillSeconds, under)
    const goodput = (okInTime - okAtFirst) / (loadSeconds - fillSeconds)
    await this.#open(0.4 * best, recoverySeconds, noEnds())
    const after = noEnds()
    await this.#open(0.4 * best, 1, after)
    await this.#rest()
    this.#judge(best, goodput, { before, still, under, after })
    await this.#readBack()
  }

  /**
   * Nodes that stand still for a while are not overloaded: a client with few requests gets no
   * overload error.
   */
  async #standStill(best: number): Promise<Ends> {
    const { hosts } = this.#cluster
    const still = noEnds()
    for (const host of hosts) host.pause(stillSeconds * second)
    const few = Math.min(fewPerSecondMax, fewPerSecond * this.#clients.length)
    const perSecond = Math.min(0.4 * best, few)
    await this.#open(perSecond, stillSeconds, still)
    await this.#rest()
    return still
  }

  async #rest(): Promise<void> {
    while (this.#underWay > 0) await this.#cluster.world.sleep(tickMicros)
  }

  #judge(best: number, goodput: number, ends: Told): void {
    const { before, still, under, after } = ends
    const { referee } = this.#cluster
    const check = (holds: boolean, sentence: string): unknown =>
      referee.check(holds, 'LOAD-10', sentence, () => ({ best, goodput, ...ends }))
    check(before.refused === 0, 'A load that the nodes could easily do was refused.')
    check(still.refused === 0, 'Few calls at nodes that stood still were refused for load.')
    check(goodput >= goodputMin * best, 'Under load the nodes did too little of what they can.')
    check(under.refused > 0, 'Nobody was refused, though much more was asked than can be done.')
    check(under.longestMs <= timeoutMs + 500, 'A call lasted for longer than its time.')
    check(under.others <= 0.1 * under.asked, 'Under load too little is known of what was asked.')
    const share = before.ok / before.asked
    check(
      after.ok >= 0.8 * share * after.asked,
      'Two seconds after the load the nodes did not do all.',
    )
  }

  /** Acknowledged cells are there. */
  async #readBack(): Promise<void> {
    const [client] = this.#clients
    for (const rowKey of this.#written.filter((_, at) => at % 10 === 0)) {
      const cell = await client?.cells('load').get({ rowKey, column: 'A' })
      const sentence = 'A put that was acknowledged under load is not there.'
      this.#cluster.referee.check(cell !== undefined, 'LOAD-10', sentence, () => ({ rowKey }))
    }
  }

  /**
   * A put follows the one before. Gives how many a second are acknowledged, once all loops are at
   * it.
   */
  async #closed(): Promise<number> {
    const { world } = this.#cluster
    const endMicros = world.nowMicros + (warmUpSeconds + bestSeconds) * second
    const ends = noEnds()
    const loop = async (): Promise<void> => {
      while (world.nowMicros < endMicros) await this.#put(ends)
    }
    const all = Promise.all(Array.from({ length: loops }, loop))
    await world.sleep(warmUpSeconds * second)
    const okAtFirst = ends.ok
    await world.sleep(bestSeconds * second)
    const perSecond = (ends.ok - okAtFirst) / bestSeconds
    await all
    return perSecond
  }

  /** Returns how many puts had been acknowledged when the last one was sent. */
  async #open(perSecond: number, seconds: number, ends: Ends): Promise<number> {
    const { world } = this.#cluster
    const { asked } = ends
    const fromMicros = world.nowMicros
    for (let micros = 0; micros < seconds * second; micros = world.nowMicros - fromMicros) {
      const due = (micros / second) * perSecond
      while (ends.asked - asked < due) void this.#put(ends)
      await world.sleep(tickMicros)
    }
    return ends.ok
  }

  async #put(ends: Ends): Promise<void> {
    const { world } = this.#cluster
    const nth = this.#nth++
    const rowKey = buildRowKey(nth)
    const client = this.#clients[nth % this.#clients.length]
    const fromMicros = world.nowMicros
    ends.asked += 1
    this.#underWay += 1
    const cell = { rowKey, column: 'A', refKey: 1, body: { nth } }
    const outcome = await captureOutcome(async () => void (await client?.cells('load').put(cell)))
    this.#underWay -= 1
    ends.longestMs = Math.max(ends.longestMs, (world.nowMicros - fromMicros) / 1_000)
    if (outcome.kind === 'ok') {
      ends.ok += 1
      this.#written.push(rowKey)
    } else if (isRefusal(toStoreError(outcome.problem))) ends.refused += 1
    else ends.others += 1
  }
}

function isRefusal({ code, detail }: StoreError): boolean {
  return code === 'overloaded' && (detail.retryAfterMs ?? 0) > 0
}

function noEnds(): Ends {
  return { asked: 0, ok: 0, refused: 0, others: 0, longestMs: 0 }
}

function buildRowKey(nth: number): string {
  const spread = ((nth * 2_654_435_761) % 2 ** 32).toString(16).padStart(8, '0')
  return `${spread}-0000-4000-8000-${nth.toString(16).padStart(12, '0')}`
}
