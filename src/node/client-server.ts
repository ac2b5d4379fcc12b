/**
 * The node's end of client links: takes requests, has cells and groups carry them out, and answers with one
 * frame a client and turn. `admission.ts` decides when a request begins. Requests that wait or are at work
 * are bounded, for each client and in all; above the bound the node refuses a request with `overloaded` at
 * once.
 */
import { assert } from '../base/assert.ts'
import { pack } from '../base/pack.ts'
import { problem, type Problem } from '../base/problem.ts'
import type { Json } from '../cells/body.ts'
import type { CellService } from '../cells/operation.ts'
import type { Clock } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'
import { Slices, type Line, type Task } from '../ports/slices.ts'
import type { Endpoint, LinkInfo, Transport } from '../ports/transport.ts'
import { callTimeoutMsMax } from '../txn/limits.ts'
import {
  isWorklistOperation,
  type WorklistAnswer,
  type WorklistOperation,
} from '../worklist/worklist-operation.ts'
import { isGroupOperation, type GroupAnswer, type GroupOperation } from '../txn/group-operation.ts'
import {
  isWrite,
  type CancelRequest,
  type ClientFrame,
  type GetStatus,
  type MalformedRequest,
  type Operation,
  type Replied,
  type Reply,
  type Request,
} from '../wire/client/client-message.ts'
import { Admission, type LaneName, type Pass } from './admission.ts'
import { Answers } from './answers.ts'
import type { NoteBug } from './bugs.ts'
import { Elsewhere } from './elsewhere.ts'
import { defaultIntakeLimits, Intake, type IntakeLimits } from './intake.ts'
import { classifyEnd, withRetryAfter } from './overloaded.ts'
import { computeCost } from './request-cost.ts'
import { SeenRequests } from './seen-requests.ts'
import type { SetLists } from './set-lists.ts'
import type { WorkEnd } from './work-limit.ts'

export interface ClientServerLimits {
  /** Requests at work for one client. */
  readonly clientRequestsMax: number
  readonly requestsMax: number
  /** The most bytes that the requests of one client hold at work, with what they bring to be written. */
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
  readonly worklists: {
    execute(operation: WorklistOperation, timeoutMs: number, pace: Pace): Promise<WorklistAnswer>
  }
  readonly clock: Clock
  /** Of the process; absent: its own. */
  readonly slices?: Slices
  /** Of all that clients ask of this process, whichever way it comes; absent: one of its own. */
  readonly admission?: Admission
  /** Whether clients had better ask another node for now; absent: never. */
  readonly isReturning?: () => boolean
  /** Tells clients the nodes of the cluster; absent: this process tells none. */
  readonly lists?: Pick<SetLists, 'open' | 'close'>
  /** The status that the node gives to a client that asks. */
  readonly status: () => Json
  /** For a thrown error that is no StoreError: returns the problem that answers the client. */
  readonly noteBug: NoteBug
}

/** The operations that take time. */
type Work = Exclude<Operation, GetStatus | CancelRequest>

/** A client whose link is up, or that had one for as long as its requests are at work. */
interface Linked {
  readonly seen: SeenRequests
  readonly line: Line
  readonly elsewhere: Elsewhere
  /** At work, by the numbers of their requests. */
  readonly tasks: Map<number, Task>
  /** Those that wait for their turn, by the same numbers. */
  readonly waiting: Map<number, Asked>
  isDown: boolean
  requests: number
  bytes: number
}

/** A request that waits or is at work. */
interface Asked {
  readonly client: Endpoint
  readonly linked: Linked
  readonly request: Request
  readonly operation: Work
  readonly bytes: number
  /** The client does not wait for it any more; it has ended. */
  isGone: boolean
}

const stopping: Problem = problem('closed', 'this node is stopping; ask another one')
const returning: Problem = problem(
  'closed',
  'this node has been away and catches up; ask another one',
)

