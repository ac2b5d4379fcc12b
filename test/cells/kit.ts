/** The world that the tests of cells, client and gateway stand on: virtual time, and replicas in memory. */
import { assert } from '../../src/base/assert.ts'
import { sha256 } from '../../src/base/bytes.ts'
import { packBody, unpackBody, type Json } from '../../src/cells/body.ts'
import { CellStore } from '../../src/cells/cell-store.ts'
import type { CellName, StoredCell, Written } from '../../src/cells/cell.ts'
import type {
  Answer,
  CellOperation,
  CellService,
  LogPlace,
  PutItem,
  ReadFrom,
  StoredLogPage,
} from '../../src/cells/operation.ts'
import type { Intents } from '../../src/txn/intents.ts'
import { toStoreError, unwrapOutcome, type Outcome } from '../../src/base/problem.ts'
import { readUuid } from '../../src/base/uuid.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { createClock } from '../../sim/world/clock.ts'
import type { SeededRandom } from '../../sim/world/random.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { World } from '../../sim/world/world.ts'
import { MemoryLog } from './memory-log.ts'
import { MemoryReplica } from './memory-replica.ts'

export const exactClock = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
const eventsMax = 200_000
const patienceMicros = 3_600_000_000

/** Lets the world's time pass until the promise has settled, and gives its value. */
export async function settled<Value>(world: World, promise: Promise<Value>): Promise<Value> {
  let isDone = false
  const end = (): void => void (isDone = true)
  promise.then(end, end)
  const ending = await world.run(() => isDone, world.nowMicros + patienceMicros)
  assert(ending === 'done', 'kit: what was waited for never came')
  return promise
}

/** Lets the given time of the world pass. */
export function passMs(world: World, ms: number): Promise<void> {
  return settled(world, world.sleep(ms * 1000))
}

export interface Bench {
  readonly world: World
  readonly random: SeededRandom
  readonly log: MemoryLog
  readonly clockOf: (name: string) => Clock
  /** A node's store over a replica of its own. */
  node(name: string): { readonly store: CellStore; readonly replica: MemoryReplica }
}

export function createBench(seed = 1): Bench {
  const world = new World(seed, eventsMax)
  const random = world.random.fork('test')
  const log = new MemoryLog()
  const clockOf = (name: string): Clock =>
    createClock(new SimProcess(world, name), exactClock, random)
  return {
    ...{ world, random, log, clockOf },
    node: (name) => {
      const clock = clockOf(name)
      const replica = new MemoryReplica(log, clock)
      return { store: new CellStore({ replica, clock, random: random.fork(name) }), replica }
    },
  }
}

export const datastore = 'trips'
export const current = { level: 'current', atLeast: [] } as const
export const any = { level: 'snapshot', atLeast: [] } as const

/** A row key, the same one for the same seed. */
export function rowKey(seed: number): string {
  return readUuid(sha256(`row ${seed}`), 0)
}

export function packed(body: Json): Uint8Array {
  const result = packBody(body)
  assert(result.kind === 'ok', 'kit: the body is JSON')
  return result.body.bytes
}

export function putItem(name: CellName, body: Json): PutItem {
  return { ...name, body: packed(body) }
}

export function intents(session: string, sequence: number, clock: Clock): Intents {
  const expiresAt = clock.wallMicros() + 600_000_000
  return { session, sequences: [sequence], floor: 1, expiresAt }
}

/** Carries an operation out and gives its answer, which must be of its kind. */
export async function ask<Kind extends CellOperation['kind']>(
  service: CellService,
  operation: CellOperation & { readonly kind: Kind },
  options: { readonly timeoutMs?: number; readonly intents?: Intents } = {},
): Promise<Answer & { readonly kind: Kind }> {
  const { answer } = await service.execute(operation, { timeoutMs: 1_000, ...options })
  if (answer.kind === 'problem') throw toStoreError(answer.problem)
  assert(isOfKind(answer, operation.kind), 'kit: the answer is of the operation’s kind')
  return answer
}

function isOfKind<Kind extends string>(
  answer: Answer,
  kind: Kind,
): answer is Answer & { readonly kind: Kind } {
  return answer.kind === kind
}

export async function put(
  service: CellService,
  name: CellName,
  body: Json,
  options: { readonly intents?: Intents; readonly timeoutMs?: number } = {},
): Promise<Written> {
  const items = [putItem(name, body)]
  return first((await ask(service, { kind: 'put', datastore, items }, options)).items)
}

export async function get(
  service: CellService,
  name: CellName,
  read: (CellOperation & { kind: 'get' })['read'] = current,
): Promise<StoredCell | undefined> {
  return first((await ask(service, { kind: 'get', datastore, read, items: [name] })).items)
}

export async function log(
  service: CellService,
  place: LogPlace,
  options: { readonly limit?: number; readonly waitMs?: number; readonly read?: ReadFrom } = {},
): Promise<StoredLogPage> {
  const { limit = 1000, waitMs = 0, read = current } = options
  const operation = {
    kind: 'log',
    datastore,
    read,
    items: [place],
    limit,
    waitMs,
  } as const
  return first((await ask(service, operation, { timeoutMs: 1_000 + waitMs })).items)
}

export function first<Value>(outcomes: readonly Outcome<Value>[]): Value {
  const [outcome] = outcomes
  assert(outcome !== undefined, 'kit: there is an outcome')
  return unwrapOutcome(outcome)
}

export function bodyOf(cell: StoredCell | undefined): Json | undefined {
  return cell && unpackBody(cell.body)
}
