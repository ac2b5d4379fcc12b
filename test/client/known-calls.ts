/**
 * Calls of the library, each with what it takes in each of its places and options, told by hand: tests give
 * other things and expect to hear of it.
 */
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { isPlain } from '../../src/base/words.ts'
import type { Client } from '../../src/client/client.ts'
import { queue } from '../../src/tables/queue-types.ts'
import { openTables } from '../../src/tables/open.ts'
import { rootKey, type RootKey, type TablesOptions } from '../../src/tables/tables.ts'

const User = table('User', { user: t.integer(), born: t.timestamp().optional() }).key('user').root()
const Photo = table('Photo', { user: t.integer(), name: t.string(), at: t.timestamp() })
  .key('user', 'name')
  .in(User)
  .localIndex('PhotosByTime', ['user', 'at'])
  .globalIndex('PhotosByName', ['name'])
const photos = defineSchema('Photos', [User, Photo])
const jobs = queue<number>()('jobs', User)

/** Whether options are what the call takes, as far as can be told without asking. */
export function areRight({ optionsAt, options }: KnownCall, given: readonly unknown[]): boolean {
  const asked: unknown = optionsAt === undefined ? undefined : given[optionsAt]
  if (asked === undefined) return true
  if (!isMembers(asked)) return false
  return Object.entries(asked).every(([name, value]: [string, unknown]) => {
    return Object.hasOwn(options, name) && (value === undefined || options[name]?.(value))
  })
}

/** The schema that they are of. */
export async function applyPhotos(client: Client): Promise<void> {
  await client.applySchema(photos.model)
}

/** Typed tables on this client. */
export function openPhotos(client: Client, ports: Pick<TablesOptions, 'clock' | 'random'>): object {
  const { groups, queues } = client
  return openTables(photos, groups, { ...ports, locks: groups, queues })
}

type Takes = (value: unknown) => boolean

export interface KnownCall {
  readonly name: string
  /** A right value for each place. */
  readonly given: readonly unknown[]
  /** By place: other values that may stand there. */
  readonly places: readonly Takes[]
  /** The place of the options, and the values that each may have. */
  readonly optionsAt?: number
  readonly options: Readonly<Record<string, Takes>>
  make(on: On, given: readonly unknown[]): unknown
}

export interface On {
  readonly client: Client
  /** Tables of the schema that the calls are about. */
  readonly db: object
}

const isWhole = (value: unknown, least: number, most: number): boolean =>
  Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most
const no: Takes = () => false
const isText: Takes = (value) => typeof value === 'string'
const isFlag: Takes = (value) => typeof value === 'boolean'
const isFunction: Takes = (value) => typeof value === 'function'
/** Those that clocks give in seconds or milliseconds are none. */
const isMoment: Takes = (value) =>
  typeof value === 'bigint' ||
  isWhole(value, 0, 946_684_799) ||
  isWhole(value, 946_684_800_000_000, Number.MAX_SAFE_INTEGER)
const isTexts: Takes = (value) => Array.isArray(value) && value.every(isText)
const isColumn: Takes = (value) => isText(value) && /^[a-z_][a-z0-9_]{0,63}$/i.test(String(value))
/** The answer to a batch says for each item what is wrong with it. */
const isFilled: Takes = (value) => Array.isArray(value) && value.length > 0
const isShards: Takes = (value) =>
  Array.isArray(value) && value.every((one) => isWhole(one, 0, 4_095))
const isPositive: Takes = (value) => typeof value === 'number' && value >= 1 && value <= 300_000
const isNotNegative: Takes = (value) => isWhole(value, 0, Number.MAX_SAFE_INTEGER)
const isPage: Takes = (value) => isWhole(value, 1, 1_000)
const isCount: Takes = (value) => isPage(value) || value === Infinity
const isLevel: Takes = (value) => value === 'current' || value === 'snapshot'

const isSignal: Takes = (value) => value instanceof AbortSignal
const write = { timeoutMs: isPositive, signal: isSignal }
const signal = { signal: isSignal }
const read = { ...write, read: isLevel }
const scan = { reverse: isFlag, limit: isPage, cursor: no }
const purge = { ...write, before: isMoment, column: isColumn, keepLatest: isFlag }
const upkeep = {
  graceMs: (value: unknown) => typeof value === 'number' && value >= 0 && value < 1e9,
  onProgress: isFunction,
  signal: isSignal,
}
const build = { ...upkeep, rowsAtOnce: isPage }
const log = { ...read, limit: isPage, waitMs: isNotNegative }

