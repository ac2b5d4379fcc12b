/**
 * The node's end of client links: takes requests, has cells and groups carry them out, and answers
 * with one frame a client and turn. Work under way is bounded for each client and in all; above
 * that a request is refused with `overloaded` at once, never queued.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { pack } from '../base/pack.ts'
import { problem, problemOf } from '../base/problem.ts'
import type { Json } from '../cells/body.ts'
import type { CellService } from '../cells/operation.ts'
import type { Clock } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'
import { Slices, type Line } from '../ports/slices.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import { callTimeoutMsMax } from '../txn/bounds.ts'
import {
  isAgendaOperation,
  type AgendaAnswer,
  type AgendaOperation,
} from '../queues/agenda-operation.ts'
import { isGroupOperation, type GroupAnswer, type GroupOperation } from '../txn/group-operation.ts'
import {
  type ClientFrame,
  type GetStatus,
  type MalformedRequest,
  type Operation,
  type Replied,
  type Reply,
  type Request,
} from '../wire/client-message.ts'
import { Answers } from './answers.ts'
import { defaultIntakeLimits, Intake, type IntakeLimits } from './intake.ts'
import { costOf } from './request-cost.ts'
import { SeenRequests } from './seen-requests.ts'

export interface ClientServerLimits {
  /** Requests at work for one client. */
  readonly clientRequestsMax: number
  readonly requestsMax: number
  /** What the requests at work hold, with what they bring to be written; those of one client. */
  readonly clientBytesMax: number
  readonly bytesMax: number
  readonly intake: IntakeLimits
}

export const defaultClientServerLimits: ClientServerLimits = {
  clientRequestsMax: 5_000,
  requestsMax: 20_000,
  clientBytesMax: 128 * 1024 * 1024,
  bytesMax: 256 * 1024 * 1024,
  intake: defaultIntakeLimits,
}

export interface ClientServerPorts {
  readonly transport: Transport<ClientFrame>
  readonly cells: CellService
  readonly groups: {
    execute(operation: GroupOperation, timeoutMs: number, pace: Pace): Promise<GroupAnswer>
    answerNow?(operation: GroupOperation): GroupAnswer | undefined
  }
  readonly agendas: {
    execute(operation: AgendaOperation, timeoutMs: number, pace: Pace): Promise<AgendaAnswer>
  }
  readonly clock: Clock
  /** Of the process; absent: its own. */
  readonly slices?: Slices
  /** What the node says of itself when a client asks. */
  readonly status: () => Json
  /** Told of what went wrong and is no StoreError: a bug. */
  onBug(error: Error): void
}

/** What takes time. */
type Work = Exclude<Operation, GetStatus>

/** A client whose link is up, or that had one for as long as its requests are at work. */
interface Linked {
  readonly seen: SeenRequests
  readonly line: Line
  isDown: boolean
  requests: number
  bytes: number
}

export class ClientServer {
  readonly #ports: ClientServerPorts
  readonly #limits: ClientServerLimits
  readonly #slices: Slices
  readonly #answers: Answers
  readonly #intake: Intake
  /** Of the links that are up. */
  readonly #linked = new Map<Endpoint, Linked>()
  #requests = 0
  #bytes = 0
  #isStopping = false
  #onIdle: (() => void) | undefined

