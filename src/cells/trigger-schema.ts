/**
 * The tables in which triggers keep what they know (`../triggers`, which reads and writes their rows). They
 * are of the schema of cells: how far a trigger has come changes in one transaction with the cells of a shard.
 *
 * In a shard's own group:
 *   TriggerOffset  (datastore, shard, service, trigger)             how far a trigger has come
 *   MarkedCell     (datastore, shard, service, trigger, added_id)   cells that it has put aside
 *
 * In a group of the service:
 *   TriggerService (service)                    its leader, and the shards of each worker
 *   TriggerWorker  (service, worker)            the workers that run
 *   Trigger        (service, trigger)           its state
 *   TriggerMarks   (service, trigger, shard)    cells put aside, by the last report
 */
import type { Declared } from '../../schema/declared.ts'
import { t } from '../../schema/property.ts'
import { table, type NewShape, type Table } from '../../schema/table.ts'
import type { JsonValue, Uuid } from '../../schema/values.ts'

interface ColumnValues {
  readonly string: string
  readonly int32: number
  readonly integer: number
  readonly bool: boolean
  readonly uuid: Uuid
  readonly json: JsonValue
}

/** Required properties, by their kinds: the type of a table that another module uses is written out. */
type Columns<Kinds extends Readonly<Record<string, keyof ColumnValues>>> = {
  readonly [Name in keyof Kinds]: Declared<
    Kinds[Name],
    'required',
    ColumnValues[Kinds[Name]],
    undefined,
    false
  >
}

type TableOf<
  Name extends string,
  Kinds extends Readonly<Record<string, keyof ColumnValues>>,
  Key extends readonly (keyof Kinds & string)[],
  IsRoot extends boolean = false,
> = Table<NewShape<Name, Columns<Kinds>, Key>, IsRoot>

/** A shard as it was first declared, without what purges have noted in it since; its rows are in one group. */
export const firstShardTable: TableOf<
  'Shard',
  { datastore: 'string'; shard: 'int32' },
  readonly ['datastore', 'shard'],
  true
> = table('Shard', { datastore: t.string(), shard: t.int32() }).key('datastore', 'shard').root()

export const offsetTable: TableOf<
  'TriggerOffset',
  {
    datastore: 'string'
    shard: 'int32'
    service: 'string'
    trigger: 'string'
    generation: 'integer'
    owner: 'string'
    after: 'integer'
    marked: 'integer'
    revision: 'integer'
  },
  readonly ['datastore', 'shard', 'service', 'trigger']
> = table('TriggerOffset', {
  datastore: t.string(),
  shard: t.int32(),
  service: t.string(),
  trigger: t.string(),
  generation: t.integer(),
  owner: t.string(),
  after: t.integer(),
  marked: t.integer(),
  // Counts changes by hand, which the owner of the shard has to take up.
  revision: t.integer(),
})
  .key('datastore', 'shard', 'service', 'trigger')
  .in(firstShardTable)

export const markedTable: TableOf<
  'MarkedCell',
  {
    datastore: 'string'
    shard: 'int32'
    service: 'string'
    trigger: 'string'
    added_id: 'integer'
    row_key: 'uuid'
    column: 'string'
    ref_key: 'integer'
    attempts: 'integer'
    error: 'string'
    is_retried: 'bool'
  },
  readonly ['datastore', 'shard', 'service', 'trigger', 'added_id']
> = table('MarkedCell', {
  datastore: t.string(),
  shard: t.int32(),
  service: t.string(),
  trigger: t.string(),
  added_id: t.integer(),
  row_key: t.uuid(),
  column: t.string(),
  ref_key: t.integer(),
  attempts: t.integer(),
  error: t.string(),
  is_retried: t.bool(),
})
  .key('datastore', 'shard', 'service', 'trigger', 'added_id')
  .in(firstShardTable)

export const serviceTable: TableOf<
  'TriggerService',
  {
    service: 'string'
    term: 'integer'
    leader: 'string'
    generation: 'integer'
    assignment: 'json'
  },
  readonly ['service'],
  true
> = table('TriggerService', {
  service: t.string(),
  term: t.integer(),
  leader: t.string(),
  generation: t.integer(),
  assignment: t.json(),
})
  .key('service')
  .root()

export const workerTable: TableOf<
  'TriggerWorker',
  { service: 'string'; worker: 'string'; beat: 'integer'; released: 'integer' },
  readonly ['service', 'worker']
> = table('TriggerWorker', {
  service: t.string(),
  worker: t.string(),
  beat: t.integer(),
  // The generation up to which it works on no shard that it has had to give up.
  released: t.integer(),
})
  .key('service', 'worker')
  .in(serviceTable)

export const triggerTable: TableOf<
  'Trigger',
  {
    service: 'string'
    trigger: 'string'
    datastore: 'string'
    column: 'string'
    since: 'integer'
    state: 'string'
    reason: 'string'
    marked: 'integer'
    forgiven: 'integer'
    marks_max: 'integer'
    revision: 'integer'
  },
  readonly ['service', 'trigger']
> = table('Trigger', {
  service: t.string(),
  trigger: t.string(),
  datastore: t.string(),
  column: t.string(),
  since: t.integer(),
  state: t.string(),
  reason: t.string(),
  marked: t.integer(),
  // Of the marked cells, those that were there when the trigger was last resumed by hand.
  forgiven: t.integer(),
  marks_max: t.integer(),
  revision: t.integer(),
})
  .key('service', 'trigger')
  .in(serviceTable)

export const marksTable: TableOf<
  'TriggerMarks',
  { service: 'string'; trigger: 'string'; shard: 'int32'; marked: 'integer' },
  readonly ['service', 'trigger', 'shard']
> = table('TriggerMarks', {
  service: t.string(),
  trigger: t.string(),
  shard: t.int32(),
  marked: t.integer(),
})
  .key('service', 'trigger', 'shard')
  .in(triggerTable)

/** In the order in which the schema of cells has them: their numbers follow from it. */
export const triggerTables: readonly Table[] = [
  ...[offsetTable, markedTable],
  ...[serviceTable, workerTable, triggerTable, marksTable],
]