export class ClientServer {
  readonly #ports: ClientServerPorts
  readonly #limits: ClientServerLimits
  readonly #admission: Admission
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
    this.#admission = ports.admission ?? new Admission(ports.clock)
    const { transport, clock, slices = new Slices(clock) } = ports
    this.#slices = slices
    this.#answers = new Answers({ transport, clock, slices })
    this.#intake = new Intake(
      {
        slices,
        clock,
        take: (client, request, sinceMs) => this.#takeOnce(client, request, sinceMs),
        cancel: (client, request) => this.#cancel(client, request),
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
      onLink: (client, state, info) => {
        if (state === 'up') this.#onUp(client, info)
        else this.#onDown(client)
      },
      onFrame: (client, frame) => this.#intake.add(client, frame),
      onDrained: (client) => this.#answers.drained(client),
    })
  }

  /** Requests that wait or are at work. */
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
    this.#admission.refuseAll(stopping)
    return new Promise((resolve) => {
      const last = (): void => this.#ports.clock.defer(() => resolve())
      if (this.#requests === 0) last()
      else this.#onIdle = last
    })
  }

  #onUp(client: Endpoint, info: LinkInfo): void {
    const line = this.#slices.open()
    const seen = new SeenRequests()
    const elsewhere = new Elsewhere(this.#ports.clock)
    const none = { isDown: false, requests: 0, bytes: 0 }
    const open = { tasks: new Map<number, Task>(), waiting: new Map<number, Asked>() }
    this.#linked.set(client, { seen, line, elsewhere, ...open, ...none })
    this.#intake.open(client, line)
    this.#answers.open(client, line)
    this.#ports.lists?.open(client, info)
  }

  /** Ends the requests of a client that has gone: their answers have no reader. */
  #onDown(client: Endpoint): void {
    this.#ports.lists?.close(client)
    const linked = this.#linked.get(client)
    this.#linked.delete(client)
    this.#intake.close(client)
    if (linked !== undefined) {
      linked.isDown = true
      linked.line.close()
      for (const asked of [...linked.waiting.values()]) this.#leave(asked)
    }
    this.#answers.close(client)
  }

  #takeOnce(client: Endpoint, request: Request, sinceMs: number): void {
    if (this.#linked.get(client)?.seen.add(request.id) === true)
      this.#take(client, request, sinceMs)
  }

  /** One that has not been taken up is not taken up any more; one that is not known is over. */
  #cancel(client: Endpoint, { request }: CancelRequest): void {
    const linked = this.#linked.get(client)
    const waiting = linked?.waiting.get(request)
    if (waiting !== undefined) this.#leave(waiting)
    linked?.tasks.get(request)?.cancel()
    linked?.seen.add(request)
  }

  /** It keeps its place in its lane, which is for a bounded time, and holds nothing else. */
  #leave(asked: Asked): void {
    asked.isGone = true
    asked.linked.waiting.delete(asked.request.id)
    this.#end(asked)
  }

  #refuse(client: Endpoint, { id, reason }: MalformedRequest): void {
    const refused = problem('invalid', `the request cannot be read: ${reason}`)
    this.#answers.add(client, { id, answer: { kind: 'problem', problem: refused }, positions: [] })
  }

  /** After this answer no client sends the request to the next node: it would meet the same error there. */
  #onBug(client: Endpoint, { id }: Request, error: unknown): void {
    this.#tell(client, id, this.#ports.noteBug('request', error))
  }

  #take(client: Endpoint, request: Request, sinceMs: number): void {
    const { id, operation } = request
    if (operation.kind === 'status') {
      const status = pack(this.#ports.status())
      return this.#answers.add(client, { id, answer: { kind: 'status', status }, positions: [] })
    }
    if (operation.kind === 'cancel') return this.#cancel(client, operation)
    const refused = this.#refusal(client, operation)
    if (refused !== undefined) return this.#tell(client, id, refused)
    const linked = this.#linked.get(client)
    if (linked === undefined) return
    const { bytes } = computeCost(operation)
    const asked: Asked = { client, linked, request, operation, bytes, isGone: false }
    this.#count(linked, 1, bytes)
    // A request that asks to wait is not refused because it has waited; it has less of its time left.
    const waitedMs = isWait(operation) ? this.#admission.nowMs - sinceMs : 0
    const isWaiting = this.#admission.enter({
      lane: pickLane(operation),
      sinceMs: sinceMs + waitedMs,
      behind: this.#intake.waiting,
      timeoutMs: Math.min(Math.max(1, request.timeoutMs), callTimeoutMsMax) - waitedMs,
      begin: (leftMs) => this.#begin(asked, leftMs),
      refuse: (why) => {
        if (asked.isGone) return
        linked.waiting.delete(id)
        this.#tell(client, id, why)
        this.#end(asked)
      },
    })
    if (isWaiting) linked.waiting.set(id, asked)
  }

  #tell(client: Endpoint, id: number, why: Problem): void {
    this.#answers.add(client, { id, answer: { kind: 'problem', problem: why }, positions: [] })
  }

  /**
   * True when it is at work; false when that was all. A request whose client has stopped waiting does not
   * begin.
   */
  #begin(asked: Asked, leftMs: number): boolean {
    if (asked.isGone) return false
    asked.linked.waiting.delete(asked.request.id)
    try {
      if (this.#start(asked, leftMs)) return true
    } catch (error) {
      this.#onBug(asked.client, asked.request, error)
    }
    this.#end(asked)
    return false
  }

  #start(asked: Asked, leftMs: number): boolean {
    const { client, linked, request, operation } = asked
    assert(!asked.isGone && !linked.isDown, 'COST-4: it begins, and nobody waits for it')
    const replied = this.#answerNow(operation)
    if (replied === undefined) {
      const pass = isWrite(operation) ? this.#admission.beginWork() : undefined
      void this.#carryOut(asked, leftMs, pass)
      return true
    }
    const { answer, positions } = replied
    this.#answers.add(client, { id: request.id, answer, positions })
    return false
  }

  /** An operation that waits for nothing takes no promise, and is at work for no time. */
  #answerNow(operation: Work): Replied | undefined {
    const { cells, groups } = this.#ports
    if (operation.kind === 'get') return cells.answerNow?.(operation)
    if (operation.kind !== 'read-group') return undefined
    const answer = groups.answerNow?.(operation)
    return answer && { answer, positions: [] }
  }

  #refusal(client: Endpoint, operation: Work): Problem | undefined {
    if (this.#isStopping) return stopping
    const linked = this.#linked.get(client)
    if (this.#ports.isReturning?.() === true && linked?.elsewhere.mayAsk() === true) {
      return returning
    }
    const { clientRequestsMax, requestsMax, clientBytesMax, bytesMax } = this.#limits
    const { bytes } = computeCost(operation)
    const isFull =
      (linked?.requests ?? 0) >= clientRequestsMax ||
      this.#requests >= requestsMax ||
      (this.#requests > 0 && this.#bytes + bytes > bytesMax) ||
      (linked !== undefined && linked.requests > 0 && linked.bytes + bytes > clientBytesMax)
    return isFull ? this.#admission.overloaded() : undefined
  }

  async #carryOut(asked: Asked, leftMs: number, pass: Pass | undefined): Promise<void> {
    const { client, linked, request } = asked
    const task = linked.line.task()
    linked.tasks.set(request.id, task)
    let end: WorkEnd = 'failed'
    try {
      const replied = await this.#execute(asked, leftMs, task)
      const { answer } = replied
      end = classifyEnd(answer)
      if (!task.isGone) this.#answer(asked, replied)
      const isGone = task.isGone && isInVain(answer)
      assert(!isGone, 'COST-4: it was waited for new cells when nobody was there to have them')
    } catch (error) {
      this.#onBug(client, request, error)
    }
    task.end()
    linked.tasks.delete(request.id)
    pass?.leave(end)
    this.#end(asked)
  }

  #end({ linked, bytes }: Asked): void {
    this.#count(linked, -1, -bytes)
    if (this.#requests === 0) this.#onIdle?.()
  }

  #answer({ client, request, operation }: Asked, replied: Replied): void {
    const { id } = request
    const { positions, leaders } = replied
    const answer = withRetryAfter(replied.answer, operation, this.#admission)
    this.#answers.add(
      client,
      leaders === undefined ? { id, answer, positions } : { id, answer, positions, leaders },
    )
  }

  async #execute(
    { operation, request: { intents } }: Asked,
    timeoutMs: number,
    pace: Pace,
  ): Promise<Replied> {
    if (isGroupOperation(operation)) {
      return { answer: await this.#ports.groups.execute(operation, timeoutMs, pace), positions: [] }
    }
    if (isWorklistOperation(operation)) {
      const answer = await this.#ports.worklists.execute(operation, timeoutMs, pace)
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

function isWait(operation: Work): boolean {
  return 'waitMs' in operation && operation.waitMs > 0
}

function pickLane(operation: Work): LaneName {
  return isWrite(operation) ? 'writes' : 'reads'
}
