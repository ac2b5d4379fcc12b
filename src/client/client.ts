/**
 * The client: sends operations to a node, and to another one when that does not answer, until there
 * is an answer or the time is up. Over ports only, so that the simulator runs it as it is.
 *
 * All that one turn of the loop asks goes in one frame. Calls under way are bounded in number and
 * bytes; above that a call is refused with `overloaded` at once.
 */
import { StoreError } from '../base/errors.ts'
import { unpackBody, type Json } from '../cells/body.ts'
import { isRowKey } from '../cells/cell.ts'
import { Outbox } from '../cells/client-frames.ts'
import { callProblem, operationProblem } from '../cells/operation-check.ts'
import type {
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  ClientFrame,
  GetStatus,
  Request,
  Response,
} from '../cells/operation.ts'
import { errorOf, problem, type Problem } from '../cells/problem.ts'
import { Sessions } from '../cells/session.ts'
import { shardOf } from '../cells/shard.ts'
import { pause, remainingMs } from '../cells/time.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import { isDamageOf, PutCall, ReadCall, type Call, type Sending, type Try } from './call.ts'
import { ClientCells } from './cells.ts'
import { Links } from './links.ts'
import { SeenPositions } from './seen-positions.ts'
import { ShardLeaders } from './shard-leaders.ts'

export interface ClientPorts {
  readonly transport: Transport<ClientFrame>
  readonly clock: Clock
  readonly random: Random
}

export interface ClientLimits {
  /** A call that names no time-out of its own ends after this. */
  readonly timeoutMs: number
  /** One node is given so long, then another one is asked. */
  readonly tryTimeoutMs: number
  /** A node that did not answer is avoided for this long. */
  readonly avoidMs: number
  /** Before the second retry; doubled at each further one up to the maximum, half of it by chance. */
  readonly backoffMs: number
  readonly backoffMaxMs: number
  /** Calls under way. */
  readonly callsMax: number
  /** Bodies of the puts under way. */
  readonly putBytesMax: number
}

export const defaultClientLimits: ClientLimits = {
  timeoutMs: 10_000,
  tryTimeoutMs: 2_000,
  avoidMs: 2_000,
  backoffMs: 20,
  backoffMaxMs: 1_000,
  callsMax: 4_096,
  putBytesMax: 64 * 1024 * 1024,
}

/** A request that has been sent and not answered. */
interface Pending {
  readonly endpoint: Endpoint
  readonly resolve: (result: Try) => void
}

export class Client implements CellService {
  readonly #ports: ClientPorts
  readonly #limits: ClientLimits
  readonly #sessions: Sessions
  readonly #links: Links
  readonly #seen = new SeenPositions()
  readonly #leaders = new ShardLeaders()
  readonly #outbox: Outbox<Request>
  readonly #pending = new Map<number, Pending>()
  #drawn = 0
  #calls = 0
  #putBytes = 0
  #isClosed = false