  constructor(ports: ClientServerPorts, limits: ClientServerLimits = defaultClientServerLimits) {
    this.#ports = ports
    this.#limits = limits
    const { transport, clock, slices = new Slices(clock) } = ports
    this.#slices = slices
    this.#answers = new Answers({ transport, clock, slices })
    this.#intake = new Intake(
      {
        slices,
        take: (client, request) => this.#takeOnce(client, request),
        refuse: (client, malformed) => this.#refuse(client, malformed),
        onBug: (client, request, error) => this.#onBug(client, request, error),
        hold: (client, isHeld) => transport.hold?.(client, isHeld),
      },
      limits.intake,
    )
  }

  start(): void {
    this.#ports.transport.start({
      self: () => ({}),
      admit: () => (this.#isStopping ? 'stopping' : undefined),
      onRefused: () => undefined,
      onLink: (client, state) => {
        if (state === 'up') this.#onUp(client)
        else this.#onDown(client)
      },
      onFrame: (client, frame) => this.#intake.add(client, frame),
      onDrained: (client) => this.#answers.drained(client),
    })
  }

  /** Requests at work. */
  get requests(): number {
    return this.#requests
  }

  /** Bytes that they hold. */
  get heldBytes(): number {
    return this.#bytes
  }

  /** Bytes of requests that wait to be taken up. */
  get waitingBytes(): number {
    return this.#intake.bytes
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

  #onUp(client: Endpoint): void {
    const line = this.#slices.open()
    const seen = new SeenRequests()
    this.#linked.set(client, { seen, line, isDown: false, requests: 0, bytes: 0 })
    this.#intake.open(client, line)
    this.#answers.open(client, line)
  }

  /** What the client had asked for ends: nobody is there to hear it. */
  #onDown(client: Endpoint): void {
    const linked = this.#linked.get(client)
    this.#linked.delete(client)
    this.#intake.close(client)
    if (linked !== undefined) {
      linked.isDown = true
      linked.line.close()
    }
    this.#answers.close(client)
  }

  #takeOnce(client: Endpoint, request: Request): void {
    if (this.#linked.get(client)?.seen.add(request.id) === true) this.#take(client, request)
  }

  #refuse(client: Endpoint, { id, reason }: MalformedRequest): void {
    const refused = problem('invalid', `the request cannot be read: ${reason}`)
    this.#answers.add(client, { id, answer: { kind: 'problem', problem: refused }, positions: [] })
  }

  /**
   * Answers with what nobody sends to the next node, and then reports the bug: whoever is told may stop
   * the node, and an answer that has not left would be lost with the link.
   */
  #onBug(client: Endpoint, { id }: Request, error: unknown): void {
    const own = problem('corrupt', 'this node has met an error of its own; see its log')
    this.#answers.add(client, { id, answer: { kind: 'problem', problem: own }, positions: [] })
    const bug = error instanceof Error ? error : new Error(String(error))
    this.#ports.clock.defer(() => this.#ports.onBug(bug))
  }

  #take(client: Endpoint, request: Request): void {
    const { id, operation } = request
    if (operation.kind === 'status') {
      const status = pack(this.#ports.status())
      return this.#answers.add(client, { id, answer: { kind: 'status', status }, positions: [] })
    }
    const refused = this.#refusal(client, operation)
    if (refused !== undefined) {
      const answer = { kind: 'problem', problem: problemOf(refused) } as const
      return this.#answers.add(client, { id, answer, positions: [] })
    }
    const replied = this.#answerNow(operation)
    if (replied === undefined) return void this.#carryOut(client, request, operation)
    const { answer, positions } = replied
    this.#answers.add(client, { id, answer, positions })
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
    const { clientRequestsMax, requestsMax, clientBytesMax, bytesMax } = this.#limits
    const linked = this.#linked.get(client)
    const { bytes } = costOf(operation)
    const isFull =
      (linked?.requests ?? 0) >= clientRequestsMax ||
      this.#requests >= requestsMax ||
      (this.#requests > 0 && this.#bytes + bytes > bytesMax) ||
      (linked !== undefined && linked.requests > 0 && linked.bytes + bytes > clientBytesMax)
    if (!isFull) return undefined
    return new StoreError('overloaded', 'too much is at work at this node; try again later')
  }

  async #carryOut(client: Endpoint, request: Request, operation: Work): Promise<void> {
    const linked = this.#linked.get(client)
    if (linked === undefined) return
    const { bytes } = costOf(operation)
    const task = linked.line.task()
    this.#count(linked, 1, bytes)
    try {
      const answer = await this.#answer(client, request, operation, task)
      const isGone = linked.isDown && isInVain(answer)
      assert(!isGone, 'COST-4: it was waited for new cells when nobody was there to have them')
    } catch (error) {
      this.#onBug(client, request, error)
    }
    task.end()
    this.#count(linked, -1, -bytes)
    if (this.#requests === 0) this.#onIdle?.()
  }

  async #answer(client: Endpoint, request: Request, operation: Work, pace: Pace): Promise<Reply> {
    const { id, intents } = request
    const timeoutMs = Math.min(Math.max(1, request.timeoutMs), callTimeoutMsMax)
    const { answer, positions, leaders } = await this.#execute(operation, timeoutMs, intents, pace)
    this.#answers.add(
      client,
      leaders === undefined ? { id, answer, positions } : { id, answer, positions, leaders },
    )
    return answer
  }

  async #execute(
    operation: Work,
    timeoutMs: number,
    intents: Request['intents'],
    pace: Pace,
  ): Promise<Replied> {
    if (isGroupOperation(operation)) {
      return { answer: await this.#ports.groups.execute(operation, timeoutMs, pace), positions: [] }
    }
    if (isAgendaOperation(operation)) {
      const answer = await this.#ports.agendas.execute(operation, timeoutMs, pace)
      return { answer, positions: [] }
    }
    const options = intents === undefined ? { timeoutMs, pace } : { timeoutMs, intents, pace }
    return this.#ports.cells.execute(operation, options)
  }

  #count(linked: Linked, requests: number, bytes: number): void {
    this.#requests += requests
    this.#bytes += bytes
    linked.requests += requests
    linked.bytes += bytes
  }
}

/** Nothing came to be in the shards. */
function isInVain(answer: Reply): boolean {
  if (answer.kind !== 'log') return false
  return answer.items.every((page) => page.kind === 'ok' && page.value.cells.length === 0)
}
