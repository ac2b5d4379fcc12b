/**
 * One WebSocket from its opening to its end: the handshake, then frames both ways. Any fault of the other
 * side ends this one link with a reason; nothing here throws at its owner.
 */
import type { Socket } from 'node:net'
import { WebSocket, type RawData } from 'ws'
import { assert } from '../base/assert.ts'
import { frameBytesMax } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LinkInfo, Unreached } from '../ports/transport.ts'
import {
  decodeHandshake,
  encodeHandshake,
  handshakeBytesMax,
  helloProblem,
  isProof,
  isTold,
  makeTell,
  nonceBytes,
  computeProof,
  protocolMax,
  protocolMin,
  type Expected,
  type HandshakeMessage,
  type Hello,
  type Met,
  type Role,
  type Side,
  type Told,
} from '../wire/handshake.ts'
import { boundBytes, type ByteBound } from './byte-bound.ts'
import { waits, wrong } from './link-causes.ts'

/** Frames ⇄ bytes. A reason instead of a frame closes the link. */
export interface FrameCodec<Frame> {
  encode(frame: Frame): Uint8Array
  decode(
    bytes: Uint8Array,
  ): { readonly ok: true; readonly frame: Frame } | { readonly ok: false; readonly reason: string }
}

/** The counters of a transport, for metrics. */
export interface TransportCounters {
  connects: number
  refused: number
  malformed: number
  framesSent: number
  framesReceived: number
  framesDropped: number
  /** Links ended because too much of unfinished messages had come. */
  endedForRoom: number
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
    endedForRoom: 0,
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
  /** Of those who have this role: the peers' or the clients'. Empty: none. */
  readonly secret: string
  readonly queueBytesMax: number
  readonly counters: TransportCounters
  readonly log: LinkLog
}

/** `a stranger`: the other side, before it has proven to be of the cluster. */
export type Refuser = 'us' | 'them' | 'a stranger'

export interface LinkParts<Frame> {
  readonly socket: WebSocket
  /** The connection under it, once there is one. */
  raw(): Socket | undefined
  readonly side: Side
  readonly role: Role
  readonly cluster: string
  readonly node: string
  /** The facts that this side tells of itself, to a peer that has proven to be of the cluster. */
  info(): LinkInfo
  /** For the log: where the link leads. */
  readonly name: string
  readonly expected: Expected
  /** Checks who has proven to be of the cluster; a reason refuses it. */
  admit(theirs: Met): string | undefined
  onUp(link: WsLink<Frame>, theirs: Met): void
  onFrame(link: WsLink<Frame>, frame: Frame): void
  /**
   * One side refused the link, for this reason. Called before `onDown`. `node` is the node on the other side, empty
   * where that is a client or has sent no hello. Without `isProven` only the other side's hello names it, unless this
   * side dialled.
   */
  onRefused(reason: string, by: Refuser, node: string, isProven: boolean): void
  /** The link did not come up, for a reason that no side gave the other. Before `onDown`. */
  onFailed?(why: Unreached): void
  /** Much was queued, and the other side has taken some of it. */
  onDrained?(): void
  /** Once, whether it was up or not. */
  onDown(link: WsLink<Frame>): void
}

