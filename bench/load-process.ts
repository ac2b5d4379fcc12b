/** A client process of a bench, as `load-client.ts` is one: gives it loads, and reads its results. */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { LoadResult } from './load.ts'
import { cpuSeconds, endProcess } from './processes.ts'

export interface Load {
  readonly clients: number
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly operation: 'commits' | 'reads'
}

export interface Loaded extends LoadResult {
  /** CPU seconds of the client process, without its warm-up. */
  readonly clientCpu: number
}

export interface LoadWatcher {
  /** Is called when what counts begins. */
  onWarm(): Promise<void>
  /** Is called each second as long as it counts. */
  onSecond?(): Promise<void>
}

type Message = { readonly kind: 'ready' | 'warm' } | ({ readonly kind: 'result' } & LoadResult)

export class LoadProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>

  private constructor(path: string, args: readonly string[]) {
    const [program, ...before] = path.endsWith('.js') ? [process.execPath, path] : [path]
    // In a group of its own: Ctrl-C on a terminal is for the bench, which ends it in its turn.
    this.#child = spawn(program, [...before, ...args], {
      ...{ stdio: ['pipe', 'pipe', 'inherit'], detached: true },
    })
    // Writing to a process that has ended fails: the end of its output tells that already.
    this.#child.stdin.on('error', () => undefined)
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]()
  }

  /**
   * Of a script or another program. Resolves when it is ready for a load. Rejects when it ends before.
   * It is ended when the bench is stopped, and its load rejects then.
   */
  static async start(
    path: string,
    args: readonly string[],
    signal: AbortSignal,
  ): Promise<LoadProcess> {
    signal.throwIfAborted()
    const started = new LoadProcess(path, args)
    signal.addEventListener('abort', () => started.#child.kill(), { once: true })
    await started.#next('ready')
    return started
  }

  async run(load: Load, { onWarm, onSecond }: LoadWatcher): Promise<Loaded> {
    this.#child.stdin.write(`${JSON.stringify(load)}\n`)
    await this.#next('warm')
    const before = await this.#cpu()
    await onWarm()
    const watching = eachSecond(onSecond ?? (() => Promise.resolve()))
    try {
      const message = await this.#next('result')
      if (message.kind !== 'result') throw new Error('a client process gave no result')
      const { kind: _, ...result } = message
      return { ...result, clientCpu: (await this.#cpu()) - before }
    } finally {
      clearInterval(watching)
    }
  }

  /** Resolves when it has ended, in whatever way. */
  async stop(): Promise<void> {
    this.#child.stdin.end()
    await endProcess(this.#child)
  }

  #cpu(): Promise<number> {
    return cpuSeconds(this.#child.pid ?? 0)
  }

  async #next(kind: Message['kind']): Promise<Message> {
    const { done, value } = await this.#lines.next()
    const message: unknown = done === true ? undefined : JSON.parse(value)
    if (isMessage(message) && message.kind === kind) return message
    throw new Error(`a client process ended before it was ${kind}`)
  }
}

/** A look that fails is left out: what ails the system shows in what the load comes to. */
function eachSecond(look: () => Promise<void>): NodeJS.Timeout {
  return setInterval(() => void look().catch(() => undefined), 1000)
}

function isMessage(message: unknown): message is Message {
  return typeof message === 'object' && message !== null && 'kind' in message
}
