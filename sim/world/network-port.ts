/** A process's end of a simulated network. */
import { assert, present } from '../../src/base/assert.ts'
import type { LinkInfo, Transport, TransportHandlers } from '../../src/ports/transport.ts'
import type { NetworkParts } from './network-parts.ts'
import type { SimProcess } from './sim-process.ts'

/** The network that carries the frames of a port. */
export interface Carrier<Frame> {
  readonly parts: NetworkParts<Frame>
  started(port: Port<Frame>): void
  closed(port: Port<Frame>): void
  /** False: there is no link. */
  carry(from: Port<Frame>, to: string, frame: Frame): boolean
  /** Loses the link between the two. */
  reset(a: string, b: string): void
}

/** For as long as the process lives. */
export class Port<Frame> implements Transport<Frame> {
  readonly process: SimProcess
  readonly name: string
  readonly epochByPeer: Map<string, number> = new Map<string, number>()
  readonly #network: Carrier<Frame>
  #handlers: TransportHandlers<Frame> | undefined

  constructor(network: Carrier<Frame>, process: SimProcess, name: string) {
    this.#network = network
    this.process = process
    this.name = name
  }

  get isStarted(): boolean {
    return this.#handlers !== undefined
  }

  get handlers(): TransportHandlers<Frame> {
    return present(this.#handlers, 'network: a frame came before the start')
  }

  start(handlers: TransportHandlers<Frame>): void {
    assert(this.#handlers === undefined, 'network: started twice')
    this.#handlers = handlers
    this.#network.started(this)
  }

  send(to: string, frame: Frame): boolean {
    assert(this.process.isAlive, 'network: a dead process sends')
    return this.#network.carry(this, to, frame)
  }

  disconnect(peer: string): void {
    this.#network.reset(this.name, peer)
  }

  isUp(peer: string): boolean {
    return this.epochByPeer.has(peer)
  }

  close(): Promise<void> {
    this.epochByPeer.clear()
    this.#network.closed(this)
    return Promise.resolve()
  }

  linked(peer: string, epoch: number, info: LinkInfo): void {
    // The other side may have lost the old link and made a new one before this side noticed.
    if (this.epochByPeer.has(peer)) this.handlers.onLink(peer, 'down', {})
    this.epochByPeer.set(peer, epoch)
    this.handlers.onLink(peer, 'up', info)
  }

  unlinked(peer: string, epoch: number): void {
    // A process that is held up notices later, and there may be a new link by then.
    this.process.enter('lost', () => {
      if (this.epochByPeer.get(peer) !== epoch) return
      this.epochByPeer.delete(peer)
      this.handlers.onLink(peer, 'down', {})
    })
  }

  receive(from: string, bytes: Uint8Array, sentMicros: number): void {
    const { codec, observer } = this.#network.parts
    this.process.enter('frame', () => {
      const frame = present(codec.decode(bytes), 'network: a frame does not decode')
      this.process.work('frame', 1, bytes.length)
      this.process.work('message', codec.messagesIn?.(frame) ?? 1)
      observer.onDelivered(from, this.name, frame, sentMicros)
      this.handlers.onFrame(from, frame)
      observer.onHandled?.(this.name, frame)
    })
  }
}
