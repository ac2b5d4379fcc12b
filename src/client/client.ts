/** The client: cells and entity groups of a cluster, through whichever of its nodes answers. */
import { checkOptions } from '../base/arguments.ts'
import { present } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { toStoreError, type Problem } from '../base/problem.ts'
import { unpackBody, type Json } from '../cells/body.ts'
import { operationProblem } from '../cells/operation-check.ts'
import type {
  Answer,
  Answered,
  CallOptions,
  CellOperation,
  CellService,
} from '../cells/operation.ts'
import { cellVersion, openCellTables, placedCellTables } from '../cells/cell-table.ts'
import { shardGroup } from '../cells/shard.ts'
import type { DefinedSchema } from '../../schema/define.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import type { Schema } from '../../schema/model.ts'
import type { Table } from '../../schema/table.ts'
import type { SchemaVersion } from '../../schema/version.ts'
import { noLives } from '../tables/index-life.ts'
import { openTables } from '../tables/open.ts'
import type { Tables } from '../tables/tables.ts'
import {
  isWorklistOperation,
  type WorklistAnswer,
  type AskWorklist,
} from '../worklist/worklist-operation.ts'
import {
  applySchema,
  readSchemaView,
  versionFor,
  type AppliedSchema,
  type SchemaView,
} from '../tables/registry.ts'
import { SchemaWatch } from '../tables/schema-watch.ts'
import { isGroupOperation, type GroupAnswer, type GroupOperation } from '../txn/group-operation.ts'
import { timeoutProblem } from '../txn/intents.ts'
import { Sessions } from '../txn/session.ts'
import { checkSignal, goneBy, signalRules, type SignalOptions } from '../txn/signalled.ts'
import { readMoment } from '../time/moments.ts'
import type { Replied, Reply } from '../wire/client/client-message.ts'
import { notAnAnswer, PutCall, ReadCall, type Call } from './call.ts'
import type { ClientPorts } from './client-ports.ts'
import { RequestSender } from './request-sender.ts'
import { closed } from './in-flight.ts'
import { applicationCallsMax, defaultClientLimits, type ClientLimits } from './client-limits.ts'
import { CellIndexAdmin, checkDatastore } from './cell-indexes.ts'
import { ColumnTtls } from './column-ttls.ts'
import { Cells } from './cells.ts'
import { Datastores } from './datastores.ts'
import { CommitCall } from './commit-call.ts'
import { groupOperationProblem } from './group-check.ts'
import { checkDefined, checkSchemaName, checkModel } from './given-schema.ts'
import { Groups } from './groups.ts'
import { Holds } from './holds.ts'
import { IndexAdmin } from './indexes.ts'
import type { WriteOptions } from './options.ts'
import { checkText, writeRules } from './rules.ts'
import { Queues } from './queues.ts'
import { rejectedPuts, type RejectedPut } from './rejected.ts'
import { SeenPositions } from './seen-positions.ts'

/** Of each client, what carries out its operations on cells. */
const services = new WeakMap<Client, CellService>()

/** The operations that `Cells` makes of its calls, for programs of this project: their forms are the wire's. */
export function getCellService(client: Client): CellService {
  return present(services.get(client), 'every client has one')
}

