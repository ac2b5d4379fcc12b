/**
 * One seed, from the beginning to the verdict. Faults come first, and checkers judge every step.
 * Then everything heals, and all operations under way must end. Then all replicas must agree,
 * drain, and hold all that was ever acknowledged, also after a restart.
 */
import { setsOf } from './workloads/bucket-giver.ts'
import { AppendWorkload, type NamedReplica } from './workloads/append-workload.ts'
import { BoundedWorkload } from './workloads/bounded-workload.ts'
import { CellIndexWorkload } from './workloads/cell-index-workload.ts'
import { CellWorkload } from './workloads/cell-workload.ts'
import { judgeHistory } from './checkers/history-checker.ts'
import { lookAtClocks, nodesInTime } from './cluster/seen-clocks.ts'
import type { Referee } from './checkers/referee.ts'
import { chooseCore } from './cluster/core.ts'
import { Comparison, type SimCluster } from './cluster/comparison.ts'
import { expectVoters } from './cluster/voters-look.ts'
import { expectVersion } from './cluster/version-look.ts'
import { expectErased } from './cluster/erase-look.ts'
import { inspectNowAndThen } from './cluster/inspections.ts'
import type { History } from './history/operation.ts'
import { GatewayQueries } from './workloads/gateway-queries.ts'
import { HeavyWorkload } from './workloads/heavy-workload.ts'
import { offerLoad } from './workloads/load-phase.ts'
import { IntentWorkload } from './workloads/intent-workload.ts'
import { Gateways } from './cluster/gateways.ts'
import { PastWorkload } from './workloads/past-workload.ts'
import { QueueWorkload } from './workloads/queue-workload.ts'
import { TableWorkload } from './workloads/table-workload.ts'
import { TriggerWorkload } from './workloads/trigger-workload.ts'
import { ReplicaWorkload } from './workloads/replica-workload.ts'
import { watchRest } from './cluster/rest.ts'
import { compareRuns, type RunOutcome, type RunResult } from './result.ts'
import { findRule, describeError, readStack } from './run-error.ts'
import { drawPlan, makeCluster, type RunHooks, type RunPlan } from './run-setup.ts'
import { describeAsked, isCellOperation, type Operation } from './scenarios/scenario-operation.ts'
import { describeSwarm, type SwarmOptions } from './swarm.ts'
import type { Switches } from './faults/swarm-faults.ts'
import type { Ending } from './world/world.ts'
import { boundOfFinish, listWaiting } from './cluster/finish.ts'

export { drawPlan, type RunHooks, type RunPlan } from './run-setup.ts'

const second = 1_000_000
/** In the healed world: to go on working, and for the replicas to agree. */
const [workMicros, compareMicros] = [40 * second, 30 * second]
/** The messages that commits in a healed world may cost; the first ones pay for what the faults left. */
const messagesPerCommitMax = 150
const messagesFree = 10_000
const reopenMicros = 10 * second
/** Delays are by clocks that may be minutes apart. */
const drainMicros = 500 * second
/** For a core to write and read every group, through each of its nodes. */
const coreMicros = 60 * second
const convergeMicros = 120 * second
/** Events between two looks at whether the replicas agree. */
const convergenceLookEvents = 64

/** Runs a plan once. */
export async function runPlan(plan: RunPlan, hooks: RunHooks = {}): Promise<RunResult> {
  return new Run(plan, hooks).run()
}

/** Runs a seed once. */
export async function runSeed(
  seed: number,
  hooks: RunHooks = {},
  switches: Switches = {},
): Promise<RunResult> {
  return runPlan(drawPlan(seed, switches), hooks)
}

/** Runs a seed; `check` runs it twice and compares. */
export async function runSeedChecked(
  seed: number,
  check: boolean,
  hooks: RunHooks = {},
  switches: Switches = {},
): Promise<RunResult> {
  const first = await runSeed(seed, hooks, switches)
  return check ? compareRuns(first, await runSeed(seed, hooks, switches)) : first
}

/** A session beside the clients of cells. */
interface Session {
  start(): void
  end(): void
  /** Nothing is under way. */
  isDone(): boolean
}

