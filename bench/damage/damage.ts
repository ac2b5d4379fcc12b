/**
 * `bench damage`: damages files and rows of nodes under load, one kind after the other. Only a supervisor acts, which starts
 * a node again that has ended. The report says how long the nodes took to find and to heal the damage, and which wrong
 * values they showed meanwhile.
 */
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { present } from '../../src/base/assert.ts'
import { machine, type Machine } from '../common.ts'
import { pause } from '../processes.ts'
import type { KeptRow, Stretch, Wrong } from './checked-load.ts'
import { cutOff, flipBit, hasTables, pickFile } from './files.ts'
import { HurtCluster, pollMs, restart, type ClusterOptions } from './hurt-cluster.ts'
import { readSigns } from './node-signs.ts'
import { NodeWatch, type Course } from './node-watch.ts'
import { groupOf, plantWrongRow, type Planted } from './wrong-rows.ts'

export const stepNames = [
  'data-bit',
  'data-cut',
  'data-live',
  'rows',
  'log-live',
  'log-bit',
  'log-cut',
] as const

export type StepName = (typeof stepNames)[number]

export interface DamageOptions extends ClusterOptions {
  readonly steps: readonly StepName[]
  /** The place of the damage in a file: a part of the bytes written to it, from 0 and below 1. */
  readonly at: number
  /** Seconds of load before each step. */
  readonly before: number
  /** Seconds that a step may take. */
  readonly patience: number
}

export interface StepReport {
  readonly step: StepName
  readonly courses: readonly Course[]
  /** The load before the step, and from its beginning until all is healed. */
  readonly before: Stretch
  readonly meanwhile: Stretch
  /** Values that no node may show, and some of them in words. */
  readonly wrong: number
  readonly wrongTexts: readonly string[]
  /**
   * Reads before the damage was found that no checksum could stop: of a planted row, or of a row that a damaged key in
   * `data/` hides.
   */
  readonly shownBeforeFound: number
  /** Rows that were read at the hurt nodes in the end. */
  readonly readInTheEnd: number
}

export interface DamageReport {
  readonly bench: 'damage'
  readonly machine: Machine
  readonly options: DamageOptions
  readonly steps: readonly StepReport[]
}

interface FileDamage {
  readonly store: 'data' | 'log'
  readonly file: 'table' | 'journal'
  /** Gives the damage in words. */
  readonly hurt: (file: string, part: number) => Promise<string>
  /** The node runs meanwhile. */
  readonly isLive: boolean
}

const fileDamages: Readonly<Record<Exclude<StepName, 'rows'>, FileDamage>> = {
  'data-bit': { store: 'data', file: 'table', hurt: flipBit, isLive: false },
  'data-cut': { store: 'data', file: 'table', hurt: cutOff, isLive: false },
  'data-live': { store: 'data', file: 'table', hurt: flipBit, isLive: true },
  'log-live': { store: 'log', file: 'table', hurt: flipBit, isLive: true },
  'log-bit': { store: 'log', file: 'journal', hurt: flipBit, isLive: false },
  'log-cut': { store: 'log', file: 'journal', hurt: cutOff, isLive: false },
}

const wrongTextsMax = 10

export type DamageWatcher = (text: string) => void

export async function benchDamage(
  options: DamageOptions,
  signal: AbortSignal,
  onStep: (step: StepReport) => void,
): Promise<DamageReport> {
  const steps: StepReport[] = []
  let cluster: HurtCluster | undefined
  try {
    for (const name of options.steps) {
      cluster ??= await HurtCluster.start(options, signal)
      const step = await new Step(cluster, options, signal).run(name)
      steps.push(step)
      onStep(step)
      if (step.courses.every(({ outcome }) => outcome === 'healed')) continue
      // The rest is work for an operator: the next step has whole nodes.
      await cluster.close()
      cluster = undefined
    }
  } finally {
    await cluster?.close()
  }
  return { bench: 'damage', machine: machine(), options, steps }
}

/** A node showed a wrong value, or did not heal damage that nodes heal by themselves. */
export function hasFailed({ steps }: DamageReport): boolean {
  return steps.some(({ step, wrong, courses }) => {
    const isOfLog = step !== 'rows' && fileDamages[step].store === 'log'
    const allowed = isOfLog ? ['healed', 'told', 'refused'] : ['healed']
    return wrong > 0 || courses.some(({ outcome }) => !allowed.includes(outcome))
  })
}

class Step {
  readonly #cluster: HurtCluster
  readonly #options: DamageOptions
  readonly #signal: AbortSignal
  /** Rows that were made wrong, and the node of each. */
  readonly #planted = new Map<string, NodeWatch>()

  constructor(cluster: HurtCluster, options: DamageOptions, signal: AbortSignal) {
    this.#cluster = cluster
    this.#options = options
    this.#signal = signal
  }

