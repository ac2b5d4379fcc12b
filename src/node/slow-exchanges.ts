/**
 * HTTP exchanges whose other side is too slow: bodies that come in, and answers that are waiting to be
 * taken. The connection of one that is below the rate is ended; the bytes of waiting answers are bounded
 * together, and where they are too many the address that holds most of them loses its oldest.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { answerRaw, type UpgradeRefusal } from '../adapters/ws-router.ts'
import type { Clock } from '../ports/clock.ts'
import { problemContentType, problemPage } from './refusals.ts'

/** Milliseconds before a rate counts. */
export const graceMs = 5_000
/** The rate that the sender of a body must reach, from the end of the grace on. */
export const bodyBytesPerSecondMin: number = 8 * 1024
/** The rate that the reader of an answer must reach. */
export const answerBytesPerSecondMin: number = 64 * 1024

/** The system takes a smaller answer at once, or nearly so. */
const countedBytesMin: number = 16 * 1024

const tooSlow: UpgradeRefusal = {
  ...{ status: 408, contentType: problemContentType },
  body: problemPage(
    408,
    'timeout',
    `the body came too slowly, after ${graceMs / 1000} s with less than ${bodyBytesPerSecondMin} bytes a second; send it at once`,
  ),
}

interface Body {
  readonly socket: Socket
  readonly response: ServerResponse
  readonly beganMs: number
  readonly bytesBefore: number
}

interface Answer {
  readonly socket: Socket
  readonly address: string
  readonly bytes: number
  readonly deadlineMs: number
}

export class SlowExchanges {
  /** Connections ended, for metrics. */
  readonly counts = { slowBodies: 0, slowAnswers: 0, answersForRoom: 0 }
  readonly #clock: Clock
  readonly #answerBytesMax: number
  readonly #bodies = new Set<Body>()
  /** The oldest first. */
  readonly #answers = new Set<Answer>()
  /** Told that they were too slow. */
  readonly #told = new Set<Socket>()
  #answerBytes = 0

  constructor(clock: Clock, answerBytesMax: number) {
    this.#clock = clock
    this.#answerBytesMax = answerBytesMax
  }

  /** Of answers that wait to be taken. */
  get answerBytes(): number {
    return this.#answerBytes
  }

  /** Watches the body of a request that begins. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    const length = Number(request.headers['content-length'] ?? 0)
    if (length === 0 && request.headers['transfer-encoding'] === undefined) return
    const { socket } = request
    const beganMs = this.#clock.monotonicMs()
    const body = { socket, response, beganMs, bytesBefore: socket.bytesRead }
    this.#bodies.add(body)
    const end = (): void => void this.#bodies.delete(body)
    request.once('end', end)
    response.once('close', end)
  }

  /** Watches an answer that has been made, until it is taken. */
  answered(response: ServerResponse): void {
    const { socket, writableLength: bytes } = response
    if (socket === null || bytes < countedBytesMin || response.writableFinished) return
    const allowedMs = graceMs + (1000 * bytes) / answerBytesPerSecondMin
    const deadlineMs = this.#clock.monotonicMs() + allowedMs
    const answer = { socket, address: socket.remoteAddress ?? '', bytes, deadlineMs }
    this.#answers.add(answer)
    this.#answerBytes += bytes
    response.once('close', () => this.#forget(answer))
    while (this.#answerBytes > this.#answerBytesMax) this.#endOneForRoom()
  }

  /** Ends those that are too slow. Called every second or so. */
  sweep(): void {
    const now = this.#clock.monotonicMs()
    for (const socket of this.#told) socket.destroy()
    this.#told.clear()
    for (const body of this.#bodies) {
      const countedMs = now - body.beganMs - graceMs
      const bytes = body.socket.bytesRead - body.bytesBefore
      if (countedMs <= 0 || bytes >= (bodyBytesPerSecondMin * countedMs) / 1000) continue
      this.#bodies.delete(body)
      this.counts.slowBodies += 1
      this.#endBody(body)
    }
    for (const answer of this.#answers) {
      if (answer.deadlineMs > now) continue
      this.counts.slowAnswers += 1
      this.#end(answer)
    }
  }

  /** A listener hears why. Without one, the connection ends at the next sweep. */
  #endBody({ socket, response }: Body): void {
    if (response.headersSent || !socket.writable) return void socket.destroy()
    this.#told.add(socket)
    answerRaw(socket, tooSlow)
  }

  #endOneForRoom(): void {
    const byAddress = new Map<string, number>()
    for (const { address, bytes } of this.#answers) {
      byAddress.set(address, (byAddress.get(address) ?? 0) + bytes)
    }
    const most = Math.max(...byAddress.values())
    for (const answer of this.#answers) {
      if (byAddress.get(answer.address) !== most) continue
      this.counts.answersForRoom += 1
      return this.#end(answer)
    }
  }

  #end(answer: Answer): void {
    this.#forget(answer)
    answer.socket.destroy()
  }

  #forget(answer: Answer): void {
    if (this.#answers.delete(answer)) this.#answerBytes -= answer.bytes
  }
}
