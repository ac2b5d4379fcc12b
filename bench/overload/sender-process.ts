/** A sender as the bench has it: a process of its own, told of loads. */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { endProcess } from '../processes.ts'
import type { Load, OpenEnds, Said } from './messages.ts'

const path = fileURLToPath(new URL('sender.js', import.meta.url))

export class Sender {
  readonly #child: ChildProcess

  private constructor(urls: readonly string[], clients: number) {
    // In a group of its own: Ctrl-C on a terminal is for the bench, which ends it in its turn.
    this.#child = fork(path, [urls.join(','), String(clients)], { detached: true })
  }

  /** Resolves when its clients are there. It is ended when the bench is stopped, and its load rejects then. */
  static async start(
    urls: readonly string[],
    clients: number,
    signal: AbortSignal,
  ): Promise<Sender> {
    signal.throwIfAborted()
    const sender = new Sender(urls, clients)
    signal.addEventListener('abort', () => sender.#child.kill(), { once: true })
    await sender.#next()
    return sender
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async run(load: Load): Promise<OpenEnds> {
    const next = this.#next()
    this.#child.send(load)
    const said = await next
    if (said.kind !== 'ended') throw new Error('a sender gave no result')
    return said.ends
  }

  async stop(): Promise<void> {
    this.#child.kill()
    await endProcess(this.#child)
  }

  #next(): Promise<Said> {
    return new Promise((resolve, reject) => {
      const child = this.#child
      const onExit = (): void => reject(new Error('a sender ended before its load did'))
      child.once('exit', onExit)
      child.once('message', (said) => {
        child.off('exit', onExit)
        if (isSaid(said)) resolve(said)
        else reject(new Error('a sender said something odd'))
      })
    })
  }
}

function isSaid(said: unknown): said is Said {
  return typeof said === 'object' && said !== null && 'kind' in said
}