  async run(step: StepName): Promise<StepReport> {
    const { load } = this.#cluster
    if (step === 'rows') await this.#makeTables('data')
    else if (fileDamages[step].file === 'table') await this.#makeTables(fileDamages[step].store)
    const beforeMs = performance.now()
    const wrongBefore = load.wrong.length
    await delay(this.#options.before * 1_000, undefined, { signal: this.#signal })
    const fromMs = performance.now()
    const watches = step === 'rows' ? await this.#plant() : [await this.#damage(fileDamages[step])]
    await this.#until(fromMs, () => watches.every(({ isOver }) => isOver), watches)
    const meanwhile = load.stretch(fromMs, performance.now())
    const courses = watches.map(({ course }) => course)
    const readInTheEnd = await this.#readBack(courses)
    const found = load.wrong.slice(wrongBefore)
    const isUnstoppable = this.#judgeBy(step, watches)
    const [wrong, unstopped] = [
      found.filter((one) => !isUnstoppable(one)),
      found.filter(isUnstoppable),
    ]
    return {
      ...{ step, courses, before: load.stretch(beforeMs, fromMs), meanwhile },
      wrong: wrong.length,
      wrongTexts: wrong.slice(0, wrongTextsMax).map(describeWrong),
      ...{ shownBeforeFound: unstopped.length, readInTheEnd },
    }
  }

  /**
   * A store whose rows are all in a journal yet gets tables by a restart. A running node never reads a journal again, and a
   * start takes a damaged one for one that a crash cut short. A log of segments has no tables.
   */
  async #makeTables(store: FileDamage['store']): Promise<void> {
    const node = this.#cluster.node(0)
    const isOfFiles = store === 'log' && this.#options.logStore === 'files'
    const folder = join(this.#cluster.folderOf(node), store)
    if (!isOfFiles && !(await hasTables(folder))) await restart(node, this.#signal)
  }

  async #damage({ store, file, hurt, isLive }: FileDamage): Promise<NodeWatch> {
    const node = this.#cluster.node(0)
    const signs = isLive ? await readSigns(node.place) : undefined
    if (!isLive) await node.stop('SIGKILL')
    const path = await pickFile(join(this.#cluster.folderOf(node), store), file)
    const watch = new NodeWatch(
      node,
      `${store}/${basename(path)}: ${await hurt(path, this.#options.at)}`,
      signs,
    )
    if (!isLive) node.start()
    return watch
  }

  /** A wrong row at each of two nodes, in groups of their own: one node after the other, since both make a majority. */
  async #plant(): Promise<readonly NodeWatch[]> {
    const [first, second] = this.#pickRows()
    this.#cluster.load.watch([first, second])
    const one = await this.#plantAt(0, first, 'row')
    await this.#until(performance.now(), () => one.isReady || one.isOver, [one])
    return [one, await this.#plantAt(1, second, 'record')]
  }

  #pickRows(): readonly [KeptRow, KeptRow] {
    const [first, ...rest] = this.#cluster.load.kept
    const one = present(first, 'bench: rows are kept')
    const other = rest.find((row) => groupOf(row) !== groupOf(one))
    return [one, present(other, 'bench: rows are kept in several groups')]
  }

  async #plantAt(nth: number, row: KeptRow, planted: Planted): Promise<NodeWatch> {
    const node = this.#cluster.node(nth)
    await node.stop('SIGKILL')
    await plantWrongRow(this.#cluster.folderOf(node), row, planted)
    const what =
      planted === 'row' ? 'the hash of its group is right' : 'so is the hash of its group'
    const watch = new NodeWatch(node, `the value of row ${row.rowKey} is wrong; ${what}`)
    this.#planted.set(row.rowKey, watch)
    node.start()
    return watch
  }

  /** Looks at these nodes until `isOver`, or until the step has taken too long. */
  async #until(
    fromMs: number,
    isOver: () => boolean,
    watches: readonly NodeWatch[],
  ): Promise<void> {
    const endMs = fromMs + this.#options.patience * 1_000
    while (performance.now() < endMs && !isOver()) {
      this.#signal.throwIfAborted()
      await Promise.all(watches.map((watch) => watch.look()))
      await pause(pollMs)
    }
  }

  async #readBack(courses: readonly Course[]): Promise<number> {
    let read = 0
    for (const [nth, { place }] of this.#cluster.nodes.entries()) {
      const course = courses.find(({ node }) => node === place.id)
      if (course?.outcome !== 'healed' && course?.outcome !== 'told') continue
      read += await this.#cluster.load.readAll(nth, place.id)
    }
    return read
  }

  /** Tells reads that no checksum could stop, and that began before the damage was found. */
  #judgeBy(step: StepName, watches: readonly NodeWatch[]): (wrong: Wrong) => boolean {
    const hides = step !== 'rows' && fileDamages[step].store === 'data'
    return ({ rowKey, kind, beganMs }) => {
      const hiding = hides && kind === 'hidden' ? watches[0] : undefined
      const watch = this.#planted.get(rowKey) ?? hiding
      return watch !== undefined && beganMs <= (watch.foundMs ?? Number.POSITIVE_INFINITY)
    }
  }
}

function describeWrong({ node, text }: Wrong): string {
  return `${node ?? 'any node'}: ${text}`
}
