/** A node with a supervisor, which starts it again when it ends by itself; and the lines of its log. */
import { createInterface } from 'node:readline'
import { hasEnded, startNode, stopProcess, type NodePlace, type NodeProcess } from '../processes.ts'

/** A line of the node's log. */
export interface Said {
  readonly atMs: number
  readonly text: string
}

const restartMs = 500
/** The supervisor gives a node up that ends this many times in a row before it is ready. */
const endsMax = 3

export class SupervisedNode {
  readonly place: NodePlace
  readonly said: Said[] = []
  /** Times that it ended by itself. */
  ends = 0
  #endsInARow = 0
  #isWanted = false
  #timer: NodeJS.Timeout | undefined
  #process: NodeProcess | undefined

  constructor(place: NodePlace) {
    this.place = place
  }

  get isGivenUp(): boolean {
    return this.#endsInARow >= endsMax
  }

  get isRunning(): boolean {
    return this.#process !== undefined && !hasEnded(this.#process.child)
  }

  start(): void {
    this.#isWanted = true
    this.#endsInARow = 0
    this.#spawn()
  }

  #spawn(): void {
    const node = startNode(this.place, { log: 'pipe' })
    this.#process = node
    const { child } = node
    if (child.stderr !== null) {
      createInterface({ input: child.stderr }).on('line', (line) => {
        this.said.push({ atMs: performance.now(), text: readText(line) })
      })
    }
    child.once('exit', () => {
      if (this.#process !== node || !this.#isWanted) return
      this.ends += 1
      this.#endsInARow += 1
      if (!this.isGivenUp) this.#timer = setTimeout(() => this.#spawn(), restartMs)
    })
  }

  /** It has been seen to be ready. */
  onReady(): void {
    this.#endsInARow = 0
  }

  /** Resolves when it has ended, and does not come back by itself. */
  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    this.#isWanted = false
    clearTimeout(this.#timer)
    if (this.#process !== undefined) await stopProcess(this.#process.child, signal)
  }
}

/** The message of a line of the node's log; the line, where it is none. */
function readText(line: string): string {
  try {
    const found: unknown = JSON.parse(line)
    if (typeof found !== 'object' || found === null || !('msg' in found)) return line
    const what = 'what' in found ? ` (${String(found.what)})` : ''
    return `${String(found.msg)}${what}`
  } catch {
    return line
  }
}
