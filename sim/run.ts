/**
 * One seed, from the beginning to the verdict: faults first, with safety checked at every step;
 * then everything heals, and what was begun must be done; then all replicas must agree, drain, and
 * hold what was ever acknowledged, also after a restart.
 */
import { AssertionError } from '../src/base/assert.ts'
import { groupOfBytes, type GroupId } from '../src/base/ids.ts'
import { fromLatin1 } from '../src/base/bytes.ts'
import { unpackBody } from '../src/cells/body.ts'
import type { Cell, StoredCell } from '../src/cells/cell.ts'
import type { ClientFrame } from '../src/cells/operation.ts'
import { Node } from '../src/node/compose.ts'
import { decodeClientFrame, encodeClientFrame } from '../src/wire/client-codec.ts'
import { seenOf } from './cell-client.ts'
import { CellWorkload, clientNames, datastore } from './cell-workload.ts'
import { RowSum } from './checkers/log-model.ts'
import type { Referee } from './checkers/referee.ts'
import { Cluster } from './cluster.ts'
import { createHostDisk } from './host-disk.ts'
import type { NodeHost } from './node-host.ts'
import { ReplicaWorkload } from './replica-workload.ts'
import type { RunOutcome, RunResult } from './result.ts'
import type { Ending } from './world.ts'
import { describeSwarm, drawSwarm, type SwarmOptions } from './swarm.ts'

export interface RunHooks {
  /** Gets the run told line by line. */
  readonly watch?: (line: string) => void
  /** Only violations of these rules count, assertions included. */
  readonly rules?: readonly string[] | undefined
}

/** A run that takes more events than this is taken for a storm. */
const eventsMax = 3_000_000
const second = 1_000_000
/** In the healed world: to go on working, to finish, and for the replicas to agree. */
const workMicros = 40 * second
const finishMicros = 120 * second
const convergeMicros = 120 * second
/** Events between two looks at whether the replicas agree. */
const convergenceLookEvents = 64

/** Runs a seed once. */
export async function runSeed(seed: number, hooks: RunHooks = {}): Promise<RunResult> {
  return new Run(drawSwarm(seed), hooks).run()
}

/** Runs a seed; `check` runs it twice and compares. */
export async function runSeedChecked(
  seed: number,
  check: boolean,
  hooks: RunHooks = {},
): Promise<RunResult> {
  const first = await runSeed(seed, hooks)
  return check ? compareRuns(first, await runSeed(seed, hooks)) : first
}

/** The first run's result, or that the second one went another way. */
export function compareRuns(first: RunResult, second: RunResult): RunResult {
  if (first.hash === second.hash) return first
  const detail = { first: first.hash, second: second.hash, events: [first.events, second.events] }
  const sentence = 'The same seed took another course the second time.'
  const violation = { rule: 'META-1', sentence, timeMicros: 0, detail }
  return { ...first, outcome: 'nondeterminism', violations: [violation, ...first.violations] }
}

type SimCluster = Cluster<Node, ClientFrame>

class Run {
  readonly #options: SwarmOptions
  readonly #cluster: SimCluster
  readonly #workload: CellWorkload
  readonly #blind: ReplicaWorkload
  readonly #referee: Referee

