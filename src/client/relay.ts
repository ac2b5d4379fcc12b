/**
 * Cells and groups of a cluster, for those who reach it through this process: carries operations out at the
 * nodes, as the client library does, and keeps nothing of them. A batch goes to several nodes at once, each
 * item to the node that can best answer it.
 *
 * GATE-1  Intents pass through as they came, each with its write: however many gateways and nodes a write is
 *         sent through, it takes effect once, and its caller learns so truthfully.
 * GATE-2  What is at work is bounded in number and bytes; above that a request is refused at once.
 */
import { assert } from '../base/assert.ts'
import { problem, type Problem } from '../base/problem.ts'
import { batchOfPart, mergeAnswers, pick, splitBatch, type Part } from '../cells/batch.ts'
import { isRowKey } from '../cells/cell.ts'
import { operationProblem } from '../cells/operation-check.ts'
import type {
  Answer,
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  GetCells,
  GetItem,
  PutCells,
  PutItem,
} from '../cells/operation.ts'
import { shardOf } from '../cells/shard.ts'
import { notAnAnswer, PutCall, ReadCall } from './call.ts'
import { RequestSender } from './request-sender.ts'
import { type ClientLimits } from './client-limits.ts'
import { CommitCall } from './commit-call.ts'
import type { HoldingFigures } from './holding.ts'
import type { LinkView } from './links.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Pace } from '../ports/pace.ts'
import type { Endpoint, Transport } from '../ports/transport.ts'
import {
  isWorklistOperation,
  type WorklistAnswer,
  type WorklistOperation,
} from '../worklist/worklist-operation.ts'
import {
  isGroupOperation,
  type CommitGroup,
  type GroupAnswer,
  type GroupOperation,
  type PassGroup,
} from '../txn/group-operation.ts'
import { timeoutProblem, type Intents } from '../txn/intents.ts'
import { Sessions, type OpenIntents } from '../txn/session.ts'
import type { ClientFrame, Replied } from '../wire/client/client-message.ts'

type Batch = PutCells | GetCells
/** Items, and the node that is best asked for them. */
type NodePart = Part<Endpoint>
/** Where no node is better than the others. */
const anyNode: Endpoint = ''

export interface RelayPorts {
  /** Links to the nodes. */
  readonly transport: Transport<ClientFrame>
  readonly clock: Clock
  readonly random: Random
}

export class Relay implements CellService {
  readonly groups: {
    execute(operation: GroupOperation, timeoutMs: number, pace?: Pace): Promise<GroupAnswer>
  }
  readonly worklists: {
    execute(operation: WorklistOperation, timeoutMs: number, pace?: Pace): Promise<WorklistAnswer>
  }
  readonly #callsMax: number
  readonly #caller: RequestSender
  readonly #sessions: Sessions
  /** End the calls that wait for new cells. */
  readonly #waits = new Set<() => void>()
  #isStopping = false

