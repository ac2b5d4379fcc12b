/**
 * The node's end of client links: takes requests, has cells and groups carry them out, and answers
 * with one frame a client and turn. Work under way is bounded for each client and in all; above
 * that a request is refused with `overloaded` at once, never queued.
 */
import { StoreError } from '../base/errors.ts'
import { frameBytesMax } from '../base/limits.ts'
import { pack } from '../base/pack.ts'
import { problem, problemOf } from '../base/problem.ts'
import type { Json } from '../cells/body.ts'
import type { CellService } from '../cells/operation.ts'
import type { Clock } from '../ports/clock.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import { callTimeoutMsMax } from '../txn/bounds.ts'
import {
  isAgendaOperation,
  type AgendaAnswer,
  type AgendaOperation,
} from '../queues/agenda-operation.ts'
import { isGroupOperation, type GroupAnswer, type GroupOperation } from '../txn/group-operation.ts'
import {
  writtenBytes,
  type ClientFrame,
  type GetStatus,
  type MalformedRequest,
  type Operation,
  type Replied,
  type Request,
  type Response,
} from '../wire/client-message.ts'
import { replyBytes } from '../wire/client-bytes.ts'
import { encodeClientFrame } from '../wire/client-codec.ts'
import { Outbox } from '../wire/outbox.ts'
import { SeenRequests } from './seen-requests.ts'

export interface ClientServerLimits {
  /** Requests at work for one client. */
  readonly clientRequestsMax: number
  readonly requestsMax: number
  /** What the requests at work bring to be written. */
  readonly writtenBytesMax: number
}

export const defaultClientServerLimits: ClientServerLimits = {
  clientRequestsMax: 5_000,
  requestsMax: 20_000,
  writtenBytesMax: 256 * 1024 * 1024,
}

export interface ClientServerPorts {
  readonly transport: Transport<ClientFrame>
  readonly cells: CellService
  readonly groups: {
    execute(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer>
    answerNow?(operation: GroupOperation): GroupAnswer | undefined
  }
  readonly agendas: {
    execute(operation: AgendaOperation, timeoutMs: number): Promise<AgendaAnswer>
  }
  readonly clock: Clock
  /** What the node says of itself when a client asks. */
  readonly status: () => Json
  /** Told of what went wrong and is no StoreError: a bug. */
  onBug(error: Error): void
}

/** What takes time. */
type Work = Exclude<Operation, GetStatus>

const noFrame = problem('too-large', 'the answer is larger than a frame; ask for less at once', {
  limit: 'frameBytesMax',
  limitValue: frameBytesMax,
})

export class ClientServer {
  readonly #ports: ClientServerPorts
  readonly #limits: ClientServerLimits
  readonly #outbox: Outbox<Response>
  readonly #atWork = new Map<Endpoint, number>()
  /** Of the links that are up. */
  readonly #seen = new Map<Endpoint, SeenRequests>()
  #requests = 0
  #writtenBytes = 0
  #isStopping = false
  #onIdle: (() => void) | undefined

  constructor(ports: ClientServerPorts, limits: ClientServerLimits = defaultClientServerLimits) {
    this.#ports = ports
    this.#limits = limits
    this.#outbox = new Outbox<Response>({
      clock: ports.clock,
      send: (to, responses) => ports.transport.send(to, { kind: 'responses', responses }),
      bodyBytes: replyBytes,
      instead: inFrame,
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
        if (state === 'up') this.#seen.set(client, new SeenRequests())
        else this.#seen.delete(client)
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
    for (const one of frame.malformed ?? []) this.#refuse(client, one)
    const seen = this.#seen.get(client)
    for (const request of frame.requests) {
      if (seen?.add(request.id) === false) continue
      try {
        this.#take(client, request)
      } catch (error) {
        this.#onBug(client, request, error)
      }
    }
  }

  #refuse(client: Endpoint, { id, reason }: MalformedRequest): void {
    const refused = problem('invalid', `the request cannot be read: ${reason}`)
    this.#outbox.add(client, { id, answer: { kind: 'problem', problem: refused }, positions: [] })
  }