  constructor(ports: ClientPorts, limits: Partial<ClientLimits> = {}) {
    this.#ports = ports
    this.#limits = { ...defaultClientLimits, ...limits }
    this.#sessions = new Sessions(ports.clock, ports.random)
    this.#links = new Links(ports.clock, this.#limits.avoidMs)
    this.#outbox = new Outbox<Request>({
      clock: ports.clock,
      send: (to, requests) => ports.transport.send(to, { kind: 'requests', requests }),
      bodyBytes: ({ operation }) => putBytes(operation),
      onDropped: (_, requests) => {
        for (const { id } of requests) this.#end(id, { kind: 'unsent' })
      },
    })
    ports.transport.start({
      self: () => ({}),
      admit: () => undefined,
      onRefused: (node, reason) => this.#links.onRefused(node, reason),
      onLink: (node, state, info) => this.#onLink(node, state, info.node),
      onFrame: (node, frame) => this.#onFrame(node, frame),
    })
  }

  /** The cells of a datastore. */
  cells(datastore: string): ClientCells {
    const { clock, random } = this.#ports
    const { timeoutMs } = this.#limits
    return new ClientCells({ service: this, seen: this.#seen, clock, random, timeoutMs }, datastore)
  }

  /** What the node that is asked at present says of itself. */
  async status(timeoutMs: number = this.#limits.timeoutMs): Promise<Json> {
    const { answer } = await this.#carryOut({ kind: 'status' }, { timeoutMs })
    if (answer.kind === 'problem') throw errorOf(answer.problem)
    const status = answer.kind === 'status' ? unpackBody(answer.status) : undefined
    if (status !== undefined) return status
    throw new StoreError('corrupt', 'the node did not answer with its status')
  }

  async execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const refused = operationProblem(operation) ?? callProblem(options)
    if (refused !== undefined) return refusal(refused)
    const answered = await this.#carryOut(operation, options)
    if (operation.kind !== 'put') this.#seen.check(operation.read.atLeast, answered.positions)
    this.#seen.see(operation.datastore, answered.positions)
    return answered
  }

  /** Ends all calls and gives the connections back. Idempotent. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const id of [...this.#pending.keys()]) this.#end(id, { kind: 'lost' })
    this.#links.stop()
    await this.#ports.transport.close()
  }

  async #carryOut(operation: CellOperation | GetStatus, options: CallOptions): Promise<Answered> {
    if (this.#isClosed) return refusal(closed)
    const bytes = putBytes(operation)
    const { callsMax, putBytesMax } = this.#limits
    const isFull = this.#calls >= callsMax || (bytes > 0 && this.#putBytes + bytes > putBytesMax)
    if (isFull) return refusal(tooManyCalls)
    this.#calls += 1
    this.#putBytes += bytes
    try {
      return await this.#tryUntilDone(this.#callOf(operation), operation, options)
    } finally {
      this.#calls -= 1
      this.#putBytes -= bytes
    }
  }

  #callOf(operation: CellOperation | GetStatus): Call {
    if (operation.kind !== 'put') return new ReadCall(operation)
    return new PutCall(operation, this.#sessions.open(operation.items.length))
  }

  async #tryUntilDone(
    call: Call,
    operation: CellOperation | GetStatus,
    options: CallOptions,
  ): Promise<Answered> {
    const { clock } = this.#ports
    const deadlineMs = clock.monotonicMs() + options.timeoutMs
    const waitMs = operation.kind === 'log' ? operation.waitMs : 0
    for (let tries = 1; ; tries++) {
      const tryMs = Math.min(remainingMs(clock, deadlineMs), this.#limits.tryTimeoutMs + waitMs)
      if (call.take(await this.#tryOnce(call, tryMs, operation))) return call.finish(closed)
      if (this.#isClosed) return call.finish(closed)
      const delayMs = this.#backoffMs(tries)
      if (clock.monotonicMs() + delayMs >= deadlineMs) return call.finish(this.#noAnswer(tries))
      if (delayMs > 0) await pause(this.#ports, delayMs)
    }
  }

  /** The first retry is at once: at another node, where there is one. */
  #backoffMs(tries: number): number {
    if (tries === 1) return 0
    const { backoffMs, backoffMaxMs } = this.#limits
    const longestMs = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(tries - 2, 16))
    return this.#ports.random.int(Math.ceil(longestMs / 2), longestMs)
  }

  #noAnswer(attempts: number): Problem {
    const { refusal: reason } = this.#links
    if (reason !== undefined) {
      return problem('unavailable', `no node takes this client; ${reason}`, { attempts })
    }
    const isDown = this.#links.pick(0) === undefined
    const what = isDown ? 'no node could be reached in time' : 'no node answered in time'
    return problem('unavailable', `${what}; try again`, { attempts })
  }

  async #tryOnce(call: Call, tryMs: number, operation: CellOperation | GetStatus): Promise<Try> {
    if (this.#pick(operation) === undefined) await this.#links.whenUp(tryMs)
    const endpoint = this.#pick(operation)
    if (endpoint === undefined) return { kind: 'unsent' }
    const result = await this.#send(endpoint, call.next(), tryMs)
    if (isUseless(result)) this.#links.avoid(endpoint)
    const leaders = result.kind === 'answered' ? result.answered.leaders : undefined
    if (leaders !== undefined && 'datastore' in operation) {
      this.#leaders.note(operation.datastore, leaders)
    }
    return result
  }

  /** Writes go to the leader; of a batch, the first one says where. */
  #pick(operation: CellOperation | GetStatus): Endpoint | undefined {
    const spread = spreadOf(operation)
    const [first] = operation.kind === 'put' ? operation.items : []
    if (operation.kind !== 'put' || first === undefined || !isRowKey(first.rowKey)) {
      return this.#links.pick(spread)
    }
    const leader = this.#leaders.of(operation.datastore, shardOf(first.rowKey))
    return this.#links.pick(spread, leader)
  }

  #send(endpoint: Endpoint, sending: Sending, tryMs: number): Promise<Try> {
    const id = (this.#drawn += 1)
    return new Promise((resolve) => {
      const timer = this.#ports.clock.setTimer(tryMs, () => this.#end(id, { kind: 'lost' }))
      this.#pending.set(id, {
        endpoint,
        resolve: (result) => {
          timer.cancel()
          resolve(result)
        },
      })
      // The node is to say what it knows before it is given up.
      const timeoutMs = Math.max(1, tryMs - Math.min(200, Math.ceil(tryMs / 10)))
      this.#outbox.add(endpoint, { id, timeoutMs, ...sending })
    })
  }

  #end(id: number, result: Try): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    pending?.resolve(result)
  }

  #onLink(node: Endpoint, state: 'up' | 'down', id: string | undefined): void {
    if (this.#isClosed) return
    if (state === 'up') return this.#links.onUp(node, id ?? node)
    this.#links.onDown(node)
    this.#outbox.drop(node)
    for (const [id, { endpoint }] of [...this.#pending]) {
      if (endpoint === node) this.#end(id, { kind: 'lost' })
    }
  }

  #onFrame(node: Endpoint, frame: ClientFrame): void {
    if (frame.kind !== 'responses') return
    for (const response of frame.responses) this.#onResponse(node, response)
  }

  #onResponse(node: Endpoint, response: Response): void {
    const { id, ...answered } = response
    // Late and doubled answers find nobody who waits.
    if (this.#pending.get(id)?.endpoint !== node) return
    this.#end(id, { kind: 'answered', answered })
  }
}

