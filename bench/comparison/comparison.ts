/**
 * `bench comparison`: three nodes of many entity groups. How long all of them take to start after a `kill -9`, what memory
 * that needs, and how long a node takes to compare all its groups with each of the others: at once after the start, and
 * once more when it has counted its groups.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { machine, openClient, type Machine } from '../common.ts'
import { lookAt } from '../lifetime/node-look.ts'
import {
  cpuSeconds,
  pause,
  placeNodes,
  readMemory,
  startNode,
  stopProcess,
  waitDrained,
  waitReady,
  type Memory,
  type NodePlace,
  type NodeProcess,
} from '../processes.ts'
import { Accounts } from '../scale/accounts.ts'

export interface ComparisonOptions {
  readonly groups: number
}

/** A node after a `kill -9`, all of them started at once. */
export interface NodeStart {
  readonly node: string
  readonly seconds: number
  readonly cpuSeconds: number
  readonly memory: Memory
  readonly logBytes: number
  readonly dataBytes: number
}

/** A node has compared its groups with those of both others. */
export interface Compared {
  readonly node: string
  /** From the first question on: after a start both nodes count their groups first, and rounds before come to no end. */
  readonly seconds: number
  readonly cpuSeconds: number
  /** Rounds with a peer that came to their end. */
  readonly rounds: number
  /** Groups that were compared one by one. */
  readonly groups: number
  readonly differences: number
}

export interface ComparisonReport {
  readonly bench: 'comparison'
  readonly machine: Machine
  readonly options: ComparisonOptions
  readonly fill: { readonly seconds: number; readonly perSecond: number }
  readonly starts: readonly NodeStart[]
  /** The first round of each node after its start, one node after the other. */
  readonly first: readonly Compared[]
  readonly again: readonly Compared[]
}

interface CompareStatus {
  readonly ended: number
  readonly rounds: number
  readonly groups: number
  readonly differences: number
}

const waitMs = 15 * 60_000
/** Of each node. */
const peers = 2
const pollMs = 50

export async function benchComparison(
  options: ComparisonOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<ComparisonReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const running = new Map<string, NodeProcess>()
  const start = (place: NodePlace): NodeProcess => {
    const node = startNode(place)
    running.set(place.id, node)
    return node
  }
  const stop = (how: 'SIGTERM' | 'SIGKILL'): Promise<unknown> =>
    Promise.all([...running.values()].map(({ child }) => stopProcess(child, how)))
  try {
    const places = await placeNodes(folder, 3)
    for (const node of places.map(start)) await waitReady(node, { signal })
    const fill = await fillAll(places, options, signal, say)
    await waitDrained({ nodes: [...running.values()] })
    await stop('SIGKILL')
    say('killed; they start')
    const starts = await Promise.all(
      places.map((place) => startOne(place, start(place), join(folder, place.id), signal)),
    )
    const nodes = [...running.values()]
    const first = await compareAll(nodes, signal, say)
    const again = await compareAll(nodes, signal, say)
    return { bench: 'comparison', machine: machine(), options, fill, starts, first, again }
  } finally {
    await stop('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
}

async function fillAll(
  places: readonly NodePlace[],
  { groups }: ComparisonOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<ComparisonReport['fill']> {
  const client = await openClient(
    places.map(({ url }) => url),
    signal,
  )
  try {
    const accounts = await Accounts.open(client)
    return await accounts.fill(groups, signal, say)
  } finally {
    await client.close()
  }
}

async function startOne(
  place: NodePlace,
  node: NodeProcess,
  folder: string,
  signal: AbortSignal,
): Promise<NodeStart> {
  const began = performance.now()
  await waitReady(node, { waitMs, pollMs, signal })
  const seconds = (performance.now() - began) / 1_000
  const pid = node.child.pid ?? 0
  const [used, memory] = await Promise.all([cpuSeconds(pid), readMemory(pid)])
  const { logBytes, dataBytes } = await lookAt(place, folder, pid)
  return { node: place.id, seconds, cpuSeconds: used, memory, logBytes, dataBytes }
}

/** One node after the other. */
async function compareAll(
  nodes: readonly NodeProcess[],
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<readonly Compared[]> {
  const compared: Compared[] = []
  for (const node of nodes) {
    const one = await compareOne(node, signal)
    say(`${one.node} compared in ${one.seconds.toFixed(1)} s`)
    compared.push(one)
  }
  return compared
}

async function compareOne({ id, url, child }: NodeProcess, signal: AbortSignal): Promise<Compared> {
  const pid = child.pid ?? 0
  const [before, cpuBefore] = [await readStatus(url), await cpuSeconds(pid)]
  const began = performance.now()
  let after = before
  while (after.rounds < before.rounds + peers) {
    if (performance.now() - began > waitMs) throw new Error(`${id}: a comparison takes too long`)
    after = await oneRound(url, signal)
  }
  return {
    node: id,
    seconds: (performance.now() - began) / 1_000,
    cpuSeconds: (await cpuSeconds(pid)) - cpuBefore,
    rounds: after.rounds - before.rounds,
    groups: after.groups - before.groups,
    differences: after.differences - before.differences,
  }
}

/** Begins a round with each peer, or joins the one under way; gives the figures at its end. */
async function oneRound(url: string, signal: AbortSignal): Promise<CompareStatus> {
  const answer = await fetch(`${url}/compare`, { method: 'POST', signal })
  const begun: { readonly round: number } = JSON.parse(await answer.text())
  for (;;) {
    await pause(pollMs)
    signal.throwIfAborted()
    const status = await readStatus(url)
    if (status.ended >= begun.round) return status
  }
}

async function readStatus(url: string): Promise<CompareStatus> {
  const status: CompareStatus = JSON.parse(await (await fetch(`${url}/compare`)).text())
  return status
}

export function describeComparison({
  options,
  fill,
  starts,
  first,
  again,
}: ComparisonReport): string {
  const mib = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`
  const rounds = (name: string, all: readonly Compared[]): string[] =>
    all.map(
      ({ node, seconds, cpuSeconds: used, groups, differences }) =>
        `${name} ${node}: ${seconds.toFixed(1)} s, ${used.toFixed(1)} s of its processor, ${groups} groups one by one, ${differences} differences`,
    )
  return [
    `${options.groups} groups on three nodes, filled in ${fill.seconds.toFixed(0)} s`,
    ...starts.map(
      ({ node, seconds, memory, logBytes, dataBytes }) =>
        `start of ${node} after kill -9: ${seconds.toFixed(1)} s, ${mib(memory.own)} (peak ${mib(memory.peak)}); log/ ${mib(logBytes)}, data/ ${mib(dataBytes)}`,
    ),
    ...rounds('first comparison of', first),
    ...rounds('next comparison of', again),
    '',
  ].join('\n')
}