const handshakeTimeoutMs = 2_000
/** Of what the other side calls itself, in words about it. */
const nodeCharsMax = 64
/** After this many ticks without a byte, pings notwithstanding, a link is dead. */
const silentTicksMax = 3
const tickMs = 2_000
/** A link whose queue gets no shorter for this many ticks is dead as well, whatever the other side sends. */
const stuckTicksMax = 5
/** A queue below this counts as on its way. When one above it gets shorter, `onDrained` is called. */
const passingBytesMax = 64 * 1024
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
  /** Nothing of what is queued was taken. */
  #stuckTicks = 0
  #sentBytes = 0
  #takenBytes = 0
  #isHeld = false
  readonly #onWritten = (): void => {
    if (this.isUp) this.#parts.onDrained?.()
  }
  #theirs: Hello | undefined
  /** The node on the other side: the one that this side expects, or the one that it says it is. */
  #theirNode: string
  /** Bounds what comes before the other side's proof. */
  #bound: ByteBound | undefined
  #isProven = false
  /** Set once it may: it has told of itself and is admitted. */
  #met: Met | undefined
  #hasRefused = false
  /** Why there will be no link has been told. */
  #hasFailed = false
  #isUp = false
  #isDown = false

  constructor(context: LinkContext<Frame>, parts: LinkParts<Frame>) {
    this.#context = context
    this.#parts = parts
    this.#theirNode = parts.expected.node ?? ''
    const { side, role, cluster, node, socket } = parts
    const nonce = context.random.bytes(nonceBytes)
    this.#hello = { side, role, cluster, node, nonce, protocolMin, protocolMax }
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
    return this.#isUp && !this.#isDown
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
      this.#log('frame too large to send', { bytes: bytes.length })
      return false
    }
    counters.framesSent += 1
    counters.bytesSent += bytes.length
    this.#sentBytes += bytes.length
    if (socket.bufferedAmount + bytes.length > passingBytesMax) socket.send(bytes, this.#onWritten)
    else socket.send(bytes)
    return true
  }

  /** Bytes that the other side has not made room for yet. */
  get queuedBytes(): number {
    return this.#parts.socket.bufferedAmount
  }

  /** Held: nothing is read, until it is not any more. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld
    if (isHeld) this.#parts.socket.pause()
    else this.#parts.socket.resume()
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

  /** There was no link to begin with: the other side answered otherwise. */
  turnedAway(reason: string): void {
    if (this.#isDown) return
    this.#onRefused(reason)
    this.terminate()
  }

  /** There will be no link, for this reason: it is dialled again soon. */
  fail(why: Unreached, error?: Error): void {
    if (this.#isDown) return
    this.#log('link broken', { reason: error?.message ?? why.reason })
    this.#failed(why)
    this.terminate()
  }

  #failed(why: Unreached): void {
    if (!this.#isUp && !this.#isDown && !this.#hasFailed) this.#parts.onFailed?.(why)
    this.#hasFailed = true
  }

  terminate(): void {
    this.#parts.socket.terminate()
    this.#end()
  }

  /** The dialer speaks first. */
  #begin(): void {
    this.#context.counters.connects += 1
    const raw = this.#parts.raw()
    if (raw !== undefined) {
      this.#bound = boundBytes(raw, handshakeBytesMax, () => this.#onTooMuch())
    }
    if (this.#hello.side === 'dialer') this.#say({ kind: 'hello', hello: this.#hello })
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

  /** Both sides may refuse at once: each learns the other's reason, too. */
  #onLateMessage(data: RawData): void {
    const message = Buffer.isBuffer(data) ? decodeHandshake(data) : undefined
    if (message?.kind === 'refuse') this.#onRefused(message.reason)
  }

  /**
   * This side does not believe a refusal from a side that has not proven to be of the cluster: it could end
   * this node.
   */
  #onRefused(reason: string): void {
    this.#log('refused by the other side', { reason })
    // A fault that this side has found itself says more than a stranger's answer to it.
    if (this.#hasRefused && !this.#isProven) return
    this.#hasFailed = true
    const by = this.#isProven ? 'them' : 'a stranger'
    this.#parts.onRefused(reason, by, this.#theirNode, this.#isProven)
  }

  #onFrame(bytes: Buffer): void {
    assert(this.#isProven, 'HELLO-1: a frame of who has not proven to be of the cluster')
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
      case 'tell':
        return this.#onTell(message)
      case 'welcome':
        return this.#onWelcome()
      case 'refuse':
        this.#onRefused(message.reason)
        return void this.close('refused')
    }
  }

  #onHello(theirs: Hello): void {
    if (this.#theirs !== undefined) return this.#malformed('a second hello')
    const isDialer = this.#hello.side === 'dialer'
    if (!isDialer) this.#say({ kind: 'hello', hello: this.#hello })
    this.#theirNode = theirs.node.slice(0, nodeCharsMax)
    const problem = helloProblem(this.#hello, theirs, this.#parts.expected)
    if (problem !== undefined) return this.#refuse(problem)
    this.#theirs = theirs
    const { secret } = this.#context
    if (isDialer) this.#say({ kind: 'proof', mac: computeProof(secret, this.#hello, theirs) })
  }

  /** The dialer's, which comes first: who only connects gets nothing to try secrets on. */
  #onProof(mac: Uint8Array): void {
    const theirs = this.#theirs
    const isInTurn = this.#hello.side === 'listener' && !this.#isProven
    if (theirs === undefined || !isInTurn) return this.#malformed('a proof out of turn')
    if (!isProof(mac, this.#context.secret, theirs, this.#hello)) return this.#refuseSecret()
    this.#prove()
    this.#tell(theirs)
  }

  /** Of the listener this is its proof as well. */
  #onTell(told: Told): void {
    const theirs = this.#theirs
    const isDialer = this.#hello.side === 'dialer'
    const isInTurn = this.#met === undefined && this.#isProven !== isDialer
    if (theirs === undefined || !isInTurn) return this.#malformed('told out of turn')
    if (!isTold(told, this.#context.secret, theirs, this.#hello)) return this.#refuseSecret()
    if (isDialer) this.#prove()
    const met = { ...theirs, info: told.info }
    const problem = this.#parts.admit(met)
    if (problem !== undefined) return this.#refuse(problem)
    this.#met = met
    if (isDialer) return this.#tell(theirs)
    this.#say({ kind: 'welcome' })
    this.#up(met)
  }

  #onWelcome(): void {
    const isDialer = this.#hello.side === 'dialer'
    if (!isDialer || this.#met === undefined) return this.#malformed('a welcome before its time')
    this.#up(this.#met)
  }

  #prove(): void {
    this.#isProven = true
    this.#bound?.release()
  }

  #tell(theirs: Hello): void {
    assert(this.#isProven, 'HELLO-2: a stranger is told what is for the cluster')
    const info = this.#parts.info()
    const told = makeTell(this.#context.secret, this.#hello, theirs, info)
    this.#say({ kind: 'tell', ...told })
  }

  #up(met: Met): void {
    this.#isUp = true
    this.#timer.cancel()
    this.#watch()
    this.#parts.onUp(this, met)
  }

  /** In ticks, not time: a process that was stopped itself does not take its links for dead. */
  #watch(): void {
    this.#timer = this.#context.clock.setTimer(tickMs, () => {
      if (this.#isDown) return
      this.#count()
      if (this.#silentTicks > silentTicksMax) {
        this.#log('link closed: silent')
        return this.terminate()
      }
      if (this.#stuckTicks > stuckTicksMax) {
        this.#log('link closed: what it is sent is not read')
        return this.terminate()
      }
      // Also while a large frame comes in: to its sender, who waits behind it, this is all that comes.
      if (this.#quietTicks > 1) this.#parts.socket.ping()
      this.#watch()
    })
  }

  #count(): void {
    const bytes = this.#parts.raw()?.bytesRead ?? 0
    const isSilent = bytes <= this.#receivedBytes && !this.#isHeld
    this.#silentTicks = isSilent ? this.#silentTicks + 1 : 1
    const { queuedBytes } = this
    const takenBytes = this.#sentBytes - queuedBytes
    const isStuck = queuedBytes > passingBytesMax && takenBytes <= this.#takenBytes
    this.#stuckTicks = isStuck ? this.#stuckTicks + 1 : 0
    this.#takenBytes = takenBytes
    this.#quietTicks += 1
    this.#receivedBytes = bytes
  }

  #refuse(reason: string): void {
    this.#hasRefused = true
    this.#context.counters.refused += 1
    this.#log('link refused', { reason })
    this.#say({ kind: 'refuse', reason })
    this.#hasFailed = true
    this.#parts.onRefused(reason, 'us', this.#theirNode, this.#isProven)
    void this.close('refused')
  }

  #refuseSecret(): void {
    const whose = this.#hello.role === 'peer' ? "peers' secrets" : 'secrets'
    const set = this.#hello.role === 'peer' ? 'peer_secret_file' : 'secret'
    this.#refuse(`secret: the ${whose} of the two sides differ; give both the same ${set}`)
  }

  #onTooMuch(): void {
    if (!this.#isDown) this.#malformed(`more than ${handshakeBytesMax} bytes before a proof`)
    this.terminate()
  }

  #malformed(reason: string): void {
    this.#context.counters.malformed += 1
    this.#log('link closed: malformed', { reason })
    this.#failed(wrong(`what listens there is no trilithon node or gateway: ${reason}`))
    void this.close('malformed')
  }

  #log(message: string, detail: { readonly [field: string]: unknown } = {}): void {
    const node = this.#theirNode === '' ? {} : { node: this.#theirNode }
    this.#context.log(message, { link: this.#parts.name, ...node, ...detail })
  }

  #onSlow(): void {
    if (this.isUp || this.#isDown) return
    this.#log('link closed: no handshake in time')
    const isOpen = this.#parts.socket.readyState === WebSocket.OPEN
    this.#failed(waits(isOpen ? 'it says nothing to a handshake' : 'no answer in time'))
    this.terminate()
  }

  #onError(error: Error): void {
    // An oversize frame, a reset, a broken frame: ws closes the socket, `close` follows.
    if (this.#isDown || this.#parts.socket.readyState === WebSocket.CONNECTING) return
    if ('code' in error && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') {
      this.#context.counters.malformed += 1
    }
    this.#log('link broken', { reason: error.message })
  }

  #onClose(): void {
    this.#failed(waits('it ended the connection during the handshake'))
    this.#end()
  }

  #end(): void {
    if (this.#isDown) return
    this.#isDown = true
    this.#timer.cancel()
    this.#parts.onDown(this)
  }
}