/** Row keys are random, so their digits spread calls over the nodes; equal ones go to the same. */
function spreadOf(operation: CellOperation | GetStatus): number {
  switch (operation.kind) {
    case 'put':
    case 'get':
      return spreadOfRow(operation.items[0]?.rowKey ?? '')
    case 'row':
    case 'versions':
      return spreadOfRow(operation.rowKey)
    case 'log':
      return operation.items[0]?.shard ?? 0
    case 'status':
      return 0
  }
}

function spreadOfRow(rowKey: string): number {
  const digits = Number.parseInt(rowKey.slice(-4), 16)
  return Number.isNaN(digits) ? 0 : digits
}

const closed: Problem = problem('closed', 'this client is closed')

const tooManyCalls: Problem = problem(
  'overloaded',
  'too many calls are under way in this client; wait for some of them',
)

function refusal(refused: Problem): Answered {
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

function putBytes(operation: CellOperation | GetStatus): number {
  if (operation.kind !== 'put') return 0
  return operation.items.reduce((sum, { body }) => sum + body.length, 0)
}

/** The node did not answer, or cannot: it is cut off from the others, or stopping. */
function isUseless(result: Try): boolean {
  if (result.kind !== 'answered') return result.kind === 'lost'
  const { answer } = result.answered
  if (answer.kind === 'problem') return isOutage(answer.problem)
  if (!('items' in answer)) return false
  return answer.items.every((item) => item.kind === 'problem' && isOutage(item.problem))
}

function isOutage(problem: Problem): boolean {
  const { code } = problem
  const isSilent = code === 'unavailable' || code === 'closed' || code === 'unknown-outcome'
  return isSilent || isDamageOf(problem)
}
