/**
 * One WebSocket from its opening to its end: the handshake, then frames both ways. Whatever is
 * wrong with the other side ends this one link with a reason; nothing here throws at its owner.
 */
import { WebSocket, type RawData } from 'ws'
import { frameBytesMax } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LinkInfo } from '../ports/transport.ts'
import {
  decodeHandshake,
  encodeHandshake,
  helloProblem,
  isProof,
  nonceBytes,
  proofOf,
  protocolMax,
  protocolMin,
  type Expected,
  type HandshakeMessage,
  type Hello,
  type Role,
  type Side,
} from '../wire/handshake.ts'

/** Frames ⇄ bytes. A reason instead of a frame closes the link. */
export interface FrameCodec<Frame> {
  encode(frame: Frame): Uint8Array
  decode(
    bytes: Uint8Array,
  ): { readonly ok: true; readonly frame: Frame } | { readonly ok: false; readonly reason: string }
}

/** What a transport counts, for metrics. */
export interface TransportCounters {
  connects: number
  refused: number
  malformed: number
  framesSent: number
  framesReceived: number
  framesDropped: number
  bytesSent: number
  bytesReceived: number
}

export function zeroCounters(): TransportCounters {
  return {
    connects: 0,
    refused: 0,
    malformed: 0,
    framesSent: 0,
    framesReceived: 0,
    framesDropped: 0,
    bytesSent: 0,
    bytesReceived: 0,
  }
}

/** One line about a link, for the log. */
export type LinkLog = (message: string, detail: { readonly [field: string]: unknown }) => void

export interface LinkContext<Frame> {
  readonly codec: FrameCodec<Frame>
  readonly clock: Clock
  readonly random: Random
  readonly secret: string
  readonly queueBytesMax: number
  readonly counters: TransportCounters
  readonly log: LinkLog
}

/** `a stranger`: the other side, before it has proven to be of the cluster. */
export type Refuser = 'us' | 'them' | 'a stranger'

export interface LinkParts<Frame> {
  readonly socket: WebSocket
  /** Bytes that have come in over its connection, those of a frame that is not whole included. */
  received(): number
  readonly side: Side
  readonly role: Role
  readonly cluster: string
  readonly node: string
  readonly info: LinkInfo
  /** For the log: where the link leads. */
  readonly name: string
  readonly expected: Expected
  /** Checks who has proven to be of the cluster; a reason refuses it. */
  admit(theirs: Hello): string | undefined
  onUp(link: WsLink<Frame>, theirs: Hello): void
  onFrame(link: WsLink<Frame>, frame: Frame): void
  /** The other side refused, or this side did: with the reason. Before `onDown`. */
  onRefused(reason: string, by: Refuser): void
  /** Once, whether it was up or not. */
  onDown(link: WsLink<Frame>): void
}

const handshakeTimeoutMs = 2_000
/** A link on which no byte came for so many ticks, pings notwithstanding, is dead. */
const silentTicksMax = 3
const tickMs = 2_000
/** Between a close and the end of a socket whose other side does not answer it. */
const closeGraceMs = 500
/** Codes 4000 to 4999 are an application's own. */
const closeCode = 4000

export class WsLink<Frame> {
  readonly #context: LinkContext<Frame>
  readonly #parts: LinkParts<Frame>
  readonly #hello: Hello
  #timer: Timer
  /** Without a byte; without a whole message, or the answer to a ping. */
  #silentTicks = 0
  #quietTicks = 0
  #receivedBytes = 0
  #isProven = false
  #theirs: Hello | undefined
  #hasWelcomed = false
  #isWelcome = false
  #isDown = false

