/**
 * `bench replacement`: one of three nodes of many entity groups is killed and loses its folder, and an empty store takes
 * its place, while others write at a steady pace. How long until the dead store does not count any more and until there
 * are three copies, and what the writers notice.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { present } from '../../src/base/assert.ts'
import { BenchError, machine, openClient, type Machine } from '../common.ts'
import { readStatus } from '../lifetime/node-look.ts'
import {
  cliPath,
  pause,
  placeNodes,
  startNode,
  stopProcess,
  waitDrained,
  waitReady,
  type NodePlace,
  type NodeProcess,
} from '../processes.ts'
import { Accounts, type Filling } from '../scale/accounts.ts'
import { Writers, type Stretch } from './writers.ts'

export interface ReplacementOptions {
  readonly groups: number
  /** Characters of the row in each group; a multiple of 4. */
  readonly chars: number
  readonly writers: number
  /** Milliseconds from one write of a writer to its next one. */
  readonly pace: number
  /** Seconds of load before. */
  readonly before: number
}

export interface ReplacementReport {
  readonly bench: 'replacement'
  readonly machine: Machine
  readonly options: ReplacementOptions
  readonly fill: Filling
  /** The writers while all three nodes are there. */
  readonly before: Stretch
  /** From the kill until the command is given. */
  readonly killed: Stretch
  /** From the start of the empty store until it has what the others have. */
  readonly copying: Stretch
  /** From then until the change is done. */
  readonly sealing: Stretch
  /** While all three nodes are there again. */
  readonly after: Stretch
  /** Of the copy alone. */
  readonly copySeconds: number
  /** From the kill until the dead store has no vote. */
  readonly notCountedSeconds: number
  /** From the kill until the new store votes, and one more node may fail. */
  readonly threeCopiesSeconds: number
  /** Groups that the new store lacks in the end. */
  readonly lacking: number
  /** Codes of errors, and how often writers met each. */
  readonly failures: Readonly<Record<string, number>>
}

const pollMs = 50
const waitMs = 30 * 60_000
/** Writers notice the kill itself meanwhile: leases of the dead node run out. */
const killedMs = 10_000

interface MembersTold {
  readonly canLose: number
  readonly change?: { readonly phase: string; readonly seat?: number }
  readonly members: readonly { readonly node: string; readonly standing: string }[]
}

export async function benchReplacement(
  options: ReplacementOptions,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<ReplacementReport> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-bench-'))
  const running: NodeProcess[] = []
  const start = (place: NodePlace, environment = {}): NodeProcess => {
    const node = startNode(place, { environment })
    running.push(node)
    return node
  }
  try {
    const places = await placeNodes(folder, 3)
    for (const node of places.map((place) => start(place))) await waitReady(node, { signal })
    const [first, , lost] = places
    const [asked, dead] = [present(first, 'bench: node 1'), present(lost, 'bench: node 3')]
    const client = await openClient(
      places.map(({ url }) => url),
      signal,
    )
    const accounts = await Accounts.open(client, options.chars)
    const fill = await accounts.fill(options.groups, signal, say)
    await waitDrained({ nodes: running })
    const writers = new Writers(accounts, options.writers, options.pace)
    try {
      const node = present(running[2], 'bench: node 3')
      const course = new Course({ asked, dead, folder, start, signal, say })
      const times = await course.run(node, options)
      const [fromMs, killMs, copyMs, copiedMs, doneMs, endMs] = times
      const stretch = (from: number, to: number): Stretch => writers.stretch(from, to)
      return {
        ...{ bench: 'replacement', machine: machine(), options, fill },
        before: stretch(fromMs, killMs),
        killed: stretch(killMs, Math.min(copyMs, killMs + killedMs)),
        ...{ copying: stretch(copyMs, copiedMs), sealing: stretch(copiedMs, doneMs) },
        after: stretch(doneMs, endMs),
        copySeconds: (copiedMs - copyMs) / 1_000,
        notCountedSeconds: (course.notCountedMs - killMs) / 1_000,
        threeCopiesSeconds: (doneMs - killMs) / 1_000,
        lacking: (await readStatus(dead)).lackingGroups ?? Number.NaN,
        failures: writers.failures,
      }
    } finally {
      await writers.stop()
      await client.close()
    }
  } finally {
    await Promise.all(running.map(({ child }) => stopProcess(child, 'SIGKILL')))
    await rm(folder, { recursive: true, force: true })
  }
}

interface CourseParts {
  /** The node that the operator asks. */
  readonly asked: NodePlace
  readonly dead: NodePlace
  readonly folder: string
  readonly start: (place: NodePlace, environment?: Readonly<Record<string, string>>) => NodeProcess
  readonly signal: AbortSignal
  readonly say: (text: string) => void
}