  constructor(ports: RelayPorts, limits: ClientLimits) {
    this.#callsMax = limits.callsMax
    this.#caller = new RequestSender(ports, limits)
    this.#sessions = new Sessions(ports.clock, ports.random)
    this.groups = { execute: (...asked) => this.#executeGroup(...asked) }
    this.worklists = { execute: (...asked) => this.#executeWorklist(...asked) }
  }

  /** Calls under way at the nodes. */
  get calls(): number {
    const { calls } = this.#caller
    assert(calls <= this.#callsMax, 'GATE-2: more calls are under way than there may be')
    return calls
  }

  /** Calls that wait here until nodes have room for them. */
  get held(): HoldingFigures {
    return this.#caller.held
  }

  nodes(): readonly LinkView[] {
    return this.#caller.nodes()
  }

  async execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const refused = operationProblem(operation) ?? timeoutProblem(options.timeoutMs)
    if (refused !== undefined) return refusal(refused)
    if (this.#isStopping) return refusal(stopping)
    return toCellAnswer(await this.#carryOut(operation, options))
  }

  /** Ends what waits for new cells, and takes nothing more. */
  stop(): void {
    this.#isStopping = true
    for (const end of this.#waits) end()
  }

  /** Ends all calls and gives the links back. */
  close(): Promise<void> {
    this.stop()
    return this.#caller.close()
  }

  #carryOut(operation: CellOperation, options: CallOptions): Promise<Replied> {
    const { timeoutMs, pace } = options
    switch (operation.kind) {
      case 'put':
        return this.#put(operation, options)
      case 'get':
        return this.#inParts(operation, (part) => {
          const batch = batchOfPart(operation, part)
          return this.#caller.carryOut(batch, new ReadCall(batch), timeoutMs, pace)
        })
      case 'log': {
        const call = new ReadCall(operation)
        const answered = this.#caller.carryOut(operation, call, timeoutMs, pace)
        return operation.waitMs === 0 ? answered : this.#unlessStopped(answered)
      }
      default:
        return this.#caller.carryOut(operation, new ReadCall(operation), timeoutMs, pace)
    }
  }

  #unlessStopped(answered: Promise<Replied>): Promise<Replied> {
    return new Promise((resolve, reject) => {
      const end = (): void => resolve(refusal(stopping))
      this.#waits.add(end)
      // A call that is over must not be kept until this process stops: each answer may be of 4 MiB.
      void answered.then(resolve, reject).finally(() => this.#waits.delete(end))
    })
  }

  async #put(operation: PutCells, { timeoutMs, intents }: CallOptions): Promise<Replied> {
    const { length } = operation.items
    if (intents !== undefined && intents.sequences.length !== length) {
      return refusal(problem('invalid', 'there is one sequence for each write, all different'))
    }
    const own = intents === undefined ? this.#sessions.openMany(length) : undefined
    const open = own ?? passedOn(intents)
    let isKnown = true
    const replied = await this.#inParts(operation, (part) => {
      const batch = batchOfPart(operation, part)
      const sequences = pick(open.sequences, part.places)
      assert(sequences.length === batch.items.length, 'GATE-1: a write has lost its intent')
      const settle = (known: boolean): void => void (isKnown &&= known)
      const call = new PutCall(batch, { ...open, sequences, settle })
      return this.#caller.carryOut(batch, call, timeoutMs)
    })
    own?.settle(isKnown)
    return replied
  }

  /** Sends a batch in parts, each to the node that is best asked for it, all at once. */
  async #inParts(batch: Batch, ask: (part: NodePart) => Promise<Replied>): Promise<Replied> {
    if (batch.items.length === 1) return ask({ to: anyNode, places: [0] })
    const parts = this.#split(batch)
    const [only] = parts
    if (parts.length === 1 && only !== undefined) return ask(only)
    const replies = await Promise.all(parts.map(ask))
    const [first] = replies
    const isRefused = replies.every(({ answer }) => answer.kind === 'problem')
    // A problem that all nodes met is one of the whole.
    if (isRefused && first !== undefined) return first
    return mergeAnswers(batch.kind, parts, replies.map(toCellAnswer))
  }

  /** The cells of a shard stay together, so that a read of it is of one moment. */
  #split(batch: Batch): readonly NodePart[] {
    const nodes = new Map<number, Endpoint>()
    return splitBatch<PutItem | GetItem, Endpoint>(batch.items, (item) => {
      // The node refuses an item whose row key is none.
      const shard = isRowKey(item.rowKey) ? shardOf(batch.datastore, item.rowKey) : -1
      const node = nodes.get(shard) ?? this.#caller.findPlace(pickOne(batch, item)) ?? anyNode
      nodes.set(shard, node)
      return node
    })
  }

  async #executeWorklist(
    operation: WorklistOperation,
    timeoutMs: number,
    pace?: Pace,
  ): Promise<WorklistAnswer> {
    const refused = timeoutProblem(timeoutMs) ?? (this.#isStopping ? stopping : undefined)
    if (refused !== undefined) return { kind: 'problem', problem: refused }
    const call = new ReadCall(operation)
    const { answer } = await this.#caller.carryOut(operation, call, timeoutMs, pace)
    const isOfWorklist = answer.kind === 'problem' || isWorklistOperation(answer)
    return isOfWorklist ? answer : { kind: 'problem', problem: notAnAnswer }
  }

  async #executeGroup(
    operation: GroupOperation,
    timeoutMs: number,
    pace?: Pace,
  ): Promise<GroupAnswer> {
    const refused = timeoutProblem(timeoutMs) ?? (this.#isStopping ? stopping : undefined)
    if (refused !== undefined) return { kind: 'problem', problem: refused }
    const { answer } = await (isCommit(operation)
      ? this.#caller.carryOut(operation, new CommitCall(operation), timeoutMs)
      : this.#caller.carryOut(operation, new ReadCall(operation), timeoutMs, pace))
    const isOfGroup = answer.kind === 'problem' || isGroupOperation(answer)
    return isOfGroup ? answer : { kind: 'problem', problem: notAnAnswer }
  }
}

function isCommit(operation: GroupOperation): operation is CommitGroup | PassGroup {
  if (operation.kind === 'pass-group') return operation.operation.kind === 'commit-group'
  return operation.kind === 'commit-group'
}

function pickOne(batch: Batch, item: Batch['items'][number]): CellOperation {
  if (batch.kind === 'get') return { ...batch, items: [item] }
  return 'body' in item ? { ...batch, items: [item] } : { ...batch, items: [] }
}

/** Intents that their sender keeps account of. */
function passedOn(intents: Intents | undefined): OpenIntents {
  assert(intents !== undefined, 'GATE-1: a write has intents')
  return {
    sequences: intents.sequences,
    intents: (sequences) => ({ ...intents, sequences }),
    settle: () => undefined,
  }
}

const stopping: Problem = problem('closed', 'this gateway is stopping; ask another one')

function refusal(refused: Problem): Answered {
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

function toCellAnswer({ answer, positions, leaders }: Replied): Answered {
  if (!isOfCells(answer)) return refusal(notAnAnswer)
  return { answer, positions, ...(leaders !== undefined && { leaders }) }
}

function isOfCells(answer: Replied['answer']): answer is Answer {
  return answer.kind !== 'status' && (answer.kind === 'problem' || !isGroupOperation(answer))
}
