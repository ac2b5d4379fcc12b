/** Commands that have all nodes begin a round of comparing or of scrubbing, follow it to its end, and show its findings. */
import type { Command } from 'commander'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import type { Options } from './options.ts'
import { print, printJson, say, table } from './output.ts'
import { RoundAsks, type NodeAnswer, type RoundReport } from './round-asks.ts'
import { progressLine } from './round-progress.ts'
import { onStopSignals } from './signals.ts'
import { addUrlFlag } from './url-flags.ts'

/** A kind of round. `before` is the report from the beginning, where the command has begun it. */
export interface RoundKind {
  readonly verb: 'compare' | 'scrub'
  /** `the comparison` */
  readonly name: string
  /** How far one node is: `1 of 2 nodes, 12 groups`. */
  progress(report: RoundReport, before: RoundReport, nodes: number): string
  readonly head: readonly string[]
  row(report: RoundReport, before: RoundReport | undefined): readonly string[]
  /** Faults that remain at a node, in words. */
  faults(report: RoundReport): readonly string[]
  /** The node still looks at findings, or has them mended: the end is near. */
  isSettling(report: RoundReport): boolean
  /** It was too early: a node had not counted its groups. */
  isToBeRepeated(report: RoundReport): boolean
  /** Where no fault remains. */
  readonly allWell: string
}

const pollMs = 250
/** For this long the command waits for what a round has found to be mended. */
const settleMs = 10_000
/** The command gives a node up that answers nothing for this long. */
const silenceMs = 10_000
const repeatsMax = 3
const repeatMs = 1_000

export function addRoundCommands(
  of: Command,
  kind: RoundKind,
  words: { readonly now: string },
): void {
  addRoundFlags(of.command('now'))
    .description(words.now)
    .option('--no-wait', 'begin, and do not wait for the end')
    .action((options: Options) => beginRounds(kind, options))
  addRoundFlags(of.command('status'))
    .description(`how far ${kind.name} is at each node, and what it found; begins nothing`)
    .action((options: Options) => showRounds(kind, options))
}

export function addRoundFlags(command: Command): Command {
  return addUrlFlag(command)
    .option('--secret-file <FILE>', "the cluster's secret (or TRILITHON_SECRET_FILE)")
    .option('--json', 'as JSON')
}

async function showRounds(kind: RoundKind, options: Options): Promise<void> {
  const asks = await RoundAsks.open(options)
  const answers = await asks.all('GET', `/${kind.verb}`)
  finish(
    kind,
    options,
    answers.map((answer) => ({ answer })),
    false,
  )
}

/** A node with the round that it is at. */
interface Followed {
  answer: NodeAnswer
  /** As it was at the beginning; absent: the node has begun nothing. */
  readonly before?: RoundReport
  round: number
  repeats: number
  endedMs?: number
  heardMs: number
}

async function beginRounds(kind: RoundKind, options: Options): Promise<void> {
  const asks = await RoundAsks.open(options)
  const begun = await asks.all('POST', `/${kind.verb}`)
  if (options['wait'] === false) return showBegun(kind, options, begun)
  onStopSignals({
    stop: (signal) => {
      say(`${signal}: ${kind.name} goes on at the nodes; see trilithon ${kind.verb} status`)
      process.exit(exitFailure)
    },
  })
  for (const { id, report } of begun) {
    if (report?.isJoined === true) say(`${id}: a round was under way: this is its end`)
  }
  const nowMs = performance.now()
  const nodes = begun.map((answer): Followed => {
    const before = answer.report === undefined ? {} : { before: answer.report }
    return { answer, ...before, round: answer.report?.round ?? 0, repeats: 0, heardMs: nowMs }
  })
  await follow(kind, asks, nodes)
  finish(kind, options, nodes, true)
}

async function follow(kind: RoundKind, asks: RoundAsks, nodes: readonly Followed[]): Promise<void> {
  const line = progressLine()
  for (;;) {
    const left = nodes.filter((node) => isLeft(kind, node))
    if (left.length === 0) break
    await new Promise((resolve) => setTimeout(resolve, pollMs))
    const answers = await asks.all(
      'GET',
      `/${kind.verb}`,
      left.map(({ answer }) => answer),
    )
    for (const [at, answer] of answers.entries()) {
      const node = left[at]
      if (node !== undefined) hear(node, answer)
    }
    const areAllHere = nodes.every(({ answer }) => answer.report !== undefined)
    for (const node of areAllHere ? left : []) await repeat(kind, asks, node)
    const told = nodes.map(({ answer: { id, report }, before }) =>
      report === undefined || before === undefined
        ? `${id}: no answer`
        : `${id}: ${kind.progress(report, before, nodes.length)}`,
    )
    line.show(told.join('; '))
  }
  line.end()
}

