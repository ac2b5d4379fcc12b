/**
 * Gathers what one turn of the loop has to say to each endpoint and sends it as one frame, or as
 * several where the bodies are many (`base/frame-queue.ts`): a frame is far below its bound, whatever is in
 * it. Much is sent over several turns, and to an endpoint that does not take what it was sent nothing more.
 */
import { FrameQueue, type WeighedFrame } from '../base/frame-queue.ts'
import type { Clock } from '../ports/clock.ts'
import type { Endpoint } from '../ports/transport.ts'

/** The weight of one frame's messages; a single message may be larger. */
export const frameBodiesBytesMax: number = 4 * 1024 * 1024
/** Messages of one frame. */
export const frameMessagesMax = 1000

/** About the bytes that one turn sends; the next turns send the rest. */
export const sentInTurnBytesMax: number = 4 * 1024 * 1024

export interface OutboxPorts<Message> {
  readonly clock: Clock
  /** False when the frame was dropped. */
  readonly send: (to: Endpoint, messages: readonly Message[]) => boolean
  readonly bodyBytes: (message: Message) => number
  /** The message to send in place of one that alone weighs more than a frame's bodies; absent: that one. */
  readonly instead?: (message: Message) => Message
  readonly onDropped: (to: Endpoint, messages: readonly Message[]) => void
  /** False: nothing more is sent there until `resume`; absent: there is room always. */
  readonly hasRoom?: (to: Endpoint) => boolean
  /** The weight of the messages that wait there has changed by `bytes`. */
  readonly onWeight?: (to: Endpoint, bytes: number) => void
}

/** The messages that wait for one endpoint. */
interface Box<Message> {
  readonly to: Endpoint
  readonly queue: FrameQueue<Message>
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
    box.queue.add(message, weight)
    this.#ports.onWeight?.(to, weight)
    this.#fill(box)
  }

  #newBox(to: Endpoint): Box<Message> {
    const queue = new FrameQueue<Message>({
      bytesMax: frameBodiesBytesMax,
      messagesMax: frameMessagesMax,
    })
    const box = { to, queue, isFilled: false }
    this.#boxes.set(to, box)
    return box
  }

  /** There is room again. */
  resume(to: Endpoint): void {
    const box = this.#boxes.get(to)
    if (box !== undefined && !box.queue.isEmpty) this.#fill(box)
  }

  /** The endpoint is gone: messages that wait for it are not sent. */
  drop(to: Endpoint): void {
    const box = this.#boxes.get(to)
    if (box === undefined) return
    this.#boxes.delete(to)
    const { bytes } = box.queue.takeAll()
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
      if (!box.queue.isEmpty && this.#hasRoom(box)) this.#fill(box)
    }
  }

  #hasRoom({ to }: Box<Message>): boolean {
    return this.#ports.hasRoom?.(to) ?? true
  }

  /** Gives what is left of this turn's bytes. */
  #send(box: Box<Message>, bytes: number): number {
    let bytesLeft = bytes
    while (!box.queue.isEmpty && bytesLeft > 0 && this.#hasRoom(box)) {
      const frame = box.queue.takeFrame()
      bytesLeft -= frame.bytes
      const messages = this.#inFrame(frame)
      const isSent = this.#ports.send(box.to, messages)
      this.#ports.onWeight?.(box.to, -frame.bytes)
      if (isSent) continue
      // Gone, maybe for good: only this tells the owner that answers given after that are lost.
      if (box.queue.isEmpty) this.#boxes.delete(box.to)
      this.#ports.onDropped(box.to, messages)
    }
    return bytesLeft
  }

  /** Only a message that is alone weighs more than a frame's bodies. */
  #inFrame({ messages, bytes }: WeighedFrame<Message>): readonly Message[] {
    const { instead } = this.#ports
    if (instead === undefined || bytes <= frameBodiesBytesMax) return messages
    return messages.map(instead)
  }
}
