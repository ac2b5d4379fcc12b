/** One size of `bench scale`: a data folder, and its node, whose process comes and goes. */
import {
  cpuSeconds,
  readMemory,
  pause,
  startNode,
  stopProcess,
  waitDrained,
  waitReady,
  type Memory,
  type NodePlace,
  type NodeProcess,
} from '../processes.ts'

/** The cost of a start, from no process to one that is ready. */
export interface Start {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly memory: Memory
}

/** A start that takes longer is none. */
const startWaitMs = 15 * 60_000
/** Answers of a node that starts cost it something: not asked too often. */
const startPollMs = 20
/** A process that used less CPU than this in `quietMs` has nothing left to do. */
const quietCpuSeconds = 0.02
const quietMs = 200
const quietWaitMs = 20_000

/** How much a site is filled with. */
export interface Size {
  readonly groups: number
  readonly rowsPerGroup: number
}

export class Site {
  readonly size: Size
  readonly #place: NodePlace
  #node: NodeProcess | undefined

  constructor(size: Size, place: NodePlace) {
    this.size = size
    this.#place = place
  }

  get groups(): number {
    return this.size.groups
  }

  get url(): string {
    return this.#place.url
  }

  /** Resolves when the node is ready. */
  async start(signal: AbortSignal): Promise<Start> {
    const began = performance.now()
    const node = startNode(this.#place)
    this.#node = node
    await waitReady(node, { waitMs: startWaitMs, pollMs: startPollMs, signal })
    const seconds = (performance.now() - began) / 1000
    return { seconds, cpuSeconds: await this.cpu(), memory: await this.memory() }
  }

  /** In order, or at once: as `kill -9` would. */
  async stop(how: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#node !== undefined) await stopProcess(this.#node.child, how)
    this.#node = undefined
  }

  /** User and system seconds of the process so far. */
  cpu(): Promise<number> {
    return cpuSeconds(this.#pid)
  }

  memory(): Promise<Memory> {
    return readMemory(this.#pid)
  }

  /**
   * Resolves when everything that was committed is where it stays and the process is quiet, so that
   * what a load left to be done is paid by it. Gives the seconds until the former.
   */
  async settled(): Promise<number> {
    const began = performance.now()
    await waitDrained({ nodes: this.#node === undefined ? [] : [this.#node] })
    const drainSeconds = (performance.now() - began) / 1000
    const end = performance.now() + quietWaitMs
    for (let used = await this.cpu(); performance.now() < end;) {
      await pause(quietMs)
      const now = await this.cpu()
      if (now - used <= quietCpuSeconds) break
      used = now
    }
    return drainSeconds
  }

  get #pid(): number {
    return this.#node?.child.pid ?? 0
  }
}