  constructor(options: SwarmOptions, hooks: RunHooks) {
    this.#options = options
    this.#cluster = makeCluster(options, hooks)
    const { world, referee, judge, coverage, hosts, clientNetwork } = this.#cluster
    this.#referee = referee
    this.#workload = new CellWorkload({
      ...{ world, coverage, network: clientNetwork, checker: judge.cells },
      ...{ options: options.workload, nodes: hosts.map((host) => host.name) },
      onFailed: (error) => {
        world.fail(error)
      },
    })
    const { blindSessionCount: sessionCount, blindWrites, thinkMeanMicros } = options.workload
    this.#blind = new ReplicaWorkload({
      ...{ world, coverage, referee, sessionCount, writesPerSession: blindWrites, thinkMeanMicros },
      replicas: () => this.#cluster.programs.map((program) => program.replica),
      onFailed: (error) => {
        world.fail(error)
      },
    })
  }

  async run(): Promise<RunResult> {
    const startedAt = process.hrtime.bigint()
    const { world } = this.#cluster
    const onRejection = (error: unknown): void => {
      world.fail(error)
    }
    process.on('unhandledRejection', onRejection)
    let outcome: RunOutcome
    try {
      outcome = await this.#phases()
    } catch (error) {
      this.#referee.check(false, ruleOf(error), sentenceOf(error), () => ({
        stack: stackOf(error),
      }))
      // A failure of a rule that does not count ends the run, and is not a find.
      outcome = this.#isBroken() ? 'crash' : 'clean'
    } finally {
      process.off('unhandledRejection', onRejection)
    }
    const wallSeconds = Number(process.hrtime.bigint() - startedAt) / 1e9
    return this.#result(outcome, wallSeconds)
  }

  #result(outcome: RunOutcome, wallSeconds: number): RunResult {
    const { world, judge, coverage } = this.#cluster
    if (judge.model.leaderChanges > 0) coverage.count('leader changed', judge.model.leaderChanges)
    return {
      ...{ seed: this.#options.seed, outcome, violations: this.#referee.violations },
      hash: world.hash.digest(),
      events: world.eventCount,
      commits: judge.model.commits,
      simulatedSeconds: world.nowMicros / second,
      ...{ wallSeconds, coverage: coverage.counts(), swarm: describeSwarm(this.#options) },
    }
  }

  async #phases(): Promise<RunOutcome> {
    await this.#faultyPhase()
    if (this.#isBroken()) return 'safety'
    await this.#healedPhase()
    if (this.#isBroken()) return this.#verdict()
    await this.#convergence('after everything healed')
    if (this.#isBroken()) return this.#verdict()
    await this.#compareAll()
    if (this.#isBroken() || !this.#options.endsWithRestart) return this.#verdict()
    await this.#restartAll()
    if (this.#isBroken()) return this.#verdict()
    await this.#compareAll()
    return this.#verdict()
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
    this.#blind.start()
    this.#inspectNowAndThen()
    const ending = await world.run(() => this.#isBroken(), this.#options.faults.lengthMicros)
    this.#expectNoStorm(ending)
  }

  async #healedPhase(): Promise<void> {
    const { world, nemesis } = this.#cluster
    nemesis.heal()
    const isDone = (): boolean =>
      this.#isBroken() || (this.#workload.isDone() && this.#blind.isDone())
    // A slow seed need not do all it was given, but whatever it began must come to an end.
    await world.run(isDone, world.nowMicros + workMicros)
    this.#workload.end()
    this.#blind.end()
    const rest = await world.run(isDone, world.nowMicros + finishMicros)
    this.#expectNoStorm(rest)
    this.#expect(rest === 'done', 'LIVE-1', 'A call did not end in the healed world.')
    if (this.#isBroken()) return
    this.#workload.finish()
    const last = await world.run(isDone, world.nowMicros + finishMicros)
    this.#expectNoStorm(last)
    this.#expect(last === 'done', 'LIVE-1', 'Clients could not finish in the healed world.')
  }

  #expectNoStorm(ending: Ending): void {
    this.#expect(ending !== 'events', 'LIVE-5', 'The run does not end: a storm of messages.')
  }

  /** All replicas apply everything, close every hole, and write it to their data disks. */
  async #convergence(when: string): Promise<void> {
    const { world, judge } = this.#cluster
    const isDone = (): boolean =>
      this.#isBroken() ||
      (world.eventCount % convergenceLookEvents === 0 && this.#laggards().length === 0)
    const ending = await world.run(isDone, world.nowMicros + convergeMicros)
    if (this.#isBroken() || ending === 'done') return
    const laggards = this.#laggards()
    const isHole = judge.book.groups.some((group) => this.#openPositions(group) > 0)
    this.#referee.check(
      laggards.length === 0,
      isHole ? 'LIVE-4' : 'LIVE-3',
      isHole ? `A hole is left ${when}.` : `A replica is left behind ${when}.`,
      () => ({ laggards: laggards.slice(0, 10) }),
    )
  }

  /** Positions that somebody accepted a value at and that are not chosen (LOG-5). */
  #openPositions(group: string): number {
    const { judge } = this.#cluster
    const { position } = judge.model.of(group)
    const views = judge.book.positionsOf(group)
    return views.filter(
      (view) =>
        view.position > position &&
        [...view.acceptors.values()].some((acceptor) => acceptor.accepted !== undefined),
    ).length
  }

  #laggards(): string[] {
    const { judge, hosts } = this.#cluster
    return judge.book.groups.flatMap((group) => {
      const { position } = judge.model.of(group)
      const name = Buffer.from(group, 'latin1').toString('hex').slice(-8)
      const open = this.#openPositions(group)
      const holes = open === 0 ? [] : [`${name}: ${open} open positions above ${position}`]
      const behind = hosts.flatMap((host) => {
        const applied = judge.log.appliedPosition(host.name, group)
        const drained = judge.disks.positionOf(host.name, group)
        if (applied === position && drained === position) return []
        return [`${name}: ${host.name} applied ${applied}, drained ${drained} of ${position}`]
      })
      return [...holes, ...behind]
    })
  }

  async #restartAll(): Promise<void> {
    const { hosts, coverage, world } = this.#cluster
    coverage.count('restart at the end')
    for (const host of hosts) host.crash()
    for (const host of hosts) host.restart()
    const isOpen = (): boolean => hosts.every((host) => host.program !== undefined)
    const ending = await world.run(
      () => this.#isBroken() || isOpen(),
      world.nowMicros + 10 * second,
    )
    this.#expect(ending === 'done', 'LIVE-1', 'A node did not come back from its disks.')
    if (!this.#isBroken()) await this.#convergence('after all nodes were started again')
  }

  /** Every replica's rows, and every cell through every node. */
  async #compareAll(): Promise<void> {
    const { hosts, judge, world } = this.#cluster
    let left = 0
    const begin = (work: Promise<void>): void => {
      left += 1
      work.then(
        () => (left -= 1),
        (error: unknown) => {
          world.fail(error)
        },
      )
    }
    for (const host of hosts) {
      for (const group of judge.book.groups) begin(this.#inspect(host, groupOf(group)))
      for (const shard of this.#workload.shards) begin(this.#readBack(host, shard))
    }
    const isDone = (): boolean => this.#isBroken() || left === 0
    const ending = await world.run(isDone, world.nowMicros + 30 * second)
    this.#expect(ending === 'done', 'LIVE-2', 'A replica could not be read at the end.')
  }

  /** A replica's rows against the model, as of the position it has applied at this moment. */
  async #inspect(host: NodeHost<Node>, group: GroupId): Promise<void> {
    const { judge } = this.#cluster
    const { program } = host
    if (program === undefined) return
    const position = judge.log.appliedPosition(host.name, group)
    const rows = await program.replica.scan(group, {})
    const sum = new RowSum()
    for (const { key, value, timestamp } of rows) sum.toggle(key, value, timestamp, true)
    judge.log.onRowsSeen(host.name, group, position, sum)
  }

  /** The whole log of a shard through one node's own cell store. */
  async #readBack(host: NodeHost<Node>, shard: number): Promise<void> {
    const { checker } = { checker: this.#cluster.judge.cells }
    const { program } = host
    if (program === undefined) return
    const limit = 1000
    for (let after = 0; ;) {
      const info = { client: host.name, startTick: checker.begin(), isCurrent: true }
      const read = { level: 'current', atLeast: [] } as const
      const items = [{ kind: 'after', shard, addedId: after }] as const
      const { answer } = await program.cells.execute(
        { kind: 'log', datastore, read, items, limit, waitMs: 0 },
        { timeoutMs: 20_000 },
      )
      const [page] = answer.kind === 'log' ? answer.items : []
      const isOk = page?.kind === 'ok'
      this.#expect(isOk, 'LIVE-2', 'A shard could not be read through a node at the end.')
      if (!isOk) return
      const { cells, next } = page.value
      checker.onShardRead(
        shard,
        { after, limit },
        cells.map((one) => seenOf(cellOf(one))),
        info,
      )
      if (cells.length < limit) return
      after = next
    }
  }

  #inspectNowAndThen(): void {
    const { judge, hosts, world } = this.#cluster
    const { inspections } = this.#options
    if (inspections === 0) return
    const random = world.random.fork('inspections')
    judge.onApplied = (node, group) => {
      if (!random.chance(inspections)) return
      const host = hosts.find((one) => one.name === node)
      world.schedule(0, 'inspect', () => {
        if (host === undefined) return
        this.#inspect(host, groupOf(group)).catch((error: unknown) => {
          world.fail(error)
        })
      })
    }
  }

  #expect(holds: boolean, rule: string, sentence: string): void {
    const { world } = this.#cluster
    this.#referee.check(holds || this.#isBroken(), rule, sentence, () => ({
      seconds: world.nowMicros / second,
    }))
  }
}

