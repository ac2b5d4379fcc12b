/**
 * Gathers what one turn of the loop has to say to each endpoint and sends it as one frame, or as
 * several where the bodies are many: a frame is far below its bound, whatever is in it.
 */
import type { Clock } from '../ports/clock.ts'
import type { Endpoint } from '../ports/transport.ts'

/** What its messages weigh in one frame; a single message may be larger. */
export const frameBodiesBytesMax: number = 4 * 1024 * 1024
/** Messages of one frame. */
export const frameMessagesMax = 1000

export interface OutboxPorts<Message> {
  readonly clock: Clock
  /** False when the frame was dropped. */
  readonly send: (to: Endpoint, messages: readonly Message[]) => boolean
  readonly bodyBytes: (message: Message) => number
  /** What goes in place of a message that alone weighs more than a frame's bodies; absent: that message. */
  readonly instead?: (message: Message) => Message
  readonly onDropped: (to: Endpoint, messages: readonly Message[]) => void
}

/** What waits for one endpoint. */
interface Box<Message> {
  readonly to: Endpoint
  messages: Message[]
}

export class Outbox<Message> {
  readonly #ports: OutboxPorts<Message>
  /** Of the endpoints that something was sent to; they stay, as a Map that is emptied leaves its content to V8's old space. */
  readonly #boxes = new Map<Endpoint, Box<Message>>()
  /** Those with something in them. */
  #filled: Box<Message>[] = []

  constructor(ports: OutboxPorts<Message>) {
    this.#ports = ports
  }

  add(to: Endpoint, message: Message): void {
    const box = this.#boxes.get(to) ?? this.#newBox(to)
    if (box.messages.push(message) > 1) return
    if (this.#filled.push(box) === 1) this.#ports.clock.defer(() => this.#flush())
  }

  #newBox(to: Endpoint): Box<Message> {
    const box = { to, messages: [] }
    this.#boxes.set(to, box)
    return box
  }

  /** The endpoint is gone: what waits for it is not sent. */
  drop(to: Endpoint): void {
    this.#boxes.get(to)?.messages.splice(0)
    this.#boxes.delete(to)
  }

  #flush(): void {
    const filled = this.#filled
    this.#filled = []
    for (const box of filled) {
      const { to, messages } = box
      box.messages = []
      for (const frame of this.#frames(messages)) {
        if (this.#ports.send(to, frame)) continue
        // Gone, maybe for good: nobody else says so of what is answered after that.
        this.#boxes.delete(to)
        this.#ports.onDropped(to, frame)
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
      const isLarge = more > frameBodiesBytesMax
      frame.push(isLarge ? (this.#ports.instead?.(message) ?? message) : message)
      bytes += more
    }
    return frame.length > 0 ? [...frames, frame] : frames
  }
}