function isLeft(kind: RoundKind, { answer: { report }, before, endedMs }: Followed): boolean {
  if (report === undefined || before === undefined) return false
  if (endedMs === undefined) return true
  return kind.isSettling(report) && performance.now() - endedMs < settleMs
}

/** Takes the node's answer; none for a moment is no news. */
function hear(node: Followed, answer: NodeAnswer): void {
  const { report } = answer
  const nowMs = performance.now()
  if (report === undefined) {
    if (nowMs - node.heardMs > silenceMs || answer.isRefused === true) node.answer = answer
    return
  }
  node.heardMs = nowMs
  if (report.incarnation !== node.before?.incarnation) {
    const { id, url } = answer
    node.answer = { id, url, why: 'it was started anew meanwhile, and its round has no end' }
    return
  }
  node.answer = answer
  if (report.ended >= node.round) node.endedMs ??= nowMs
}

async function repeat(kind: RoundKind, asks: RoundAsks, node: Followed): Promise<void> {
  const { answer, endedMs } = node
  const isWanted = answer.report !== undefined && kind.isToBeRepeated(answer.report)
  if (!isWanted || endedMs === undefined || node.repeats >= repeatsMax) return
  node.repeats += 1
  await new Promise((resolve) => setTimeout(resolve, repeatMs))
  const [begun] = await asks.all('POST', `/${kind.verb}`, [answer])
  if (begun?.report?.round === undefined) return
  node.round = begun.report.round
  delete node.endedMs
}

function showBegun(kind: RoundKind, options: Options, begun: readonly NodeAnswer[]): void {
  if (options['json'] === true) {
    printJson({
      nodes: begun.map(({ id, report, why }) =>
        report === undefined ? { id, why } : { id, round: report.round, joined: report.isJoined },
      ),
    })
  } else {
    for (const { id, report } of begun) {
      if (report !== undefined) print(`${id}: ${report.isJoined === true ? 'under way' : 'begun'}`)
    }
  }
  refuseSilent(begun, options['json'] === true)
  say(`see trilithon ${kind.verb} status`)
}

/** Prints the table, and sets the exit code: 0 without a fault, 1 with one, 4 where a node does not answer. */
function finish(
  kind: RoundKind,
  options: Options,
  nodes: readonly Pick<Followed, 'answer' | 'before'>[],
  isAfterRound: boolean,
): void {
  const answers = nodes.map(({ answer }) => answer)
  const found = answers.map(({ id, report, why }) => {
    const faults = report === undefined ? [why ?? 'no answer'] : kind.faults(report)
    return { id, ...report, faults }
  })
  const isJson = options['json'] === true
  if (isJson) printJson({ ok: found.every(({ faults }) => faults.length === 0), nodes: found })
  else {
    const rows = nodes.flatMap(({ answer: { id, report }, before }) =>
      report === undefined ? [[id, 'no answer']] : [[id, ...kind.row(report, before)]],
    )
    print(table([['node', ...kind.head], ...rows]))
    for (const { id, faults } of found) for (const fault of faults) say(`${id}: ${fault}`)
  }
  refuseSilent(answers, true)
  const faulty = found.filter(({ faults }) => faults.length > 0).map(({ id }) => id)
  if (faulty.length > 0) {
    throw new CliError(`not all is well at ${faulty.join(', ')}`, exitFailure)
  }
  if (!isJson && isAfterRound) print(kind.allWell)
}

function refuseSilent(answers: readonly NodeAnswer[], isTold: boolean): void {
  const silent = answers.filter(({ report }) => report === undefined)
  if (silent.length === 0) return
  if (!isTold) for (const { id, why } of silent) say(`${id}: ${why ?? 'no answer'}`)
  const names = silent.map(({ id }) => id).join(', ')
  if (silent.every(({ isRefused }) => isRefused === true)) {
    throw new CliError(`refused by ${names}: ${silent[0]?.why ?? ''}`, exitFailure)
  }
  throw new CliError(`no answer of ${names}`, exitUnavailable)
}