/** The steps of an operator, and the moments at which they have come about. */
class Course {
  readonly #parts: CourseParts
  /** The dead store has no vote from then on. */
  notCountedMs = Number.NaN
  #killMs = Number.NaN
  #seen = ''

  constructor(parts: CourseParts) {
    this.#parts = parts
  }

  /** The load begins; the kill; the empty store starts; it has what the others have; the change is done; the end. */
  async run(
    node: NodeProcess,
    { before }: ReplacementOptions,
  ): Promise<readonly [number, number, number, number, number, number]> {
    const { dead, folder, start, signal, say } = this.#parts
    await pause(before * 200)
    const fromMs = performance.now()
    await pause(before * 1_000)
    const killMs = performance.now()
    this.#killMs = killMs
    await stopProcess(node.child, 'SIGKILL')
    await rm(join(folder, dead.id), { recursive: true, force: true })
    say(`${dead.id} is killed, and its folder is gone`)
    const seat = await this.#replace(dead.id)
    const copyMs = performance.now()
    await waitReady(start(dead, { TRILITHON_SEAT: seat }), { waitMs, signal })
    await this.#until(({ change }) => change?.phase !== 'copying')
    const copiedMs = performance.now()
    say(`copied in ${((copiedMs - copyMs) / 1_000).toFixed(1)} s`)
    await this.#until(({ change }) => change?.phase !== 'sealing')
    this.notCountedMs = performance.now()
    await this.#until(({ change, canLose }) => change?.phase === 'done' && canLose === 1)
    const doneMs = performance.now()
    await pause(before * 1_000)
    return [fromMs, killMs, copyMs, copiedMs, doneMs, performance.now()]
  }

  /** The command refuses while the node counts as alive. Gives the seat. */
  async #replace(node: string): Promise<string> {
    const { asked, signal } = this.#parts
    const words = [cliPath, 'nodes', 'replace', node, '--url', asked.url]
    let last = ''
    for (let tries = 0; tries < 100; tries += 1) {
      signal.throwIfAborted()
      const said = await promisify(execFile)(process.execPath, words, { signal }).catch(
        (error: unknown) => ({ stdout: '', stderr: String(error) }),
      )
      const seat = /--seat (\d+)/.exec(said.stdout)?.[1]
      if (seat !== undefined) return seat
      last = said.stderr
      await pause(pollMs)
    }
    throw new BenchError(`nodes replace was refused: ${last}`)
  }

  /** Each step of the change, as the node sees it that answers the operator. */
  #say({ canLose, change, members }: MembersTold): void {
    const standings = members.map(({ node, standing }) => `${node} ${standing}`)
    const seen = `${change?.phase ?? 'no change'}, can lose ${canLose}: ${standings.join(', ')}`
    if (seen === this.#seen) return
    this.#seen = seen
    const seconds = (performance.now() - this.#killMs) / 1_000
    this.#parts.say(`${seconds.toFixed(1)} s: ${seen}`)
  }

  async #until(isSo: (told: MembersTold) => boolean): Promise<void> {
    const { asked, signal } = this.#parts
    const end = performance.now() + waitMs
    while (performance.now() < end) {
      signal.throwIfAborted()
      const text = await (await fetch(`${asked.url}/members`, { signal })).text()
      const told: MembersTold = JSON.parse(text)
      this.#say(told)
      if (isSo(told)) return
      await pause(pollMs)
    }
    throw new BenchError(`the change was not done within ${waitMs / 60_000} minutes`)
  }
}

export function describeReplacement(report: ReplacementReport): string {
  const { options, fill } = report
  const line = (name: string, stretch: Stretch): string => {
    const { seconds, commits, p50Ms, p99Ms, medianGapMs, longestGapMs, failures } = stretch
    const rate = (commits / seconds).toFixed(0)
    return `${name.padEnd(8)} ${seconds.toFixed(1)} s, ${rate} commits a second, median ${p50Ms.toFixed(1)} ms, 99 % ${p99Ms.toFixed(1)} ms; longest time without a write of a group: median ${medianGapMs.toFixed(0)} ms, most ${longestGapMs.toFixed(0)} ms; ${failures} failures`
  }
  const names = ['before', 'killed', 'copying', 'sealing', 'after'] as const
  return [
    `${options.groups} groups of ${options.chars} characters, filled in ${fill.seconds.toFixed(0)} s; ${options.writers} writers, one write each ${options.pace} ms`,
    ...names.map((name) => line(name, report[name])),
    `copied in ${report.copySeconds.toFixed(1)} s; the dead store does not count ${report.notCountedSeconds.toFixed(1)} s after the kill, and there are three copies after ${report.threeCopiesSeconds.toFixed(1)} s; the new store lacks ${report.lacking} groups`,
    '',
  ].join('\n')
}
