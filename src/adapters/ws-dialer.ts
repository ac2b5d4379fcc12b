/** Keeps one outgoing link: dials, and dials again after every loss with a growing, jittered delay. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { frameBytesMax } from '../base/limits.ts'
import type { Timer } from '../ports/clock.ts'
import { passingRefusal } from '../ports/transport.ts'
import { reasonCharsMax } from '../wire/handshake.ts'
import { causeOfError, causeOfStatus } from './link-causes.ts'
import { WsLink, type LinkContext, type LinkParts } from './ws-link.ts'
import { problemContentType } from './ws-router.ts'

const redialMs = 50
const redialMaxMs = 1_000
/** After a refusal: the reason will hardly go away by itself. */
const refusedRedialMs = 5_000

/**
 * Frames go out with a mask of zeros, which is no mask: it is for what a page in a browser may write to
 * others' servers, and byte by byte it was a twelfth of what a node's main thread did for a commit.
 */
function noMask(mask: Buffer): void {
  mask.fill(0)
}

export interface DialerParts<Frame> extends Omit<LinkParts<Frame>, 'socket' | 'raw' | 'side'> {
  /** `http:` or `https:` of the other side's listener. */
  readonly url: string
  readonly path: string
  /** The longest time between two tries; absent: the usual one, of a second. */
  readonly redialMaxMs?: number
}

export class WsDialer<Frame> {
  readonly #context: LinkContext<Frame>
  readonly #parts: DialerParts<Frame>
  #link: WsLink<Frame> | undefined
  #timer: Timer | undefined
  #failures = 0
  #wasRefused = false
  #isClosed = false

  constructor(context: LinkContext<Frame>, parts: DialerParts<Frame>) {
    this.#context = context
    this.#parts = parts
    this.#dial()
  }

  get link(): WsLink<Frame> | undefined {
    return this.#link
  }

  /** Resolves when the socket is gone. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    return this.#link?.close('closing') ?? Promise.resolve()
  }

  #dial(): void {
    if (this.#isClosed) return
    const { url, path } = this.#parts
    const target = new URL(path, url)
    target.protocol = target.protocol === 'https:' ? 'wss:' : 'ws:'
    const socket = new WebSocket(target, {
      perMessageDeflate: false,
      maxPayload: frameBytesMax,
      handshakeTimeout: redialMaxMs * 2,
      generateMask: noMask,
    })
    // Registered before the link listens: so the link learns why it will not come up before it hears that it
    // has closed.
    let isOpen = false
    socket.once('open', () => (isOpen = true))
    socket.once('error', (error) => {
      if (!isOpen) this.#link?.fail(causeOfError(error, url), error)
    })
    let raw: Socket | undefined
    socket.once('upgrade', (response) => (raw = response.socket))
    socket.once('unexpected-response', (_, response) => {
      const { statusCode = 0, headers } = response
      const isNodes = headers['content-type']?.startsWith(problemContentType) === true
      if (statusCode !== 403) return this.#link?.fail(causeOfStatus(statusCode, isNodes, url))
      readBounded(response, (text) => this.#link?.turnedAway(reasonIn(text)))
    })
    this.#link = new WsLink(this.#context, {
      ...this.#parts,
      socket,
      raw: () => raw,
      side: 'dialer',
      onUp: (link, theirs) => {
        this.#failures = 0
        this.#parts.onUp(link, theirs)
      },
      onRefused: (reason, ...refusal) => {
        this.#wasRefused = !reason.startsWith(passingRefusal)
        this.#parts.onRefused(reason, ...refusal)
      },
      onDown: (link) => this.#onDown(link),
    })
  }

  #onDown(link: WsLink<Frame>): void {
    this.#link = undefined
    this.#parts.onDown(link)
    if (this.#isClosed) return
    const { clock, random } = this.#context
    const { redialMaxMs: maxMs = redialMaxMs } = this.#parts
    const growing = Math.min(redialMs * 2 ** Math.min(this.#failures, 10), maxMs)
    const base = this.#wasRefused ? refusedRedialMs : growing
    this.#failures += 1
    this.#wasRefused = false
    this.#timer = clock.setTimer(random.int(Math.ceil(base / 2), base), () => this.#dial())
  }
}

/** The bytes that a listener's refusal may have; the client reads no more. */
const refusalBytesMax = 4096

function readBounded(response: IncomingMessage, onRead: (text: string) => void): void {
  const chunks: Buffer[] = []
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= refusalBytesMax) chunks.push(chunk)
    else response.destroy()
  })
  response.once('error', () => undefined)
  response.once('close', () => onRead(Buffer.concat(chunks).toString('utf8')))
}

/** Problem details as nodes send them, or something else. */
function reasonIn(text: string): string {
  try {
    const said: unknown = JSON.parse(text)
    const isProblem = typeof said === 'object' && said !== null && 'detail' in said
    if (isProblem && typeof said.detail === 'string') {
      return `forbidden: ${said.detail.slice(0, reasonCharsMax)}`
    }
  } catch {
    // No JSON: then it is no node that answers.
  }
  return 'forbidden: the address answers HTTP 403'
}