function makeCluster(options: SwarmOptions, hooks: RunHooks): SimCluster {
  return new Cluster<Node, ClientFrame>({
    ...{ options, eventsMax, clientNames: clientNames(options.workload), watch: hooks.watch },
    rules: hooks.rules,
    clientCodec: {
      encode: encodeClientFrame,
      decode(bytes) {
        const decoded = decodeClientFrame(bytes)
        return decoded.ok ? decoded.frame : undefined
      },
    },
    open: (ports, nodeOptions, fail) => Node.open(ports, nodeOptions, fail),
    makeDisk: (world, name, onDurable) => createHostDisk(world, name, options.disk, onDurable),
  })
}

function groupOf(group: string): GroupId {
  return groupOfBytes(fromLatin1(group))
}

function cellOf(stored: StoredCell): Cell {
  return { ...stored, body: unpackBody(stored.body) ?? null }
}

/** An assertion's text opens with its rule. */
function ruleOf(error: unknown): string {
  const isAssertion = error instanceof AssertionError
  return isAssertion ? (/^[A-Z]+-\d+/.exec(error.message)?.[0] ?? 'META-3') : 'META-3'
}

function sentenceOf(error: unknown): string {
  if (error instanceof AssertionError) return `An assertion failed: ${error.message}`
  return `An error that nobody handles: ${error instanceof Error ? error.message : String(error)}`
}

function stackOf(error: unknown): readonly string[] {
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  return stack
    .split('\n')
    .slice(1, 7)
    .map((line) => line.trim())
}
