/**
 * A stage for golden scripts: the core of three nodes, a network on which each message takes a
 * millisecond, and every line of what happens. Time passes from event to event, never by a clock.
 */
import type { NodeId } from '../../src/base/ids.ts'
import { renderLine, type Verb } from '../../sim/cluster/narrator.ts'
import { CoreCluster, type CoreNode, type InFlight } from './core-cluster.ts'
import { describeEffect, describeMessage, describeRecord, nameMessage } from './script-line.ts'

const latencyMs = 1
const eventsMax = 2_000
/** A group whose first leader is n1. */
const groupNumber = 7

export type Loss = (one: InFlight) => boolean

/** A write under its intent, and by its attempt. */
export type Write = Parameters<CoreCluster['submit']>[1] & {
  readonly session: string
  readonly sequence: number
  readonly attempt: number
}

export interface StageOptions {
  readonly hasLeases?: boolean
  /** When the story begins, in milliseconds. */
  readonly startMs?: number
}

export class Stage {
  readonly cluster: CoreCluster
  readonly #lines: string[] = []
  readonly #underWay: { readonly atMs: number; readonly one: InFlight }[] = []
  readonly #down = new Set<NodeId>()
  readonly #writes: string[] = []
  #isLost: Loss = () => false
  #isQuiet = false
  #reads = 0

  constructor({ startMs = 0, hasLeases = false }: StageOptions = {}) {
    this.cluster = new CoreCluster({
      hasLeases,
      ...(hasLeases ? {} : { limits: { leaseMs: 0 } }),
      number: groupNumber,
      observer: {
        sent: (one) => this.#sent(one),
        durable: (node, record) => this.#line(node, 'disk', describeRecord(record)),
        carriedOut: (node, effect) => {
          const words = describeEffect(effect, (request) => this.#writes[request - 1] ?? '?')
          if (words !== undefined) this.#line(node, 'does', words)
        },
        marked: (node, name) => this.#line(node, 'note', name),
      },
    })
    this.cluster.now = startMs
    if (this.node(1).node !== 'n1') throw new Error('n1 does not lead the first position')
  }

  get text(): string {
    return `${this.#lines.join('\n')}\n`
  }

  /** n1, n2 or n3. */
  node(number: 1 | 2 | 3): CoreNode {
    const node = this.cluster.nodes.find((one) => one.node === `n${number}`)
    if (node === undefined) throw new Error(`no node n${number}`)
    return node
  }

  /** A sentence of the story, before what it brings about. */
  tell(sentence: string): void {
    this.#lines.push('', `* ${sentence}`)
  }

  /** Runs work that is no part of the script. */
  quietly(work: () => void): void {
    this.#isQuiet = true
    work()
    this.#isQuiet = false
  }

  write(number: 1 | 2 | 3, write: Write): number {
    const { session, sequence, attempt } = write
    this.#writes.push(`${session}/${sequence}.${attempt}`)
    return this.cluster.submit(this.cluster.nodes.indexOf(this.node(number)), write)
  }

  read(number: 1 | 2 | 3): number {
    const node = this.node(number)
    const read = (this.#reads += 1)
    if (!node.read(read)) return read
    this.#line(node.node, 'does', `serves read ${read} at #${node.served.get(read)} by its lease`)
    return read
  }

  /** From now on these messages are lost as they are sent; those of a node that is down are too. */
  lose(isLost: Loss): void {
    this.#isLost = isLost
  }

  loseNothing(): void {
    this.#isLost = () => false
  }

  /** The node is gone: it sends nothing, and messages to it are lost. */
  stop(number: 1 | 2 | 3): void {
    this.#down.add(this.node(number).node)
  }

  restart(number: 1 | 2 | 3): void {
    const node = this.node(number)
    node.crash()
    this.#down.delete(node.node)
    this.#line(node.node, 'note', `starts as incarnation ${node.incarnation}`)
    node.wake()
  }

  /** The node takes the other for gone. */
  suspect(number: 1 | 2 | 3, other: 1 | 2 | 3): void {
    const node = this.node(number)
    const peer = this.node(other).node
    for (const _ of node.replica.suspect(peer, true)) node.step({ kind: 'suspect', peer })
  }

  /** Until no message is under way. */
  run(): void {
    for (let events = 0; this.#underWay.length > 0; events++) {
      if (events > eventsMax) throw new Error('messages never end')
      this.#next(Number.POSITIVE_INFINITY)
    }
  }

  /** Lets `ms` pass, with the events that fall into it. */
  pass(ms: number): void {
    const endMs = this.cluster.now + ms
    for (let events = 0; this.#next(endMs); events++) {
      if (events > eventsMax) throw new Error('nothing comes to an end')
    }
    this.cluster.now = endMs
  }

  /** Until it holds, with what happens meanwhile. */
  until(isSo: () => boolean, ms = 5_000): void {
    const endMs = this.cluster.now + ms
    while (!isSo()) if (!this.#next(endMs)) throw new Error(`not so within ${ms} ms`)
  }

  /** The next message or deadline up to then; false where there is none. */
  #next(endMs: number): boolean {
    const messageMs = this.#underWay[0]?.atMs ?? Number.POSITIVE_INFINITY
    const due = this.#firstDue()
    const dueMs = due?.wakes[0] ?? Number.POSITIVE_INFINITY
    if (Math.min(messageMs, dueMs) > endMs) return false
    if (messageMs <= dueMs) this.#deliver()
    else due?.wakeNext()
    return messageMs < Number.POSITIVE_INFINITY || due !== undefined
  }

  #firstDue(): CoreNode | undefined {
    let first: CoreNode | undefined
    for (const node of this.cluster.nodes) {
      if (this.#down.has(node.node)) continue
      node.wakes.sort((a, b) => a - b)
      const atMs = node.wakes[0]
      if (atMs !== undefined && atMs < (first?.wakes[0] ?? Number.POSITIVE_INFINITY)) first = node
    }
    return first
  }

  #deliver(): void {
    const next = this.#underWay.shift()
    if (next === undefined) return
    const { from, to, message } = next.one
    this.cluster.now = next.atMs
    if (this.#down.has(to)) return
    this.#line(to, 'gets', nameMessage(message), from)
    this.cluster.nodes.find(({ node }) => node === to)?.take(from, message)
  }

  #sent(one: InFlight): void {
    const { from, to, message } = one
    this.cluster.inFlight.length = 0
    const isLost = this.#isLost(one) || this.#down.has(to)
    const words = describeMessage(message)
    this.#line(from, 'sends', isLost ? `${words} (lost)` : words, to)
    if (!isLost) this.#underWay.push({ atMs: this.cluster.now + latencyMs, one })
  }

  #line(who: string, verb: Verb, kind: string, peer?: string): void {
    if (this.#isQuiet) return
    const timeMicros = Math.round(this.cluster.now * 1_000)
    const line = { timeMicros, who, verb, kind, fields: {} }
    this.#lines.push(renderLine(peer === undefined ? line : { ...line, peer }))
  }
}