export class Client {
  /** Entity groups as bytes; `openTables` gives them rows and types. */
  readonly groups: Groups
  /** Messages from group to group, as bytes; `openTables` gives them types. */
  readonly queues: Queues
  readonly #ports: ClientPorts
  readonly #limits: ClientLimits
  readonly #sessions: Sessions
  readonly #seen = new SeenPositions()
  readonly #caller: RequestSender
  readonly #signal: AbortSignal | undefined
  #isClosed = false
  /** An error of closing belongs to the caller of `close`; the signal has none. */
  readonly #onAbort = (): void => void this.close().catch(() => undefined)
  readonly #checkOpen = (): void => {
    if (this.#isClosed) throw toStoreError(closed)
  }
  /** The library gives its own requests the form of an operation. */
  readonly #cells: CellService = {
    execute: (operation, options) => this.#execute(operation, options),
  }
  readonly #conclude = (replied: Replied, operation: CellOperation): Answered =>
    this.#noteSeen(replied, operation)

  /** `signal`: closes it when it is aborted. */
  constructor(ports: ClientPorts, limits: Partial<ClientLimits> = {}, signal?: AbortSignal) {
    this.#ports = ports
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    this.#limits = { ...defaultClientLimits, callsMax: applicationCallsMax, ...limits }
    this.#sessions = new Sessions(ports.clock, ports.random)
    this.#caller = new RequestSender(ports, this.#limits)
    services.set(this, this.#cells)
    this.groups = new Groups(
      (operation, ms, signal) => this.#askGroup(operation, ms, signal),
      this.#seen,
      this.#checkOpen,
    )
    this.queues = new Queues({
      ask: (...asked) => this.#askWorklist(...asked),
      groups: this.groups,
      clock: ports.clock,
      random: ports.random,
      intents: this.#sessions,
      timeoutMs: this.#limits.timeoutMs,
      hasSchema: async (name, options) => (await this.#schemaView(name, options)) !== undefined,
    })
  }

  /** The cells of a datastore. */
  cells(datastore: string): Cells {
    const { clock, random } = this.#ports
    const { timeoutMs, schemaTrustMs: trustMs } = this.#limits
    const own = { service: this.#cells, groups: this.groups, clock, random, timeoutMs }
    const open = (): Tables =>
      placedCellTables(this.groups, { clock, random, timeoutMs })(datastore)
    const ttls = (): ColumnTtls => new ColumnTtls({ ...own, tables: open() }, datastore)
    const indexes = (): CellIndexAdmin => {
      const tables = open()
      return new CellIndexAdmin({ ...own, tables, trustMs, intents: this.#sessions }, datastore)
    }
    const parts = { ...own, seen: this.#seen, checkOpen: this.#checkOpen, indexes, ttls }
    return new Cells(parts, datastore)
  }

  /** Datastores with a number of shards, or a place, of their own. */
  get datastores(): Datastores {
    const { clock, random } = this.#ports
    const { timeoutMs } = this.#limits
    const tables = openCellTables(this.groups, { clock, random, timeoutMs })
    return new Datastores({ service: this.#cells, tables, groups: this.groups, clock, timeoutMs })
  }

  /** Buffered cells that their shards would not have, of a datastore or of all. */
  rejected(
    datastore?: string,
    options: SignalOptions = {},
  ): AsyncGenerator<RejectedPut, void, undefined> {
    if (datastore !== undefined) {
      checkText('client.rejected', 'the datastore', datastore)
      checkDatastore(datastore)
    }
    checkOptions('client.rejected', options, signalRules)
    const { signal } = options
    const ask: AskWorklist = (operation, ms) => this.#askWorklist(operation, ms, signal)
    const { timeoutMs } = this.#limits
    const groups = signal === undefined ? this.groups : this.groups.until(signal)
    return rejectedPuts({ ask, groups, timeoutMs, signal }, datastore)
  }

  /**
   * The tables of a schema, in the version that the cluster has. Rejects with `schema-mismatch` when
   * the cluster has none, or one that lacks something this program declares.
   */
  async tables<const Of extends readonly Table[]>(
    schema: DefinedSchema<Of>,
    options: WriteOptions = {},
  ): Promise<Tables<Of>> {
    checkDefined(schema)
    checkOptions('client.tables', options, writeRules)
    const { clock, random, scope } = this.#ports
    const { timeoutMs, schemaTrustMs: trustMs } = this.#limits
    const askedAt = readMoment(clock)
    const view = await this.#schemaView(schema.name, options)
    const version = versionFor(schema.model, view?.version)
    const look = (): Promise<SchemaView | undefined> => this.#schemaView(schema.name, {})
    const opened = { opened: version, declared: schema.model, view, askedAt }
    const watch = view && new SchemaWatch({ clock, trustMs, look, ...opened, view })
    return openTables(schema, this.groups, {
      clock,
      random,
      version,
      timeoutMs,
      intents: this.#sessions,
      locks: this.groups,
      queues: this.queues,
      isBounded: true,
      ...(scope !== undefined && { scope }),
      ...(watch !== undefined && { watch }),
    })
  }

  async #schemaView(name: string, options: WriteOptions): Promise<SchemaView | undefined> {
    const { clock } = this.#ports
    const { timeoutMs = this.#limits.timeoutMs, signal } = options
    // As it is in every cluster, it need not be asked for.
    if (name === cellVersion.schema.name) {
      this.#checkOpen()
      return cellView
    }
    return readSchemaView(this.groups, name, { clock, timeoutMs, signal })
  }

  /** The version of a schema that the cluster has now; undefined when it has none of that name. */
  async schemaVersion(
    name: string,
    options: WriteOptions = {},
  ): Promise<SchemaVersion | undefined> {
    checkSchemaName('client.schemaVersion', name)
    checkOptions('client.schemaVersion', options, writeRules)
    return (await this.#schemaView(name, options))?.version
  }

  /**
   * Gives the cluster a schema, as its first version or its next one, while rows and programs of the
   * present one are there. Rejects with `schema-mismatch` when a difference cannot be made so.
   */
  async applySchema(
    given: Schema | DefinedSchema,
    options: WriteOptions = {},
  ): Promise<AppliedSchema> {
    const schema = checkModel(given)
    checkOptions('client.applySchema', options, writeRules)
    const { clock, random } = this.#ports
    const { timeoutMs = this.#limits.timeoutMs, signal } = options
    const intents = this.#sessions
    this.#checkOpen()
    if (schema.name === cellVersion.schema.name) return ownSchema(schema)
    return applySchema(this.groups, schema, { clock, random, intents, timeoutMs, signal })
  }

  /** Legal holds: of groups, of tables there, of cells. */
  get holds(): Holds {
    const { clock, random } = this.#ports
    const { timeoutMs } = this.#limits
    return new Holds({ groups: this.groups, clock, random, intents: this.#sessions, timeoutMs })
  }

  /** The indexes of a schema, to be looked after. */
  indexes(schema: string): IndexAdmin {
    checkSchemaName('client.indexes', schema)
    const { clock, random } = this.#ports
    const { timeoutMs } = this.#limits
    return new IndexAdmin(schema, {
      groups: this.groups,
      clock,
      random,
      intents: this.#sessions,
      timeoutMs,
      view: (options) => this.#schemaView(schema, options),
    })
  }

  /** The status of the node that this client asks at present, in that node's own words. */
  async status(given: number | WriteOptions = {}): Promise<Json> {
    const options = typeof given === 'number' ? { timeoutMs: given } : given
    checkOptions('client.status', options, writeRules)
    const { timeoutMs = this.#limits.timeoutMs, signal } = options
    const operation = { kind: 'status' } as const
    const call = new ReadCall(operation)
    checkSignal(signal)
    const { answer } = await this.#caller.carryOut(operation, call, timeoutMs, goneBy(signal))
    checkSignal(signal)
    if (answer.kind === 'problem') throw toStoreError(answer.problem)
    const status = answer.kind === 'status' ? unpackBody(answer.status) : undefined
    if (status !== undefined) return status
    throw new StoreError('corrupt', 'the node did not answer with its status')
  }

  #execute(operation: CellOperation, { timeoutMs, signal }: CallOptions): Promise<Answered> {
    const refused = operationProblem(operation) ?? timeoutProblem(timeoutMs)
    if (refused !== undefined) return Promise.resolve(refusal(refused))
    const call = this.#makeCall(operation)
    return this.#caller.carryOutAs(operation, call, timeoutMs, this.#conclude, goneBy(signal))
  }

  /** Notes the answer's positions for this client's session, and gives the session its answer. */
  #noteSeen(replied: Replied, operation: CellOperation): Answered {
    const { positions } = replied
    if ('read' in operation) this.#seen.check(operation.read.atLeast, positions)
    for (const [shard, position] of positions) {
      this.#seen.see(shardGroup(operation.datastore, shard), position)
    }
    return toCellAnswer(replied)
  }

  /** Ends all calls and gives the connections back. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#signal?.removeEventListener('abort', this.#onAbort)
    const handlers = this.queues.close()
    await this.#caller.close()
    await handlers
  }

  #makeCall(operation: CellOperation): Call {
    if (operation.kind !== 'put') return new ReadCall(operation)
    return new PutCall(operation, this.#sessions.openMany(operation.items.length))
  }

  async #askWorklist(
    ...[operation, timeoutMs, signal]: Parameters<AskWorklist>
  ): Promise<WorklistAnswer> {
    const refused = timeoutProblem(timeoutMs)
    if (refused !== undefined) return { kind: 'problem', problem: refused }
    const call = new ReadCall(operation)
    const { answer } = await this.#caller.carryOut(operation, call, timeoutMs, goneBy(signal))
    const isFair = answer.kind === 'problem' || isWorklistOperation(answer)
    return isFair ? answer : { kind: 'problem', problem: notAnAnswer }
  }

  #askGroup(
    operation: GroupOperation,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<GroupAnswer> {
    const refused = timeoutProblem(timeoutMs) ?? groupOperationProblem(operation)
    if (refused !== undefined) return Promise.resolve({ kind: 'problem', problem: refused })
    const call =
      operation.kind === 'commit-group' ? new CommitCall(operation) : new ReadCall(operation)
    return this.#caller.carryOutAs(operation, call, timeoutMs, toGroupAnswer, goneBy(signal))
  }
}

function refusal(refused: Problem): Answered {
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

const cellView: SchemaView = { version: cellVersion, lives: noLives }

function toCellAnswer({ answer, positions }: Replied): Answered {
  return isOfCells(answer) ? { answer, positions } : refusal(notAnAnswer)
}

function isOfCells(answer: Reply): answer is Answer {
  if (answer.kind === 'problem') return true
  return answer.kind !== 'status' && !isOfGroup(answer) && !isWorklistOperation(answer)
}

function toGroupAnswer({ answer }: Replied): GroupAnswer {
  return isOfGroup(answer) ? answer : { kind: 'problem', problem: notAnAnswer }
}

function isOfGroup(answer: Reply): answer is GroupAnswer {
  return answer.kind === 'problem' || isGroupOperation(answer)
}

/** Cells have the same schema in every cluster, whatever programs say. */
async function ownSchema(schema: Schema): Promise<AppliedSchema> {
  if (fingerprintOf(schema) === cellVersion.fingerprint) {
    return { kind: 'same', version: cellVersion }
  }
  const message = `schema ${schema.name} is the one that cells are stored by, and stays as it is; give yours another name`
  throw new StoreError('invalid', message)
}