  constructor(context: LinkContext<Frame>, parts: LinkParts<Frame>) {
    this.#context = context
    this.#parts = parts
    const { side, role, cluster, node, info, socket } = parts
    const nonce = context.random.bytes(nonceBytes)
    this.#hello = { side, role, cluster, node, info, nonce, protocolMin, protocolMax }
    const { clock } = context
    this.#timer = clock.setTimer(handshakeTimeoutMs, () => this.#onSlow())
    socket.binaryType = 'nodebuffer'
    socket.on('message', (data, isBinary) => this.#onMessage(data, isBinary))
    socket.on('pong', () => (this.#quietTicks = 0))
    socket.on('close', () => this.#onClose())
    socket.on('error', (error) => this.#onError(error))
    if (socket.readyState === WebSocket.OPEN) this.#begin()
    else socket.on('open', () => this.#begin())
  }

  get isUp(): boolean {
    return this.#hasWelcomed && this.#isWelcome && !this.#isDown
  }

  /** False when the link is not up or its queue is full: the frame is dropped. */
  send(frame: Frame): boolean {
    const { counters, codec, queueBytesMax } = this.#context
    const { socket } = this.#parts
    if (!this.isUp || socket.bufferedAmount > queueBytesMax) {
      counters.framesDropped += 1
      return false
    }
    const bytes = codec.encode(frame)
    if (bytes.length > frameBytesMax) {
      // The other side would close the link over it, each time it is sent.
      counters.framesDropped += 1
      this.#context.log('frame too large to send', { link: this.#parts.name, bytes: bytes.length })
      return false
    }
    counters.framesSent += 1
    counters.bytesSent += bytes.length
    socket.send(bytes)
    return true
  }

  /** Resolves when the socket is gone. */
  close(reason: string): Promise<void> {
    const { socket } = this.#parts
    if (socket.readyState === WebSocket.CLOSED) return Promise.resolve()
    const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const timer = this.#context.clock.setTimer(closeGraceMs, () => socket.terminate())
    socket.once('close', () => timer.cancel())
    if (socket.readyState !== WebSocket.CLOSING) socket.close(closeCode, reason.slice(0, 100))
    this.#end()
    return gone
  }

  terminate(): void {
    this.#parts.socket.terminate()
    this.#end()
  }

  #begin(): void {
    this.#context.counters.connects += 1
    this.#say({ kind: 'hello', hello: this.#hello })
  }

  #say(message: HandshakeMessage): void {
    const { socket } = this.#parts
    if (socket.readyState === WebSocket.OPEN) socket.send(encodeHandshake(message))
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    this.#quietTicks = 0
    if (this.#isDown) return this.#onLateMessage(data)
    if (!isBinary || !Buffer.isBuffer(data)) return this.#malformed('a text message')
    if (this.isUp) return this.#onFrame(data)
    const message = decodeHandshake(data)
    if (message === undefined) return this.#malformed('no handshake message')
    this.#onHandshake(message)
  }

  /** Both sides may refuse at once: each is told the other's reason, too. */
  #onLateMessage(data: RawData): void {
    const message = Buffer.isBuffer(data) ? decodeHandshake(data) : undefined
    if (message?.kind === 'refuse') this.#onRefused(message.reason)
  }

  /** Whoever has not proven to be of the cluster is not believed: it could end this node. */
  #onRefused(reason: string): void {
    this.#context.log('refused by the other side', { link: this.#parts.name, reason })
    this.#parts.onRefused(reason, this.#isProven ? 'them' : 'a stranger')
  }

  #onFrame(bytes: Buffer): void {
    const { codec, counters } = this.#context
    const decoded = codec.decode(bytes)
    if (!decoded.ok) return this.#malformed(decoded.reason)
    counters.framesReceived += 1
    counters.bytesReceived += bytes.length
    this.#parts.onFrame(this, decoded.frame)
  }

  #onHandshake(message: HandshakeMessage): void {
    switch (message.kind) {
      case 'hello':
        return this.#onHello(message.hello)
      case 'proof':
        return this.#onProof(message.mac)
      case 'welcome':
        if (!this.#hasWelcomed) return this.#malformed('a welcome before its time')
        this.#isWelcome = true
        return this.#up()
      case 'refuse':
        this.#onRefused(message.reason)
        return void this.close('refused')
    }
  }

  #onHello(theirs: Hello): void {
    if (this.#theirs !== undefined) return this.#malformed('a second hello')
    const problem = helloProblem(this.#hello, theirs, this.#parts.expected)
    if (problem !== undefined) return this.#refuse(problem)
    this.#theirs = theirs
    this.#say({ kind: 'proof', mac: proofOf(this.#context.secret, this.#hello, theirs) })
  }

  #onProof(mac: Uint8Array): void {
    const theirs = this.#theirs
    if (theirs === undefined || this.#hasWelcomed) return this.#malformed('a proof out of turn')
    if (!isProof(mac, this.#context.secret, theirs, this.#hello)) {
      return this.#refuse('secret: the cluster secrets of the two sides differ')
    }
    this.#isProven = true
    const problem = this.#parts.admit(theirs)
    if (problem !== undefined) return this.#refuse(problem)
    this.#hasWelcomed = true
    this.#say({ kind: 'welcome' })
  }

  #up(): void {
    this.#timer.cancel()
    this.#watch()
    if (this.#theirs !== undefined) this.#parts.onUp(this, this.#theirs)
  }

  /** In ticks, not time: a process that was stopped itself does not take its links for dead. */
  #watch(): void {
    this.#timer = this.#context.clock.setTimer(tickMs, () => {
      if (this.#isDown) return
      this.#count()
      if (this.#silentTicks > silentTicksMax) {
        this.#context.log('link closed: silent', { link: this.#parts.name })
        return this.terminate()
      }
      // Also while a large frame comes in: to its sender, who waits behind it, this is all that comes.
      if (this.#quietTicks > 1) this.#parts.socket.ping()
      this.#watch()
    })
  }

  #count(): void {
    const bytes = this.#parts.received()
    this.#silentTicks = bytes > this.#receivedBytes ? 1 : this.#silentTicks + 1
    this.#quietTicks += 1
    this.#receivedBytes = bytes
  }

  #refuse(reason: string): void {
    this.#context.counters.refused += 1
    this.#context.log('link refused', { link: this.#parts.name, reason })
    this.#say({ kind: 'refuse', reason })
    this.#parts.onRefused(reason, 'us')
    void this.close('refused')
  }

  #malformed(reason: string): void {
    this.#context.counters.malformed += 1
    this.#context.log('link closed: malformed', { link: this.#parts.name, reason })
    void this.close('malformed')
  }

  #onSlow(): void {
    if (this.isUp || this.#isDown) return
    this.#context.log('link closed: no handshake in time', { link: this.#parts.name })
    this.terminate()
  }

  #onError(error: Error): void {
    // An oversize frame, a reset, a broken frame: ws closes the socket, `close` follows.
    if (this.#isDown || this.#parts.socket.readyState === WebSocket.CONNECTING) return
    if ('code' in error && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
      this.#context.counters.malformed += 1
    }
    this.#context.log('link broken', { link: this.#parts.name, reason: error.message })
  }

  #onClose(): void {
    this.#end()
  }

  #end(): void {
    if (this.#isDown) return
    this.#isDown = true
    this.#timer.cancel()
    this.#parts.onDown(this)
  }
}
