/**
 * Answers on their way to clients. The node counts the bytes of waiting answers, for each client and for all
 * of them. They wait here, or in the queue of a link whose client reads more slowly than it asks. While the
 * count is above its bound, the node does no more work for that client. A client that reads all its answers
 * does not notice.
 *
 * COST-3  Answers that wait to be sent are bounded in bytes, for each client and for the node: above that the
 *         work that makes more of them pauses.
 */
import { assert } from '../base/assert.ts'
import { frameBytesMax } from '../base/limits.ts'
import { problem } from '../base/problem.ts'
import type { Clock } from '../ports/clock.ts'
import type { Line, Slices } from '../ports/slices.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import { replyBytes } from '../wire/client/client-bytes.ts'
import { encodeClientFrame } from '../wire/client/client-codec.ts'
import type { ClientFrame, Response } from '../wire/client/client-message.ts'
import { Outbox } from '../wire/outbox.ts'

/** Answers that wait for one client: above it nothing more is begun or gone on with for it. */
export const clientAnswerBytesMax: number = 8 * 1024 * 1024
/** A link's queue below this is on its way. */
export const passingBytesMax: number = 64 * 1024

interface Waiting {
  readonly line: Line
  /** Here, and in the link's queue as far as it is more than passing. */
  bytes: number
  queuedBytes: number
}

const noFrame = problem('too-large', 'the answer is larger than a frame; ask for less at once', {
  limit: 'frameBytesMax',
  limitValue: frameBytesMax,
})

export interface AnswersPorts {
  readonly transport: Transport<ClientFrame>
  readonly clock: Clock
  readonly slices: Slices
}

export class Answers {
  readonly #ports: AnswersPorts
  readonly #outbox: Outbox<Response>
  readonly #waiting = new Map<Endpoint, Waiting>()

  constructor(ports: AnswersPorts) {
    this.#ports = ports
    const { transport, clock } = ports
    this.#outbox = new Outbox<Response>({
      clock,
      send: (to, responses) => transport.send(to, { kind: 'responses', responses }),
      bodyBytes: replyBytes,
      instead: inFrame,
      // The client's time-out covers it: it asks again.
      onDropped: () => undefined,
      hasRoom: (to) => (this.#waiting.get(to)?.queuedBytes ?? 0) <= clientAnswerBytesMax,
      onWeight: (to, bytes) => this.#weigh(to, bytes),
    })
  }

  open(client: Endpoint, line: Line): void {
    this.#waiting.set(client, { line, bytes: 0, queuedBytes: 0 })
  }

  /** The link is down. */
  close(client: Endpoint): void {
    this.#outbox.drop(client)
    const waiting = this.#waiting.get(client)
    if (waiting === undefined) return
    this.#waiting.delete(client)
    this.#ports.slices.hold(-waiting.queuedBytes)
    assert(waiting.bytes === 0, 'COST-4: answers wait for a client that is gone')
  }

  /** The client has gone, so its answer is not kept. */
  add(client: Endpoint, response: Response): void {
    if (this.#waiting.has(client)) this.#outbox.add(client, response)
  }

  /** The client has taken some of what its link had queued. */
  drained(client: Endpoint): void {
    const waiting = this.#waiting.get(client)
    if (waiting === undefined) return
    this.#look(client, waiting)
    this.#outbox.resume(client)
  }

  #weigh(client: Endpoint, bytes: number): void {
    this.#ports.slices.hold(bytes)
    const waiting = this.#waiting.get(client)
    if (waiting === undefined) return
    waiting.bytes += bytes
    // The bytes that have just left are in the link's queue now.
    if (bytes < 0) this.#look(client, waiting)
    else if (waiting.bytes > clientAnswerBytesMax) waiting.line.hold()
  }

  #look(client: Endpoint, waiting: Waiting): void {
    const { transport, slices } = this.#ports
    const queued = transport.queuedBytes?.(client) ?? 0
    const queuedBytes = queued > passingBytesMax ? queued : 0
    if (queuedBytes !== waiting.queuedBytes) slices.hold(queuedBytes - waiting.queuedBytes)
    waiting.queuedBytes = queuedBytes
    // Where little is left for all, those who do not read are the first to wait.
    const bytesMax = slices.isFull && queuedBytes > 0 ? 0 : clientAnswerBytesMax
    if (waiting.bytes + queuedBytes > bytesMax) waiting.line.hold()
    else if (waiting.line.isHeld) waiting.line.release()
  }
}

/**
 * An answer too large for a frame is not sent. Its client would wait for it, and then ask the next node for
 * the same. The estimate of an answer's size is never too small, so only answers that seem too large are
 * measured.
 */
function inFrame(response: Response): Response {
  const { id } = response
  if (replyBytes(response) <= frameBytesMax) return response
  const frame = encodeClientFrame({ kind: 'responses', responses: [response] })
  if (frame.length <= frameBytesMax) return response
  return { id, answer: { kind: 'problem', problem: noFrame }, positions: [] }
}