const rowKey = '22222222-2222-4222-8222-222222222221'
const cell = { rowKey, column: 'B', refKey: 1, body: { k: 'a' } }
const name = { rowKey, column: 'B', refKey: 1 }
const place = { kind: 'after', shard: 1, addedId: 0 }
/** Names a group of these tables. */
export const photosUser: RootKey = rootKey(User, { user: 1 })
const user = photosUser

function on(
  called: string,
  holder: (on: On) => object,
  given: readonly unknown[],
  places: readonly Takes[],
  options?: Readonly<Record<string, Takes>>,
): KnownCall {
  const method = called.slice(called.lastIndexOf('.') + 1)
  return {
    name: called,
    given,
    places,
    ...(options !== undefined && { optionsAt: given.length - 1 }),
    options: options ?? {},
    make: (client, asked) => apply(holder(client), method, asked),
  }
}

function apply(holder: object, method: string, given: readonly unknown[]): unknown {
  const called: unknown = Reflect.get(holder, method)
  if (typeof called !== 'function') throw new Error(`${method} is no method`)
  const made: unknown = Reflect.apply(called, holder, given)
  return isGenerator(made) ? made.next() : made
}

function isGenerator(value: unknown): value is AsyncGenerator {
  // A call that gives pages is a promise too.
  return typeof value === 'object' && value !== null && 'next' in value
}

/** Inside a transaction, by its handle. */
function inside(
  method: string,
  given: readonly unknown[],
  places: readonly Takes[],
  options?: Readonly<Record<string, Takes>>,
): KnownCall {
  const known = on(method, () => ({}), given, places, options)
  return {
    ...known,
    name: `tx.${method}`,
    make: ({ db }, asked) =>
      apply(db, 'transaction', [user, async (tx: object) => apply(tx, method, asked)]),
  }
}

const cells = ({ client }: On): object => client.cells('trips')
const groups = ({ client }: On): object => client.groups
const queues = ({ client }: On): object => client.queues
const letters = ({ client }: On): object => client.queues.deadLetters('jobs')
const db = (held: On): object => held.db
const ofUser = (held: On): object => {
  const group = apply(held.db, 'of', [user])
  if (typeof group === 'object' && group !== null) return group
  throw new Error('db.of gives no handle')
}
const photo = { user: 1, name: 'a' }
const run = async (): Promise<number> => 1
const intent = { session: 's', sequence: 1, expiresAt: 1 }

const call = { ...write, atLeast: isNotNegative }
const transaction = {
  ...call,
  from: (value: unknown) => value === 'current' || value === 'snapshot',
  intent: no,
  rerunsMax: isNotNegative,
  lock: isText,
}
const handle = {
  ...{ batch: isPage, concurrency: isPage, attemptsMax: isPage, retryMs: isPositive },
  ...{ retryMaxMs: isPositive, timeoutMs: isPositive, onFailed: isFunction, signal: isSignal },
}
const globalScan = { ...scan, verify: isFlag, timeoutMs: isPositive, signal: isSignal, level: no }
const query = {
  ...{ ...read, select: isTexts, columns: isTexts, order: isText, reverse: isFlag },
  ...{ cursor: isText, verify: isFlag, limit: isPage },
}

