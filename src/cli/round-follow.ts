/**
 * Follows rounds of comparing or of scrubbing at all nodes to their ends. A round of comparing comes to no end where a node
 * has not counted its groups since its start: then this begins it once more when the nodes have counted them.
 */
import type { NodeAnswer, RoundAsks, RoundReport } from './round-asks.ts'
import { progressLine } from './round-progress.ts'

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
  /** The round came to no end with another node: it did not answer, or one of the two had not counted its groups. */
  isToBeRepeated(report: RoundReport): boolean
  /** The node counts its groups. */
  isCounting(report: RoundReport): boolean
  /** Where no fault remains. */
  readonly allWell: string
}

/** A node with the round that it is at. */
export interface Followed {
  answer: NodeAnswer
  /** As it was at the beginning; absent: the node has begun nothing. */
  readonly before?: RoundReport
  round: number
  repeats: number
  /** A node counted its groups during the round, and there is time to wait for that. */
  isTooEarly: boolean
  endedMs?: number
  heardMs: number
}

const pollMs = 250
/** For this long the command waits for what a round has found to be mended. */
const settleMs = 10_000
/** The command gives a node up that answers nothing for this long. */
const silenceMs = 10_000
/** For rounds that came to no end although no node counts its groups. */
const repeatsMax = 3
const repeatMs = 1_000

export function followedRounds(begun: readonly NodeAnswer[]): readonly Followed[] {
  const heardMs = performance.now()
  return begun.map((answer) => ({
    answer,
    ...(answer.report !== undefined && { before: answer.report }),
    ...{ round: answer.report?.round ?? 0, repeats: 0, isTooEarly: false, heardMs },
  }))
}

/** Some node counts its groups, as far as the nodes have told. */
export function areCounting(kind: RoundKind, nodes: readonly Followed[]): boolean {
  return nodes.some(({ answer: { report } }) => report !== undefined && kind.isCounting(report))
}

/**
 * Resolves when each node has ended its round, or has given no answer for ten seconds. `countMs`: for how long from now on
 * it waits for nodes that count their groups.
 */
export async function followRounds(
  kind: RoundKind,
  asks: Pick<RoundAsks, 'all'>,
  nodes: readonly Followed[],
  countMs: number,
): Promise<void> {
  const line = progressLine()
  const untilMs = performance.now() + countMs
  for (;;) {
    const left = nodes.filter((node) => isLeft(kind, node))
    if (left.length === 0) break
    await delay(pollMs)
    const asked = left.map(({ answer }) => answer)
    const answers = await asks.all('GET', `/${kind.verb}`, asked)
    for (const [at, answer] of answers.entries()) {
      const node = left[at]
      if (node !== undefined) hear(node, answer)
    }
    const counts = areCounting(kind, nodes)
    if (counts) for (const node of left) node.isTooEarly = performance.now() < untilMs
    else await repeatAll(kind, asks, nodes, left)
    line.show(nodes.map((node) => describe(kind, node, nodes.length)).join('; '))
  }
  line.end()
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function describe(kind: RoundKind, { answer, before }: Followed, nodes: number): string {
  const { id, report } = answer
  if (report === undefined || before === undefined) return `${id}: no answer`
  return `${id}: ${kind.progress(report, before, nodes)}`
}

function isLeft(kind: RoundKind, node: Followed): boolean {
  const { answer, before, endedMs, isTooEarly } = node
  const { report } = answer
  if (report === undefined || before === undefined) return false
  if (endedMs === undefined) return true
  if (isTooEarly && kind.isToBeRepeated(report)) return true
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

/** No node counts its groups now. Begins rounds once more that came to no end. */
async function repeatAll(
  kind: RoundKind,
  asks: Pick<RoundAsks, 'all'>,
  nodes: readonly Followed[],
  left: readonly Followed[],
): Promise<void> {
  // With a node that is down no round comes to an end.
  const areAllHere = nodes.every(({ answer }) => answer.report !== undefined)
  for (const node of left) {
    const { answer, endedMs, isTooEarly } = node
    if (endedMs === undefined || answer.report === undefined) continue
    if (!kind.isToBeRepeated(answer.report)) continue
    node.isTooEarly = false
    if (!isTooEarly) {
      if (!areAllHere || node.repeats >= repeatsMax) continue
      node.repeats += 1
      await delay(repeatMs)
    }
    await beginAgain(kind, asks, node)
  }
}

async function beginAgain(
  kind: RoundKind,
  asks: Pick<RoundAsks, 'all'>,
  node: Followed,
): Promise<void> {
  const [begun] = await asks.all('POST', `/${kind.verb}`, [node.answer])
  if (begun?.report?.round === undefined) return
  node.round = begun.report.round
  delete node.endedMs
}