  /**
   * Answers with what nobody sends to the next node, and then reports the bug: whoever is told may stop
   * the node, and an answer that has not left would be lost with the link.
   */
  #onBug(client: Endpoint, { id }: Request, error: unknown): void {
    const own = problem('corrupt', 'this node has met an error of its own; see its log')
    this.#outbox.add(client, { id, answer: { kind: 'problem', problem: own }, positions: [] })
    const bug = error instanceof Error ? error : new Error(String(error))
    this.#ports.clock.defer(() => this.#ports.onBug(bug))
  }

  #take(client: Endpoint, request: Request): void {
    const { id, operation } = request
    if (operation.kind === 'status') {
      const status = pack(this.#ports.status())
      return this.#outbox.add(client, { id, answer: { kind: 'status', status }, positions: [] })
    }
    const refused = this.#refusal(client, operation)
    if (refused !== undefined) {
      const answer = { kind: 'problem', problem: problemOf(refused) } as const
      return this.#outbox.add(client, { id, answer, positions: [] })
    }
    const replied = this.#answerNow(operation)
    if (replied === undefined) return void this.#carryOut(client, request, operation)
    const { answer, positions } = replied
    this.#outbox.add(client, { id, answer, positions })
  }

  /** What waits for nothing takes no promise, and is at work for no time. */
  #answerNow(operation: Work): Replied | undefined {
    const { cells, groups } = this.#ports
    if (operation.kind === 'get') return cells.answerNow?.(operation)
    if (operation.kind !== 'read-group') return undefined
    const answer = groups.answerNow?.(operation)
    return answer && { answer, positions: [] }
  }

  #refusal(client: Endpoint, operation: Work): StoreError | undefined {
    if (this.#isStopping) return new StoreError('closed', 'this node is stopping; ask another one')
    const { clientRequestsMax, requestsMax, writtenBytesMax } = this.#limits
    const atWork = this.#atWork.get(client) ?? 0
    const isFull =
      atWork >= clientRequestsMax ||
      this.#requests >= requestsMax ||
      (this.#requests > 0 && this.#writtenBytes + writtenBytes(operation) > writtenBytesMax)
    if (!isFull) return undefined
    return new StoreError('overloaded', 'too much is at work at this node; try again later')
  }

  async #carryOut(client: Endpoint, request: Request, operation: Work): Promise<void> {
    const bytes = writtenBytes(operation)
    this.#count(client, 1, bytes)
    try {
      await this.#answer(client, request, operation)
    } catch (error) {
      this.#onBug(client, request, error)
    }
    this.#count(client, -1, -bytes)
    if (this.#requests === 0) this.#onIdle?.()
  }

  async #answer(client: Endpoint, request: Request, operation: Work): Promise<void> {
    const { id, intents } = request
    const timeoutMs = Math.min(Math.max(1, request.timeoutMs), callTimeoutMsMax)
    const { answer, positions, leaders } = await this.#execute(operation, timeoutMs, intents)
    this.#outbox.add(
      client,
      leaders === undefined ? { id, answer, positions } : { id, answer, positions, leaders },
    )
  }

  async #execute(
    operation: Work,
    timeoutMs: number,
    intents: Request['intents'],
  ): Promise<Replied> {
    if (isGroupOperation(operation)) {
      return { answer: await this.#ports.groups.execute(operation, timeoutMs), positions: [] }
    }
    if (isAgendaOperation(operation)) {
      return { answer: await this.#ports.agendas.execute(operation, timeoutMs), positions: [] }
    }
    const options = intents === undefined ? { timeoutMs } : { timeoutMs, intents }
    return this.#ports.cells.execute(operation, options)
  }

  #count(client: Endpoint, requests: number, bytes: number): void {
    this.#requests += requests
    this.#writtenBytes += bytes
    const atWork = (this.#atWork.get(client) ?? 0) + requests
    if (atWork === 0) this.#atWork.delete(client)
    else this.#atWork.set(client, atWork)
  }
}

/**
 * What no frame holds is not sent: whoever asked would wait for it, and then ask the next node for the same.
 * Answers are weighed as more than they are, so only what seems too large is looked at.
 */
function inFrame(response: Response): Response {
  const { id } = response
  if (replyBytes(response) <= frameBytesMax) return response
  const frame = encodeClientFrame({ kind: 'responses', responses: [response] })
  if (frame.length <= frameBytesMax) return response
  return { id, answer: { kind: 'problem', problem: noFrame }, positions: [] }
}
