/**
 * `bench rebalance`: two replica sets of one node each under load, and a third one that comes later. It gets a third of the
 * buckets, with their groups. The throughput before, meanwhile and afterwards, and how long it took.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { present } from '../../src/base/assert.ts'
import { freePorts } from '../../sim/processes/free-ports.ts'
import { machine, openClient, type Machine } from '../common.ts'
import { runLoops, type LoadResult } from '../load.ts'
import {
  cliPath,
  pause,
  startNode,
  stopProcess,
  waitReady,
  type NodePlace,
  type NodeProcess,
} from '../processes.ts'
import { Accounts } from '../scale/accounts.ts'

export interface RebalanceOptions {
  readonly groups: number
  readonly clients: number
  /** Seconds of load before, and after. */
  readonly seconds: number
}

export interface RebalanceReport {
  readonly bench: 'rebalance'
  readonly machine: Machine
  readonly options: RebalanceOptions
  readonly before: LoadResult
  readonly meanwhile: LoadResult
  readonly after: LoadResult
  /** From the command until the last bucket has moved. */
  readonly moveSeconds: number
  /** The words of the command. */
  readonly moved: readonly string[]
  /** Buckets of each set in the end, as `trilithon sets list` tells them. */
  readonly shares: readonly string[]
}

const pollMs = 100
const waitMs = 60_000
/** Longer than any move. */
const endlessSeconds = 3_600

const founding = ['one', 'two'] as const
const later = 'three'

export async function benchRebalance(
  options: RebalanceOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<RebalanceReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const running: NodeProcess[] = []
  const start = (place: NodePlace): NodeProcess => {
    const node = startNode(place)
    running.push(node)
    return node
  }
  try {
    const places = await placeSets(folder)
    const [one, two, three] = places
    const [a, b] = [present(one, 'bench: set one'), present(two, 'bench: set two')]
    const c = present(three, 'bench: set three')
    for (const node of [a, b].map(start)) await waitReady(node, { signal })
    const client = await openClient([a.url, b.url], signal)
    try {
      const accounts = await Accounts.open(client)
      await accounts.fill(options.groups, signal, say)
      const put = (): Promise<void> =>
        accounts.put(Math.floor(Math.random() * options.groups), 0, 1)
      say('load before')
      const before = await runLoops(options.clients, options.seconds, put, signal)
      const node = start(c)
      await command(a, ['upgrade', 'finalize'], signal)
      await untilWaits(c, signal)
      await command(a, ['sets', 'add', later, '--nodes', `${c.id}=${c.url}`, '--wait'], signal)
      await waitReady(node, { waitMs, signal })
      say('buckets move')
      const moving = new AbortController()
      const load = runLoops(
        options.clients,
        endlessSeconds,
        put,
        AbortSignal.any([signal, moving.signal]),
      )
      const began = performance.now()
      const moved = await command(a, ['sets', 'rebalance', '--wait'], signal)
      const moveSeconds = (performance.now() - began) / 1_000
      moving.abort()
      const meanwhile = await load
      say('load after')
      const after = await runLoops(options.clients, options.seconds, put, signal)
      const shares = await command(a, ['sets', 'list'], signal)
      const figures = { before, meanwhile, after, moveSeconds, moved, shares }
      return { bench: 'rebalance', machine: machine(), options, ...figures }
    } finally {
      await client.close()
    }
  } finally {
    await Promise.all(running.map(({ child }) => stopProcess(child, 'SIGKILL')))
    await rm(folder, { recursive: true, force: true })
  }
}

/** Configurations of a node of each set; the founding ones do not know of the third. */
async function placeSets(folder: string): Promise<readonly NodePlace[]> {
  const sets = [...founding, later]
  const ports = await freePorts(sets.length)
  const places = sets.map((set, at) => ({
    ...{ id: `n${at + 1}`, url: `http://127.0.0.1:${ports[at] ?? 0}`, set },
    config: join(folder, `n${at + 1}.yaml`),
  }))
  for (const { id, url, set, config } of places) {
    const known = places.filter((one) => one.set !== later || set === later)
    const nodes = known.map((one) => ({
      ...{ id: one.id, url: one.url, set: one.set },
      ...(one.set === later && { joins: true }),
    }))
    const head = `cluster: bench\nnode: ${id}\nlisten: ${new URL(url).host}\ndata: ${join(folder, id)}\n`
    await writeFile(config, `${head}nodes: ${JSON.stringify(nodes)}\n`)
  }
  return places
}

/** The lines that it prints. */
async function command(
  { url }: NodePlace,
  words: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [cliPath, ...words, '--url', url],
    { signal },
  )
  return stdout.trim().split('\n')
}

/** The node runs, and waits for its set. */
async function untilWaits({ id, url }: NodePlace, signal: AbortSignal): Promise<void> {
  const end = performance.now() + waitMs
  while (performance.now() < end) {
    signal.throwIfAborted()
    const text = await fetch(`${url}/status`)
      .then((answer) => answer.text())
      .catch(() => '')
    if (text.includes('has no replica set')) return
    await pause(pollMs)
  }
  throw new Error(`${id} did not wait for its set within ${waitMs} ms`)
}

export function describeRebalance(report: RebalanceReport): string {
  const { options, moveSeconds, moved, shares } = report
  const line = (name: string, load: LoadResult): string => {
    const perSecond = (load.operations / (load.elapsedMs / 1_000)).toFixed(0)
    return `${name.padEnd(9)} ${perSecond} commits a second, median ${load.p50Ms.toFixed(1)} ms, 99 % ${load.p99Ms.toFixed(1)} ms, most ${load.maxMs.toFixed(0)} ms; ${load.failures} failures`
  }
  return [
    `${options.groups} groups, ${options.clients} clients`,
    ...(['before', 'meanwhile', 'after'] as const).map((name) => line(name, report[name])),
    `moved in ${moveSeconds.toFixed(1)} s`,
    ...moved,
    ...shares,
    '',
  ].join('\n')
}
