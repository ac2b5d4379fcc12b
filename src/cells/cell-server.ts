/**
 * The node's end of client links: takes requests, has the cell store carry them out, and answers
 * with one frame a client and turn. Work under way is bounded for each client and in all; above
 * that a request is refused with `overloaded` at once, never queued.
 */
import { StoreError } from '../base/errors.ts'
import { pack } from '../base/pack.ts'
import type { Clock } from '../ports/clock.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import { callTimeoutMsMax } from './bounds.ts'
import type { Json } from './body.ts'
import { Outbox } from './client-frames.ts'
import type {
  Answer,
  Answered,
  CellOperation,
  CellService,
  ClientFrame,
  Request,
  Response,
} from './operation.ts'
import { problemOf } from './problem.ts'

export interface CellServerLimits {
  /** Requests at work for one client. */
  readonly clientRequestsMax: number
  readonly requestsMax: number
  /** Bodies of puts at work. */
  readonly putBytesMax: number
}

export const defaultCellServerLimits: CellServerLimits = {
  clientRequestsMax: 5_000,
  requestsMax: 20_000,
  putBytesMax: 256 * 1024 * 1024,
}

export interface CellServerPorts {
  readonly transport: Transport<ClientFrame>
  readonly service: CellService
  readonly clock: Clock
  /** What the node says of itself when a client asks. */
  readonly status: () => Json
}

export class CellServer {
  readonly #ports: CellServerPorts
  readonly #limits: CellServerLimits
  readonly #outbox: Outbox<Response>
  readonly #atWork = new Map<Endpoint, number>()
  #requests = 0
  #putBytes = 0
  #isStopping = false
  #onIdle: (() => void) | undefined

  constructor(ports: CellServerPorts, limits: CellServerLimits = defaultCellServerLimits) {
    this.#ports = ports
    this.#limits = limits
    this.#outbox = new Outbox<Response>({
      clock: ports.clock,
      send: (to, responses) => ports.transport.send(to, { kind: 'responses', responses }),
      bodyBytes: answerBytes,
      // The client's time-out covers it: it asks again.
      onDropped: () => undefined,
    })
  }

  start(): void {
    this.#ports.transport.start({
      self: () => ({}),
      admit: () => (this.#isStopping ? 'stopping' : undefined),
      onRefused: () => undefined,
      onLink: (client, state) => {
        if (state === 'down') this.#outbox.drop(client)
      },
      onFrame: (client, frame) => this.#onFrame(client, frame),
    })
  }

  /** Requests at work. */
  get requests(): number {
    return this.#requests
  }

  /** Refuses what comes from now on, and resolves when what is at work has been answered. */
  drain(): Promise<void> {
    this.#isStopping = true
    return new Promise((resolve) => {
      const last = (): void => this.#ports.clock.defer(() => resolve())
      if (this.#requests === 0) last()
      else this.#onIdle = last
    })
  }

  #onFrame(client: Endpoint, frame: ClientFrame): void {
    // A node's transport has answers only to send; one that comes in is a confused client's.
    if (frame.kind !== 'requests') return
    for (const request of frame.requests) this.#take(client, request)
  }

  #take(client: Endpoint, request: Request): void {
    const { id, operation } = request
    if (operation.kind === 'status') {
      const status = pack(this.#ports.status())
      return this.#outbox.add(client, { id, answer: { kind: 'status', status }, positions: [] })
    }
    const refused = this.#refusal(client, operation)
    if (refused === undefined) return void this.#carryOut(client, request, operation)
    const answer: Answer = { kind: 'problem', problem: problemOf(refused) }
    this.#outbox.add(client, { id, answer, positions: [] })
  }

  #refusal(client: Endpoint, operation: CellOperation): StoreError | undefined {
    if (this.#isStopping) return new StoreError('closed', 'this node is stopping; ask another one')
    const { clientRequestsMax, requestsMax, putBytesMax } = this.#limits
    const atWork = this.#atWork.get(client) ?? 0
    const isFull =
      atWork >= clientRequestsMax ||
      this.#requests >= requestsMax ||
      (this.#requests > 0 && this.#putBytes + putBytes(operation) > putBytesMax)
    if (!isFull) return undefined
    return new StoreError('overloaded', 'too much is at work at this node; try again later')
  }

  async #carryOut(client: Endpoint, request: Request, operation: CellOperation): Promise<void> {
    const { id, intents } = request
    const bytes = putBytes(operation)
    this.#count(client, 1, bytes)
    const timeoutMs = Math.min(Math.max(1, request.timeoutMs), callTimeoutMsMax)
    const options = intents === undefined ? { timeoutMs } : { timeoutMs, intents }
    const answered: Answered = await this.#ports.service.execute(operation, options)
    this.#count(client, -1, -bytes)
    const { answer, positions, leaders } = answered
    this.#outbox.add(
      client,
      leaders === undefined ? { id, answer, positions } : { id, answer, positions, leaders },
    )
    if (this.#requests === 0) this.#onIdle?.()
  }

  #count(client: Endpoint, requests: number, bytes: number): void {
    this.#requests += requests
    this.#putBytes += bytes
    const atWork = (this.#atWork.get(client) ?? 0) + requests
    if (atWork === 0) this.#atWork.delete(client)
    else this.#atWork.set(client, atWork)
  }
}

function putBytes(operation: CellOperation): number {
  if (operation.kind !== 'put') return 0
  return operation.items.reduce((sum, { body }) => sum + body.length, 0)
}

function answerBytes({ answer }: Response): number {
  switch (answer.kind) {
    case 'get':
      return answer.items.reduce(
        (sum, item) => sum + (item.kind === 'ok' ? (item.value?.body.length ?? 0) : 0),
        0,
      )
    case 'row':
    case 'versions':
      return bodiesBytes(answer.page.cells)
    case 'log':
      return answer.items.reduce(
        (sum, item) => sum + (item.kind === 'ok' ? bodiesBytes(item.value.cells) : 0),
        0,
      )
    default:
      return 0
  }
}

function bodiesBytes(cells: readonly { readonly body: Uint8Array }[]): number {
  return cells.reduce((sum, { body }) => sum + body.length, 0)
}
