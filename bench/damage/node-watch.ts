/** Follows one hurt node until it has found the damage and lacks nothing any more, or until that takes too long. */
import { readSigns, type Signs } from './node-signs.ts'
import type { SupervisedNode } from './supervised-node.ts'

/**
 * `healed`: it is as before. `told`: it goes on, with damage in `log/` that an operator has to look after. `refused`: it
 * does not vote with its log any more.
 */
export type Outcome = 'healed' | 'told' | 'refused' | 'found, not healed' | 'not found'

/** One hurt node, in seconds since it was started with the damage, or since the damage came while it ran. */
export interface Course {
  readonly node: string
  /** The damage in words. */
  readonly hurt: string
  readonly outcome: Outcome
  /** Absent: it ran all the while. */
  readonly readySeconds?: number
  readonly foundSeconds?: number
  readonly healedSeconds?: number
  /** Times that it ended by itself, and was started again. */
  readonly ends: number
  /** Times that it made its data store anew. */
  readonly rebuilds: number
  /** Groups that were put aside, and those of them that others have mended. */
  readonly aside: number
  readonly mended: number
  /** Wrong groups that a comparison with another node found, and those that a count found. */
  readonly differences: number
  readonly miscounts: number
  readonly logDamages: number
  /** Its own words, each once. */
  readonly said: readonly string[]
}

/** Before the first digest a node knows of nothing that it lacks. */
const wholeMs = 3_000
const saidMax = 8
const ofDamage = /damag|corrupt|will not vote|different rows/i
const ofRefusal = /will not vote with this store any more/

export class NodeWatch {
  readonly node: SupervisedNode
  readonly #hurt: string
  readonly #fromMs: number
  readonly #firstSaid: number
  readonly #endsBefore: number
  readonly #before: Signs | undefined
  #readyMs: number | undefined
  #wholeMs: number | undefined
  #foundMs: number | undefined
  #isHealed = false
  #rebuilds = 0
  #wasRebuilt = false
  readonly #most = { aside: 0, mended: 0, differences: 0, miscounts: 0, logDamages: 0 }

  /** From now on. `before`: the signs of a node that runs; absent: it is about to be started. */
  constructor(node: SupervisedNode, hurt: string, before?: Signs) {
    this.node = node
    this.#hurt = hurt
    this.#fromMs = performance.now()
    this.#firstSaid = node.said.length
    this.#endsBefore = node.ends
    this.#before = before
    this.#wasRebuilt = before?.isRebuilt === true
  }

  get isReady(): boolean {
    return this.#readyMs !== undefined
  }

  get foundMs(): number | undefined {
    return this.#foundMs
  }

  get isOver(): boolean {
    return this.#isHealed || this.#isRefused
  }

  get #isRefused(): boolean {
    return this.node.isGivenUp || this.#saidAtMs(ofRefusal) !== undefined
  }

  #saidAtMs(what: RegExp): number | undefined {
    return this.node.said.slice(this.#firstSaid).find(({ text }) => what.test(text))?.atMs
  }

  async look(): Promise<void> {
    const signs = this.node.isRunning ? await readSigns(this.node.place) : undefined
    const nowMs = performance.now()
    this.#foundMs ??= this.#saidAtMs(ofDamage)
    if (this.node.ends > this.#endsBefore) this.#foundMs ??= nowMs
    if (signs?.isReady === true) {
      this.node.onReady()
      this.#readyMs ??= nowMs
    }
    this.#count(signs)
    this.#wholeMs = isWhole(signs) ? (this.#wholeMs ?? nowMs) : undefined
    const wholeSinceMs = this.#healedMs
    this.#isHealed = wholeSinceMs !== undefined && nowMs - wholeSinceMs >= wholeMs
  }

  /** Since when it has lacked nothing, with the damage found. */
  get #healedMs(): number | undefined {
    if (this.#foundMs === undefined || this.#wholeMs === undefined) return undefined
    return Math.max(this.#foundMs, this.#wholeMs)
  }

  #count(signs: Signs | undefined): void {
    // Its process has ended, or is another one: what it counts begins anew.
    const before = this.node.ends > this.#endsBefore ? undefined : this.#before
    if (signs === undefined) {
      this.#wasRebuilt = false
      return
    }
    for (const name of ['mended', 'differences', 'miscounts', 'logDamages'] as const) {
      this.#most[name] = Math.max(this.#most[name], signs[name] - (before?.[name] ?? 0))
    }
    const aside = signs.aside + signs.mended - (before?.mended ?? 0)
    this.#most.aside = Math.max(this.#most.aside, aside)
    if (signs.isRebuilt && !this.#wasRebuilt) this.#rebuilds += 1
    this.#wasRebuilt = signs.isRebuilt
  }

  get course(): Course {
    const seconds = (atMs: number | undefined): number | undefined =>
      atMs === undefined ? undefined : (atMs - this.#fromMs) / 1_000
    const found = seconds(this.#foundMs ?? this.#saidAtMs(ofDamage))
    const ready = seconds(this.#readyMs)
    const healed = this.#isHealed ? seconds(this.#healedMs) : undefined
    const texts = this.node.said.slice(this.#firstSaid).map(({ text }) => text)
    return {
      ...{ node: this.node.place.id, hurt: this.#hurt, outcome: this.#outcome },
      ...(ready !== undefined && this.#before === undefined && { readySeconds: ready }),
      ...(found !== undefined && { foundSeconds: found }),
      ...(healed !== undefined && { healedSeconds: healed }),
      ...{ ends: this.node.ends - this.#endsBefore, rebuilds: this.#rebuilds, ...this.#most },
      said: [...new Set(texts)].slice(0, saidMax),
    }
  }

  get #outcome(): Outcome {
    if (this.#isRefused) return 'refused'
    if (this.#isHealed) return this.#most.logDamages > 0 ? 'told' : 'healed'
    return this.#foundMs === undefined ? 'not found' : 'found, not healed'
  }
}

/** The node serves everything, and lacks nothing as far as it knows. */
function isWhole(signs: Signs | undefined): boolean {
  return signs?.isReady === true && signs.lacking + signs.aside === 0 && !signs.isRestoring
}
