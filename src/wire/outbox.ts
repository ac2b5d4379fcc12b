/**
 * Gathers what one turn of the loop has to say to each endpoint and sends it as one frame, or as
 * several where the bodies are many: a frame is far below its bound, whatever is in it. Much is sent over
 * several turns, and to an endpoint that does not take what it was sent nothing more.
 */
import type { Clock } from '../ports/clock.ts'
import type { Endpoint } from '../ports/transport.ts'

/** What its messages weigh in one frame; a single message may be larger. */
export const frameBodiesBytesMax: number = 4 * 1024 * 1024
/** Messages of one frame. */
export const frameMessagesMax = 1000

/** What one turn sends, about: what is left goes in the next ones. */
export const sentInTurnBytesMax: number = 4 * 1024 * 1024

export interface OutboxPorts<Message> {
  readonly clock: Clock
  /** False when the frame was dropped. */
  readonly send: (to: Endpoint, messages: readonly Message[]) => boolean
  readonly bodyBytes: (message: Message) => number
  /** What goes in place of a message that alone weighs more than a frame's bodies; absent: that message. */
  readonly instead?: (message: Message) => Message
  readonly onDropped: (to: Endpoint, messages: readonly Message[]) => void
  /** False: nothing more is sent there until `resume`; absent: there is room always. */
  readonly hasRoom?: (to: Endpoint) => boolean
  /** What waits there weighs so much more, or less. */
  readonly onWeight?: (to: Endpoint, bytes: number) => void
}

/** What waits for one endpoint. */
interface Box<Message> {
  readonly to: Endpoint
  messages: Message[]
  /** Of each message. */
  weights: number[]
  /** Among those that the next turn sends from. */
  isFilled: boolean
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
    const weight = this.#ports.bodyBytes(message)
    box.messages.push(message)
    box.weights.push(weight)
    this.#ports.onWeight?.(to, weight)
    this.#fill(box)
  }

  #newBox(to: Endpoint): Box<Message> {
    const box = { to, messages: [], weights: [], isFilled: false }
    this.#boxes.set(to, box)
    return box
  }

  /** There is room again. */
  resume(to: Endpoint): void {
    const box = this.#boxes.get(to)
    if (box !== undefined && box.messages.length > 0) this.#fill(box)
  }

  /** The endpoint is gone: what waits for it is not sent. */
  drop(to: Endpoint): void {
    const box = this.#boxes.get(to)
    if (box === undefined) return
    this.#boxes.delete(to)
    box.messages = []
    const bytes = sumOf(box.weights.splice(0))
    if (bytes > 0) this.#ports.onWeight?.(to, -bytes)
  }

  #fill(box: Box<Message>): void {
    if (box.isFilled) return
    box.isFilled = true
    if (this.#filled.push(box) === 1) this.#ports.clock.defer(() => this.#flush())
  }

  #flush(): void {
    const filled = this.#filled
    this.#filled = []
    let bytesLeft = sentInTurnBytesMax
    for (const box of filled) {
      box.isFilled = false
      if (bytesLeft > 0) bytesLeft = this.#send(box, bytesLeft)
      if (box.messages.length > 0 && this.#hasRoom(box)) this.#fill(box)
    }
  }

  #hasRoom({ to }: Box<Message>): boolean {
    return this.#ports.hasRoom?.(to) ?? true
  }

  /** Gives what is left of this turn's bytes. */
  #send(box: Box<Message>, bytes: number): number {
    let bytesLeft = bytes
    while (box.messages.length > 0 && bytesLeft > 0 && this.#hasRoom(box)) {
      const { frame, weight } = this.#takeFrame(box)
      bytesLeft -= weight
      const isSent = this.#ports.send(box.to, frame)
      this.#ports.onWeight?.(box.to, -weight)
      if (isSent) continue
      // Gone, maybe for good: nobody else says so of what is answered after that.
      if (box.messages.length === 0) this.#boxes.delete(box.to)
      this.#ports.onDropped(box.to, frame)
    }
    return bytesLeft
  }

  /** The first messages, as many as one frame holds. */
  #takeFrame(box: Box<Message>): { readonly frame: readonly Message[]; readonly weight: number } {
    const { messages, weights } = box
    let count = 0
    let weight = 0
    for (const [at, more] of weights.entries()) {
      const isFull = at >= frameMessagesMax || weight + more > frameBodiesBytesMax
      if (isFull && at > 0) break
      if (more > frameBodiesBytesMax) this.#replace(messages, at)
      count = at + 1
      weight += more
    }
    // By far the most often all of them.
    const isAll = count === messages.length
    box.messages = isAll ? [] : messages.slice(count)
    box.weights = isAll ? [] : weights.slice(count)
    return { frame: isAll ? messages : messages.slice(0, count), weight }
  }

  #replace(messages: Message[], at: number): void {
    const { instead } = this.#ports
    const message = messages[at]
    if (instead !== undefined && message !== undefined) messages[at] = instead(message)
  }
}

function sumOf(weights: readonly number[]): number {
  return weights.reduce((sum, weight) => sum + weight, 0)
}
