/**
 * Messages that wait for one receiver, in order, and how they are cut into frames: each frame ends before the
 * message that would make it too heavy, or too long. A message that alone is too heavy is a frame by itself.
 */
export interface FrameLimits {
  /** The weight of the messages of a frame together. */
  readonly bytesMax: number
  readonly messagesMax: number
}

export interface WeighedFrame<Message> {
  /** Empty only where none waited. */
  readonly messages: readonly Message[]
  /** More than `bytesMax` only where it is of one message. */
  readonly bytes: number
}

export class FrameQueue<Message> {
  readonly #limits: FrameLimits
  #messages: Message[] = []
  /** Of each message. */
  #weights: number[] = []
  #bytes = 0

  constructor(limits: FrameLimits) {
    this.#limits = limits
  }

  /** The weight of all of them. */
  get bytes(): number {
    return this.#bytes
  }

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  add(message: Message, bytes: number): void {
    this.#messages.push(message)
    this.#weights.push(bytes)
    this.#bytes += bytes
  }

  /** Takes the first messages, as many as one frame holds. */
  takeFrame(): WeighedFrame<Message> {
    const { bytesMax, messagesMax } = this.#limits
    // By far the most often all of them.
    if (this.#bytes <= bytesMax && this.#messages.length <= messagesMax) return this.takeAll()
    let count = 0
    let bytes = 0
    for (const more of this.#weights) {
      if (count > 0 && (count >= messagesMax || bytes + more > bytesMax)) break
      count += 1
      bytes += more
    }
    this.#weights.splice(0, count)
    this.#bytes -= bytes
    return { messages: this.#messages.splice(0, count), bytes }
  }

  /** Takes all of them, whatever they weigh. */
  takeAll(): WeighedFrame<Message> {
    const all = { messages: this.#messages, bytes: this.#bytes }
    this.#messages = []
    this.#weights = []
    this.#bytes = 0
    return all
  }
}
