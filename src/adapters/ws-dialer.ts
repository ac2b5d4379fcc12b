/** Keeps one outgoing link: dials, and dials again after every loss with a growing, jittered delay. */
import type { Socket } from 'node:net'
import { WebSocket } from 'ws'
import { frameBytesMax } from '../base/limits.ts'
import type { Timer } from '../ports/clock.ts'
import { WsLink, type LinkContext, type LinkParts } from './ws-link.ts'

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

export interface DialerParts<Frame> extends Omit<
  LinkParts<Frame>,
  'socket' | 'received' | 'side' | 'info'
> {
  /** `http:` or `https:` of the other side's listener. */
  readonly url: string
  readonly path: string
  info(): LinkParts<Frame>['info']
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
    let raw: Socket | undefined
    socket.once('upgrade', (response) => (raw = response.socket))
    this.#link = new WsLink(this.#context, {
      ...this.#parts,
      socket,
      received: () => raw?.bytesRead ?? 0,
      side: 'dialer',
      info: this.#parts.info(),
      onUp: (link, theirs) => {
        this.#failures = 0
        this.#parts.onUp(link, theirs)
      },
      onRefused: (reason, by) => {
        this.#wasRefused = true
        this.#parts.onRefused(reason, by)
      },
      onDown: (link) => this.#onDown(link),
    })
  }

  #onDown(link: WsLink<Frame>): void {
    this.#link = undefined
    this.#parts.onDown(link)
    if (this.#isClosed) return
    const { clock, random } = this.#context
    const growing = Math.min(redialMs * 2 ** Math.min(this.#failures, 10), redialMaxMs)
    const base = this.#wasRefused ? refusedRedialMs : growing
    this.#failures += 1
    this.#wasRefused = false
    this.#timer = clock.setTimer(random.int(Math.ceil(base / 2), base), () => this.#dial())
  }
}