export const knownCalls: readonly KnownCall[] = [
  on('cells.put', cells, [cell, {}], [no], write),
  on('cells.putMany', cells, [[cell], {}], [isFilled], write),
  on('cells.get', cells, [name, {}], [no], read),
  on('cells.getMany', cells, [[name], {}], [isFilled], read),
  on('cells.latestAll', cells, [rowKey, {}], [no], { ...read, limit: isPage, cursor: isColumn }),
  on('cells.versions', cells, [rowKey, 'B', {}], [no, isColumn], {
    ...{ ...read, limit: isPage, cursor: isNotNegative, reverse: isFlag },
  }),
  on('cells.shardLog', cells, [1, {}], [(one) => isWhole(one, 0, 4_095)], {
    ...{ ...log, after: isNotNegative, since: isMoment },
  }),
  // An item that is none is answered by itself.
  on('cells.shardLogs', cells, [[place], {}], [isFilled], log),
  on('cells.tail', cells, [{}], [], {
    ...{
      shards: isShards,
      after: (value) => value instanceof Map,
      since: isMoment,
      waitMs: isNotNegative,
      signal: isSignal,
    },
  }),
  on('cells.purgeShard', cells, [1, { before: 1 }], [(one) => isWhole(one, 0, 4_095)], {
    ...{ ...purge, after: isNotNegative, limit: isPage },
  }),
  on('cells.purge', cells, [{ before: 1, shards: [1, 2] }], [], { ...purge, shards: isShards }),
  on(
    'index.query',
    ({ client }) => client.cells('trips').index('ix'),
    [{ k: 'a' }, {}],
    [isMembers],
    {
      ...query,
    },
  ),
  on('cells.indexes.build', ({ client }) => client.cells('trips').indexes, ['ix', {}], [isText], {
    ...{ ...build, shards: isShards },
  }),
  on(
    'cells.indexes.drop',
    ({ client }) => client.cells('trips').indexes,
    ['ix', {}],
    [isText],
    build,
  ),
  on('cells.indexes.list', ({ client }) => client.cells('trips').indexes, [{}], [], write),
  on('cells.indexes.apply', ({ client }) => client.cells('trips').indexes, [{}, {}], [no], write),
  on('indexes.list', ({ client }) => client.indexes('Photos'), [{}], [], write),
  on('indexes.build', ({ client }) => client.indexes('Photos'), ['ix', {}], [isText], build),
  on('client.tables', ({ client }) => client, [photos, {}], [no], write),
  on('client.schemaVersion', ({ client }) => client, ['Photos', {}], [isText], write),
  on('client.applySchema', ({ client }) => client, [photos.model, {}], [no], write),
  on('client.indexes', ({ client }) => client, ['Photos'], [isText]),
  on('client.rejected', ({ client }) => client, ['trips', {}], [isText], signal),
  on('client.status', ({ client }) => client, [{}], [], write),
  on('client.status', ({ client }) => client, [1_000], [(one) => isPositive(one) || isEmpty(one)]),
  on('groups.outcome', groups, ['g', intent, 1_000, {}], [isText, no, isPositive], signal),
  on('groups.list', groups, ['g', undefined, 10, 1_000, {}], [isText], signal),
  on('queues.list', queues, [{}], [], signal),
  on('queues.waiting', queues, ['jobs', 10, {}], [isText, isPage], signal),
  on('queues.deadLetters', queues, ['jobs'], [isText]),
  on('letters.list', letters, [10, undefined, {}], [isCount], signal),
  on('letters.of', letters, ['g', 10, undefined, {}], [isText, isCount], signal),
  on('letters.redrive', letters, ['g', [1], {}], [isText, (one) => Array.isArray(one)], signal),
  on('letters.redriveAll', letters, ['g', {}], [isText], signal),
  on('db.transaction', db, [user, run, {}], [no, isFunction], transaction),
  on('db.read', db, [user, 'current', run, {}], [no, no, isFunction], call),
  on('db.checkIndexes', db, [user, {}], [no], call),
  on('db.index', db, [Photo, 'PhotosByName', { name: 'a' }, {}], [no, no, isEmpty], globalScan),
  on('db.group', db, [user], [no]),
  on('db.of', db, [user], [no]),
  on('db.consume', db, [jobs, run, {}], [no, isFunction], handle),
  on('group.transaction', ofUser, [run, {}], [isFunction], transaction),
  on('group.read', ofUser, ['current', run, {}], [no, isFunction], call),
  on('group.checkIndexes', ofUser, [{}], [], call),
  inside('get', [Photo, photo], [no, no]),
  inside('getMany', [Photo, [photo]], [no, (one) => Array.isArray(one) && one.length === 0]),
  inside('scan', [Photo, { user: 1 }, {}], [no, isEmpty], scan),
  inside('scanTree', [User, { user: 1 }, {}], [no, no], scan),
  inside('index', [Photo, 'PhotosByTime', { user: 1 }, {}], [no, no, isEmpty], scan),
  inside('getWith', [User, { user: 1 }, Photo, 'PhotosByTime'], [no, no, no, no]),
  inside('insert', [Photo, { ...photo, at: 1 }], [no, no]),
  inside('put', [Photo, { ...photo, at: 1 }], [no, no]),
  inside('update', [Photo, photo, { at: 1 }], [no, no, isEmpty]),
  inside('delete', [Photo, photo], [no, no]),
  inside('send', [jobs, { user: 1 }, 1, {}], [no, no, isBody], {
    delayMs: (value) => typeof value === 'number' && value >= 0 && value < 3e10,
  }),
  inside('timestampOf', [{}], [no]),
]

/** Names nothing: the query is for all rows. */
function isEmpty(value: unknown): boolean {
  return isMembers(value) && Object.keys(value).length === 0
}

/** A plain object. */
function isMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && isPlain(value)
}

/** Some JSON. */
function isBody(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return (
    value === null || isText(value) || isFlag(value) || Array.isArray(value) || isMembers(value)
  )
}
