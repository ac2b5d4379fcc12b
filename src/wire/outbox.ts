/**
 * Gathers what one turn of the loop has to say to each endpoint and sends it as one frame, or as
 * several where the bodies are many: a frame is far below its bound, whatever is in it.
 */
import type { Clock } from '../ports/clock.ts'
import type { Endpoint } from '../ports/transport.ts'

/** Bodies of one frame; a single message may be larger. */
export const frameBodiesBytesMax: number = 4 * 1024 * 1024
/** Messages of one frame. */
export const frameMessagesMax = 1000

export interface OutboxPorts<Message> {
  readonly clock: Clock
  /** False when the frame was dropped. */
  readonly send: (to: Endpoint, messages: readonly Message[]) => boolean
  readonly bodyBytes: (message: Message) => number
  readonly onDropped: (to: Endpoint, messages: readonly Message[]) => void
}

export class Outbox<Message> {
  readonly #ports: OutboxPorts<Message>
  readonly #waiting = new Map<Endpoint, Message[]>()

  constructor(ports: OutboxPorts<Message>) {
    this.#ports = ports
  }

  add(to: Endpoint, message: Message): void {
    if (this.#waiting.size === 0) this.#ports.clock.defer(() => this.#flush())
    const messages = this.#waiting.get(to) ?? []
    if (messages.push(message) === 1) this.#waiting.set(to, messages)
  }

  /** The endpoint is gone: what waits for it is not sent. */
  drop(to: Endpoint): void {
    this.#waiting.get(to)?.splice(0)
  }

  #flush(): void {
    const all = [...this.#waiting]
    this.#waiting.clear()
    for (const [to, messages] of all) {
      for (const frame of this.#frames(messages)) {
        if (!this.#ports.send(to, frame)) this.#ports.onDropped(to, frame)
      }
    }
  }

  #frames(messages: readonly Message[]): Message[][] {
    const frames: Message[][] = []
    let frame: Message[] = []
    let bytes = 0
    for (const message of messages) {
      const more = this.#ports.bodyBytes(message)
      const isFull = frame.length >= frameMessagesMax || bytes + more > frameBodiesBytesMax
      if (isFull && frame.length > 0) {
        frames.push(frame)
        frame = []
        bytes = 0
      }
      frame.push(message)
      bytes += more
    }
    return frame.length > 0 ? [...frames, frame] : frames
  }
}