class Run {
  readonly #options: SwarmOptions
  readonly #cluster: SimCluster
  readonly #workload: CellWorkload
  readonly #blind: ReplicaWorkload
  readonly #lists: AppendWorkload
  readonly #past: PastWorkload
  readonly #tables: TableWorkload
  readonly #triggers: TriggerWorkload
  readonly #queues: QueueWorkload
  readonly #cellIndex: CellIndexWorkload
  readonly #gateways: Gateways
  /** Those that begin with the run, and end when the world has healed. */
  readonly #sessions: readonly Session[]
  readonly #referee: Referee
  readonly #comparison: Comparison
  readonly #endsAtHealing: boolean
  readonly #onHistory: ((history: History) => void) | undefined

  constructor(plan: RunPlan, hooks: RunHooks) {
    const { options, operations } = plan
    this.#options = options
    this.#endsAtHealing = hooks.endsAtHealing === true
    this.#onHistory = hooks.onHistory
    this.#cluster = makeCluster(plan, hooks, {
      killClient: (...struck) => {
        if (!this.#gateways.kill(...struck)) this.#workload.kill(...struck)
      },
      pauseClient: (...struck) => this.#gateways.pause(...struck),
    })
    const { world, referee, judge, coverage, hosts, clientNetwork, load } = this.#cluster
    this.#referee = referee
    const onFailed = (error: unknown): void => world.fail(error)
    const onOperation = (operation: Operation): void => {
      judge.note(operation.client, `asks: ${describeAsked(operation)}`)
      hooks.onOperation?.(operation)
    }
    const tell = judge.note.bind(judge)
    const nodes = hosts.map((host) => host.name)
    this.#gateways = this.#makeGateways(onFailed)
    this.#workload = new CellWorkload({
      ...{ world, coverage, network: clientNetwork, checker: judge.cells },
      ...{ options: options.workload, nodes, onOperation, tell },
      ...{ load, gateways: this.#gateways, model: judge.model },
      operations: operations?.filter(isCellOperation),
      mayBeCorrupt: () => this.#mayBeCorrupt(),
      nodesByClient: plan.nodesByClient,
      onFailed,
    })
    this.#comparison = new Comparison(this.#cluster, this.#workload.shards)
    const { blindSessionCount: sessionCount, blindWrites, thinkMeanMicros } = options.workload
    this.#blind = new ReplicaWorkload({
      ...{ world, coverage, referee, sessionCount, writesPerSession: blindWrites, thinkMeanMicros },
      operations: operations?.filter((one) => one.kind === 'blind'),
      onOperation,
      replicas: () => this.#cluster.programs.map((program) => program.replica),
      onFailed,
    })
    const { listSessionCount, listOperations, anyReads } = options.workload
    const holds = this.#cluster.holds.bind(this.#cluster)
    const onReplicas = { holds, replicas: () => this.#replicas() }
    this.#lists = new AppendWorkload({
      ...{ world, coverage, referee, sessionCount: listSessionCount, thinkMeanMicros, anyReads },
      ...{ operationsPerSession: listOperations, onOperation },
      operations: operations?.filter((one) => one.kind === 'lists'),
      isInService: (node) => this.#isInService(node),
      ...{ ...onReplicas, onFailed },
    })
    this.#past = this.#makePast(onFailed)
    const onNetwork = {
      ...{ world, coverage, referee, judge, network: clientNetwork, tell, onFailed },
      ...{ options: options.workload, nodes, indexes: judge.indexes },
      ...{ mayBeCorrupt: () => this.#mayBeCorrupt(), ...onReplicas },
    }
    const isInService = this.#isInService.bind(this)
    const { historyMs } = options.limits
    const sets = setsOf(this.#cluster)
    this.#tables = new TableWorkload({ ...onNetwork, historyMs, sets, isInService })
    this.#triggers = new TriggerWorkload({ ...onNetwork, load })
    this.#queues = new QueueWorkload(onNetwork)
    this.#cellIndex = new CellIndexWorkload({ ...onNetwork, load, isInService })
    const queries = new GatewayQueries({ ...onNetwork, load, gateways: this.#gateways })
    const asking = [queries, new HeavyWorkload(onNetwork), new IntentWorkload(onNetwork)]
    const bounded = new BoundedWorkload({ ...onNetwork, load })
    // Gateways first: the others ask them.
    const direct = [this.#gateways, ...asking, bounded, this.#blind, this.#lists, this.#past]
    this.#sessions = [...direct, this.#tables, this.#triggers, this.#queues, this.#cellIndex]
  }

  #makePast(onFailed: (error: unknown) => void): PastWorkload {
    const { world, coverage, judge } = this.#cluster
    const { workload, limits } = this.#options
    const { pastSessionCount: sessionCount, pastOperations, thinkMeanMicros } = workload
    return new PastWorkload({
      ...{ world, coverage, judge, sessionCount, operationsPerSession: pastOperations },
      ...{ thinkMeanMicros, historyMs: limits.historyMs, onFailed },
      replicas: () => this.#replicas(),
    })
  }

  #makeGateways(onFailed: (error: unknown) => void): Gateways {
    const { world, coverage, referee, clientNetwork, httpNetwork, hosts } = this.#cluster
    const { gateways, timeoutMs } = this.#options.workload
    const { delayMinMicros, delayMeanMicros, farFactor = 1 } = this.#options.link
    const farRoundTripMs = Math.ceil((2 * farFactor * (delayMinMicros + delayMeanMicros)) / 1000)
    return new Gateways({
      ...{ world, coverage, referee, nodeNetwork: clientNetwork, httpNetwork, onFailed },
      ...{ options: gateways, timeoutMs, farRoundTripMs, nodes: hosts.map((host) => host.name) },
    })
  }

  #isInService(node: string): boolean {
    return this.#cluster.inService.some((host) => host.name === node)
  }

  #mayBeCorrupt(): boolean {
    const { hosts, atlas } = this.#cluster
    return hosts.some((host) => atlas.hadHurtData(host.name))
  }

  #replicas(): readonly NamedReplica[] {
    return this.#cluster.hosts.flatMap(({ name, program }) =>
      program === undefined ? [] : [{ name, replica: program.replica }],
    )
  }

  async run(): Promise<RunResult> {
    const startedAt = process.hrtime.bigint()
    const { world } = this.#cluster
    const onRejection = (error: unknown): void => world.fail(error)
    process.on('unhandledRejection', onRejection)
    let outcome: RunOutcome
    try {
      outcome = await this.#phases()
    } catch (error) {
      this.#referee.check(false, findRule(error), describeError(error), () => ({
        stack: readStack(error),
      }))
      // A failure of a rule that does not count ends the run, and is not a find.
      outcome = this.#isBroken() ? 'crash' : 'clean'
    } finally {
      process.off('unhandledRejection', onRejection)
    }
    const wallSeconds = Number(process.hrtime.bigint() - startedAt) / 1e9
    this.#onHistory?.(this.#history())
    return this.#result(outcome, wallSeconds)
  }

  #result(outcome: RunOutcome, wallSeconds: number): RunResult {
    const { world, judge, coverage } = this.#cluster
    if (judge.model.leaderChanges > 0) coverage.count('leader changed', judge.model.leaderChanges)
    return {
      ...{ seed: this.#options.seed, outcome, violations: this.#referee.violations },
      ...{ hash: world.hash.digest(), events: world.eventCount, commits: judge.model.commits },
      simulatedSeconds: world.nowMicros / second,
      longestTurn: judge.turns.longest,
      judgements: this.#referee.judgements(),
      ...{ wallSeconds, coverage: coverage.counts(), swarm: describeSwarm(this.#options) },
    }
  }

  async #phases(): Promise<RunOutcome> {
    await this.#faultyPhase()
    if (this.#isBroken()) return this.#verdict()
    if (this.#endsAtHealing) return 'clean'
    await this.#corePhase()
    if (this.#isBroken()) return this.#verdict()
    await this.#healedPhase()
    if (!this.#isBroken()) await offerLoad(this.#cluster, this.#options, () => this.#isBroken())
    if (this.#isBroken()) return this.#verdict()
    await this.#compareAll('after everything healed')
    if (!this.#isBroken()) await this.#lookAtErased()
    if (!this.#isBroken()) await this.#lookAtClocks()
    if (!this.#isBroken()) await this.#quiet()
    if (this.#isBroken() || !this.#options.endsWithRestart) return this.#verdict()
    await this.#restartAll()
    if (this.#isBroken()) return this.#verdict()
    await this.#compareAll('after all nodes were started again')
    if (!this.#isBroken()) await this.#quiet()
    return this.#verdict()
  }

  #areClientsDone(): boolean {
    return this.#workload.isDone(nodesInTime(this.#cluster, this.#options))
  }

  #areSessionsDone(): boolean {
    // Sessions first: the world calls this after every event, and they answer at once.
    return this.#sessions.every((one) => one.isDone()) && this.#areClientsDone()
  }

  /** Every node has taken up its disks, or rightly will not. */
  #isOpen(): boolean {
    return this.#cluster.inService.every((host) => host.program !== undefined)
  }

  #isBroken(): boolean {
    return this.#referee.violations.length > 0
  }

  #verdict(): RunOutcome {
    const rules = this.#referee.violations.map((violation) => violation.rule)
    if (rules.length === 0) return 'clean'
    return rules.every((rule) => rule.startsWith('LIVE-')) ? 'liveness' : 'safety'
  }

  async #faultyPhase(): Promise<void> {
    const { world, nemesis } = this.#cluster
    this.#cluster.start()
    nemesis.start()
    this.#workload.start()
    for (const session of this.#sessions) session.start()
    inspectNowAndThen(this.#cluster, this.#comparison, this.#options)
    const ending = await world.run(() => this.#isBroken(), this.#options.faultRates.lengthMicros)
    this.#expectNoStorm(ending)
    this.#judgeHistory()
  }

  /** A core of nodes is well, the others stay broken for good: the core must go on without them. */
  async #corePhase(): Promise<void> {
    const { world, nemesis, coverage } = this.#cluster
    const { isCoreFirst, rest } = this.#options.healing
    if (!isCoreFirst) return
    const core = chooseCore(this.#cluster, this.#options)
    if (core === undefined) return coverage.count('no core while voters change')
    nemesis.healCore(core, rest)
    coverage.count(`core while the rest is ${rest}`)
    this.#workload.probe(core)
    const isDone = (): boolean => this.#isBroken() || this.#workload.openProbes.length === 0
    const before = this.#effort()
    const ending = await world.run(isDone, world.nowMicros + coreMicros)
    this.#expectNoStorm(ending)
    this.#expect(
      ending === 'done',
      'LIVE-1',
      'A majority of well nodes did not go on while the rest stayed broken.',
      { core, rest, open: this.#workload.openProbes },
    )
    this.#expectEase(before)
  }

  async #healedPhase(): Promise<void> {
    const { world, nemesis } = this.#cluster
    const before = this.#effort()
    nemesis.heal()
    const isDone = (): boolean => this.#isBroken() || (this.#areSessionsDone() && this.#isOpen())
    // A slow seed need not finish its work, but every operation that it began must come to an end.
    await world.run(isDone, world.nowMicros + workMicros)
    this.#workload.end()
    for (const session of this.#sessions) session.end()
    const rest = await world.run(isDone, world.nowMicros + boundOfFinish(this.#options.link))
    this.#expectNoStorm(rest)
    const told = listWaiting(this.#sessions)
    this.#expect(rest === 'done', 'LIVE-1', 'A call did not end in the healed world.', told)
    const asked = [this.#cluster, this.#referee, () => this.#isBroken()] as const
    if (!this.#isBroken()) await expectVoters(...asked)
    if (!this.#isBroken()) await expectVersion(...asked, this.#options.faultRates)
    if (this.#isBroken()) return
    const names = this.#cluster.inService.map((host) => host.name)
    this.#workload.finish(names)
    this.#lists.finish(names)
    this.#tables.finish(names)
    this.#cellIndex.finish(names)
    this.#gateways.finish()
    const last = await world.run(isDone, world.nowMicros + boundOfFinish(this.#options.link))
    this.#expectNoStorm(last)
    const left = listWaiting(this.#sessions)
    this.#expect(last === 'done', 'LIVE-1', 'Clients could not finish in the healed world.', left)
    await this.#drainTriggers(isDone)
    this.#judgeHistory()
    await this.#drainQueues()
    this.#expectEase(before)
  }

  async #lookAtErased(): Promise<void> {
    if (this.#options.limits.eraseWithinMs === 0) return
    await expectErased(this.#cluster, this.#referee, () => this.#isBroken())
  }

  /** Each node knows by now how its clock is off, and goes by the others' where that is too much. */
  #lookAtClocks(): Promise<void> {
    const { clockLeadMsMax } = this.#options.limits
    return lookAtClocks(this.#cluster, clockLeadMsMax)
  }

  /** After all writes: the workers handle the cells of that moment, and leave. */
  async #drainTriggers(isDone: () => boolean): Promise<void> {
    const { world } = this.#cluster
    if (this.#isBroken()) return
    this.#triggers.finish()
    const ending = await world.run(isDone, world.nowMicros + boundOfFinish(this.#options.link))
    this.#expectNoStorm(ending)
    this.#expect(ending === 'done', 'LIVE-1', 'Triggers could not finish in the healed world.')
  }

  /** Handlers handle each sent message, or give it up, and an operator redrives it. */
  async #drainQueues(): Promise<void> {
    const { world } = this.#cluster
    if (this.#isBroken()) return
    this.#queues.drain()
    const isDone = (): boolean => this.#isBroken() || this.#queues.isDrained()
    const ending = await world.run(isDone, world.nowMicros + drainMicros)
    this.#expectNoStorm(ending)
    const sentence = 'Messages are left, though nobody sends and handlers do their work.'
    this.#expect(ending === 'done', 'QUE-4', sentence, { ...this.#queues.leftOvers })
  }

  /** The answers to all clients so far. */
  #history(): History {
    return [...this.#workload.history, ...this.#lists.history]
  }

  #judgeHistory(): void {
    judgeHistory(this.#history(), this.#referee)
  }

  #effort(): { readonly messages: number; readonly commits: number } {
    const { traffic, judge } = this.#cluster
    return { messages: traffic.messages, commits: judge.model.commits }
  }

  /** No duels: commits since then cost a bounded number of messages. */
  #expectEase(before: { readonly messages: number; readonly commits: number }): void {
    const after = this.#effort()
    const messages = after.messages - before.messages
    const commits = after.commits - before.commits
    this.#expect(
      messages <= messagesFree + commits * messagesPerCommitMax,
      'LIVE-5',
      'Too many messages for what was committed in a healed world.',
      { messages, commits },
    )
  }

  #expectNoStorm(ending: Ending): void {
    this.#expect(ending !== 'events', 'LIVE-5', 'The run does not end: a storm of messages.')
  }

  /** All replicas apply everything, close every hole, and write it to their data disks. */
  async #convergence(when: string): Promise<void> {
    const { world } = this.#cluster
    const isDone = (): boolean =>
      this.#isBroken() ||
      (world.eventCount % convergenceLookEvents === 0 && this.#comparison.laggards().length === 0)
    const ending = await world.run(isDone, world.nowMicros + convergeMicros)
    for (const rule of ['LIVE-3', 'LIVE-4']) this.#referee.judged(rule)
    if (this.#isBroken() || ending === 'done') return
    const laggards = this.#comparison.laggards()
    const isHole = this.#comparison.hasHoles()
    this.#referee.check(
      laggards.length === 0,
      isHole ? 'LIVE-4' : 'LIVE-3',
      isHole ? `A hole is left ${when}.` : `A replica is left behind ${when}.`,
      () => ({ laggards: laggards.slice(0, 10) }),
    )
  }

  async #restartAll(): Promise<void> {
    const { inService, coverage, world } = this.#cluster
    coverage.count('restart at the end')
    for (const host of inService) if (host.isUp()) host.crash()
    for (const host of inService) host.restart()
    const ending = await world.run(
      () => this.#isBroken() || this.#isOpen(),
      world.nowMicros + reopenMicros,
    )
    this.#expect(ending === 'done', 'LIVE-1', 'A node did not come back from its disks.')
  }

  /**
   * Every replica's rows, and every cell through every node. Who finds its data damaged only now
   * makes it anew, and then all are compared once more.
   */
  async #compareAll(when: string): Promise<void> {
    const { world, hosts } = this.#cluster
    for (let round = 0; round <= hosts.length; round++) {
      await this.#convergence(when)
      if (this.#isBroken()) return
      const { tended } = this.#cluster
      this.#comparison.begin()
      const isDone = (): boolean => this.#isBroken() || this.#comparison.isDone()
      const ending = await world.run(isDone, world.nowMicros + compareMicros)
      this.#expect(ending === 'done', 'LIVE-2', 'A replica could not be read at the end.')
      if (this.#isBroken()) return
      if (this.#cluster.tended === tended) return this.#comparison.checkBuffered()
    }
    this.#expect(false, 'LIVE-2', 'Replicas do not come to rest.')
  }

  /** Clients are idle: before long the nodes propose and send nothing any more. */
  async #quiet(): Promise<void> {
    const { limits } = this.#options
    const { isAtRest, ...detail } = await watchRest(this.#cluster, limits, () => this.#isBroken())
    const sentence = 'Nobody asks for anything, and the nodes do not come to rest.'
    this.#expect(isAtRest, 'LIVE-5', sentence, detail)
  }

  #expect(
    holds: boolean,
    rule: string,
    sentence: string,
    detail: Readonly<Record<string, unknown>> = {},
  ): void {
    const { world } = this.#cluster
    this.#referee.check(holds || this.#isBroken(), rule, sentence, () => ({
      ...{ seconds: world.nowMicros / second },
      ...detail,
    }))
  }
}
