/** Peers that are only what a test says of them: takes down what is sent; links come up when told to. */
import type { Transport, TransportHandlers } from '../../src/ports/transport.ts'
import type { Message, PeerFrame } from '../../src/replication/message.ts'

export class ToldTransport implements Transport<PeerFrame> {
  /** All messages sent so far, or since the test emptied it. */
  readonly sent: Message[] = []
  /** The same, frame by frame. */
  readonly frames: (readonly Message[])[] = []
  #handlers: TransportHandlers<PeerFrame> | undefined
  #isLinked = false

  start(handlers: TransportHandlers<PeerFrame>): void {
    this.#handlers = handlers
  }

  link(peer: string): void {
    this.#isLinked = true
    this.#handlers?.onLink(peer, 'up', { storeId: 'its store', incarnation: 1, durableFlush: 0 })
  }

  /**
   * The same, and waits until the node uses the link: it asks the peer for its clock then. The peer says
   * something in its turn, and has let the node in so.
   */
  async join(peer: string): Promise<void> {
    const before = this.#clocks
    this.link(peer)
    for (let turn = 0; this.#clocks === before; turn++) {
      if (turn === 5_000) throw new Error(`${peer} is not let in`)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    this.tell(peer, { durableFlush: 0, messages: [] })
  }

  get #clocks(): number {
    return this.sent.filter(({ kind }) => kind === 'clock').length
  }

  tell(from: string, frame: PeerFrame): void {
    this.#handlers?.onFrame(from, frame)
  }

  send(_to: string, frame: PeerFrame): boolean {
    this.sent.push(...frame.messages)
    this.frames.push(frame.messages)
    return this.#isLinked
  }

  isUp(): boolean {
    return this.#isLinked
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
