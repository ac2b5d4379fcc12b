/**
 * An application's HTTP client: asks the gateways that it knows in turn, and another one, or the
 * same again, when no answer came or the answer says that the request may be sent again. A write of
 * which one try may have been carried out has failed for sure only when a later one says why.
 */
import { isStoreErrorCode, StoreError } from '../../src/base/errors.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Random } from '../../src/ports/random.ts'
import type { Transport } from '../../src/ports/transport.ts'
import { pause } from '../../src/time/moments.ts'
import type { HttpAnswer, HttpFrame, HttpRequest } from '../cluster/http-wire.ts'

export interface HttpCallerParts {
  readonly transport: Transport<HttpFrame>
  readonly clock: Clock
  readonly random: Random
  readonly gateways: readonly string[]
  /** The timeout of one gateway, and the most gateways that one call tries. */
  readonly tryTimeoutMs: number
  readonly triesMax: number
}

/** An answer, and whether an earlier try may have been carried out as well. */
export interface Told {
  readonly answer: HttpAnswer
  readonly isRepeated: boolean
}

const backoffMaxMs = 50

export class HttpCaller {
  readonly #parts: HttpCallerParts
  readonly #pending = new Map<number, { readonly to: string; end(answer?: HttpAnswer): void }>()
  #drawn = 0
  #turn = 0

  constructor(parts: HttpCallerParts) {
    this.#parts = parts
    parts.transport.start({
      self: () => ({}),
      admit: () => undefined,
      onRefused: () => undefined,
      onLink: (gateway, state) => {
        if (state === 'down') this.#onDown(gateway)
      },
      onFrame: (_, frame) => {
        if (frame.kind === 'answer') this.#pending.get(frame.id)?.end(frame.answer)
      },
    })
  }

  /** The answer, when it is a success or says for good what is wrong; else throws what is known. */
  async ask(request: HttpRequest, isWrite: boolean): Promise<Told> {
    const { triesMax, random } = this.#parts
    let isUnsure = false
    let last: StoreError | undefined
    for (let tries = 1; ; tries++) {
      const result = await this.#tryOnce(request)
      if (typeof result === 'object') {
        const told = { answer: result, isRepeated: isUnsure }
        last = readProblem(result)
        if (last === undefined || !mayBeSentAgain(last)) return told
        isUnsure ||= last.retry === 'check-first'
      } else if (result === 'lost') isUnsure = true
      if (tries >= triesMax) break
      await pause(this.#parts, random.int(1, backoffMaxMs))
    }
    if (isUnsure && isWrite) throw new StoreError('unknown-outcome', 'an answer was lost')
    throw last ?? new StoreError('unavailable', 'no gateway answered')
  }

  /** The next gateway in turn; `unsent` when there is no connection to it. */
  #tryOnce(request: HttpRequest): Promise<HttpAnswer | 'lost' | 'unsent'> {
    const { transport, clock, gateways, tryTimeoutMs } = this.#parts
    const to = gateways[(this.#turn += 1) % gateways.length] ?? ''
    const id = (this.#drawn += 1)
    if (!transport.send(to, { kind: 'request', id, request })) return Promise.resolve('unsent')
    return new Promise((resolve) => {
      const end = (answer?: HttpAnswer): void => {
        timer.cancel()
        this.#pending.delete(id)
        resolve(answer ?? 'lost')
      }
      const timer = clock.setTimer(tryTimeoutMs, () => end())
      this.#pending.set(id, { to, end })
    })
  }

  #onDown(gateway: string): void {
    for (const { to, end } of [...this.#pending.values()]) if (to === gateway) end()
  }
}

/** A gateway that stops is one of several. */
export function mayBeSentAgain({ code, retry }: StoreError): boolean {
  return retry !== 'never' || code === 'closed'
}

/** Of problem details (RFC 9457) what a client goes by. */
export interface ProblemJson {
  readonly code: string
  readonly detail: string
}

/** The problem that an answer names; undefined when there is none. */
export function readProblem({ status, body }: HttpAnswer): StoreError | undefined {
  if (status < 300) return undefined
  const details: ProblemJson = JSON.parse(body)
  return errorOfDetails(details)
}

/** As they stand in an answer, or in an item of a batch. */
export function errorOfDetails({ code, detail }: ProblemJson): StoreError {
  return new StoreError(isStoreErrorCode(code) ? code : 'invalid', detail)
}
