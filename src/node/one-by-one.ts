/**
 * Requests that come over one connection before the ones ahead of them are answered. A chunk of a connection
 * may hold two thousand of them, and all would be begun in the turn in which it is parsed, their answers kept.
 * So each begins when the one before it is answered, in a turn of its own, and few may wait.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../ports/clock.ts'

/** Requests that may wait on one connection: above it the connection is ended. */
export const waitingRequestsMax = 32

type Begin = () => void

export class OneByOne {
  /** Connections ended, for metrics. */
  readonly counts = { hasty: 0 }
  readonly #clock: Pick<Clock, 'defer'>
  /** Of connections with a request at work: those behind it, the first one first. */
  readonly #waiting = new WeakMap<Socket, Begin[]>()

  constructor(clock: Pick<Clock, 'defer'>) {
    this.#clock = clock
  }

  /** Calls `begin` at once, or when what came before over the same connection is answered. */
  run(socket: Socket, response: ServerResponse, begin: Begin): void {
    // The rest of a chunk that was too much is still parsed.
    if (socket.destroyed) return
    const work = (): void => {
      response.once('close', () => this.#next(socket))
      begin()
    }
    const waiting = this.#waiting.get(socket)
    if (waiting === undefined) {
      this.#waiting.set(socket, [])
      return work()
    }
    if (waiting.length < waitingRequestsMax) return void waiting.push(work)
    this.counts.hasty += 1
    waiting.length = 0
    socket.destroy()
  }

  #next(socket: Socket): void {
    const next = this.#waiting.get(socket)?.shift()
    if (next === undefined) this.#waiting.delete(socket)
    else this.#clock.defer(() => (socket.destroyed ? undefined : next()))
  }
}
