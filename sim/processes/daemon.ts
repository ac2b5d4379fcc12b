/**
 * The command line as a process of its own, a node for instance: started, killed, stopped for a
 * while, and started again on the folder it has. Only ever signals the child it started; none
 * outlives the process that started it, unless that one is killed so that it can do nothing more.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'

const readyPollMs = 50
const stopWaitMs = 20_000
/** The characters of a process's output that are kept, for when it ends by itself. */
const saidCharsMax = 4_000

/** Those that run now. */
const children = new Set<ChildProcess>()

function killAll(): void {
  for (const child of children) child.kill('SIGKILL')
}

export interface DaemonPlace {
  readonly id: string
  /** Where it tells whether it is ready; absent: it is so at once. */
  readonly url?: string
  /** The built command line, and its arguments. */
  readonly program: string
  readonly command: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Called with each line that it writes to stderr. */
  readonly onLine?: (line: string) => void
}

export class Daemon {
  readonly place: DaemonPlace
  #child: ChildProcess | undefined
  #said = ''
  /** The reason why it ended without a kill. */
  #failure: string | undefined
  #isClosed = false
  #isHeld = false
  /** Beside what its place says. */
  #environment: Readonly<Record<string, string>> = {}

  constructor(place: DaemonPlace) {
    this.place = place
  }

  get id(): string {
    return this.place.id
  }

  get failure(): string | undefined {
    return this.#failure
  }

  get isUp(): boolean {
    return this.#child !== undefined
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  start(): void {
    if (this.#child !== undefined || this.#isClosed || this.#isHeld) return
    const { program, command, environment } = this.place
    const child = spawn(process.execPath, [program, ...command], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        NODE_OPTIONS: process.env['NODE_OPTIONS'],
        NO_COLOR: '1',
        TRILITHON_LOG_LEVEL: 'warn',
        ...environment,
        ...this.#environment,
      },
    })
    this.#child = child
    if (children.size === 0) process.once('exit', killAll)
    children.add(child)
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.#said = `${this.#said}${line}\n`.slice(-saidCharsMax)
      this.place.onLine?.(line)
    })
    child.once('exit', (code) => {
      children.delete(child)
      if (children.size === 0) process.off('exit', killAll)
      if (this.#child !== child) return
      this.#child = undefined
      this.#failure ??= `${this.id} ended by itself with ${code ?? 'a signal'}: ${this.#said}`
    })
  }

  /** Kills it as a loss of power would, but for what the operating system still writes. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Until it is released, a start does nothing. */
  hold(): void {
    this.#isHeld = true
  }

  /** `environment`: of all its starts from now on. */
  release(environment: Readonly<Record<string, string>>): void {
    this.#isHeld = false
    this.#environment = environment
  }

  /** Kills it for good: later restarts do nothing. */
  close(): Promise<void> {
    this.#isClosed = true
    return this.kill()
  }

  /** Asks it to end; kills it when that takes too long. */
  async stop(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const timer = setTimeout(() => child.kill('SIGKILL'), stopWaitMs)
    await this.#end('SIGTERM')
    clearTimeout(timer)
  }

  pause(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  async ready(timeoutMs: number): Promise<boolean> {
    const { url } = this.place
    if (url === undefined) return this.isUp
    const end = performance.now() + timeoutMs
    while (performance.now() < end && this.isUp) {
      if (await isReady(url)) return true
      await new Promise((resolve) => setTimeout(resolve, readyPollMs))
    }
    return false
  }

  #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return Promise.resolve()
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
    child.kill(signal)
    // One that was stopped acts on nothing but this.
    child.kill('SIGCONT')
    return ended
  }
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2_000) })).ok
  } catch {
    // The port has no listener yet.
    return false
  }
}
