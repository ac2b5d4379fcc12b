/**
 * Which worker has which shards, as the leader of a service decides it: a function of the workers that are
 * there and of the assignment so far. Shards are spread evenly, and those that can stay do.
 *
 * TRIG-5  A shard has one owner at a time, each under a generation of its own: higher than all before.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import { isShard } from '../cells/shard.ts'
import type { JsonValue } from '../../schema/values.ts'

/** The worker that has a shard. */
export interface Holding {
  readonly owner: string
  /** Of the assignment by which the owner got it. */
  readonly generation: number
  /**
   * The worker that is to have it next: the owner gives it up, and it is given on when nothing of it is at
   * work.
   */
  readonly next?: Next
}

interface Next {
  readonly worker: string
  /** Of the assignment that says so. */
  readonly asked: number
}

export type Holdings = ReadonlyMap<number, Holding>

/** A worker that is alive, and up to which generation it has given up what it had to. */
export interface Present {
  readonly worker: string
  readonly released: number
}

/** The shards that `worker` is to work on, each with its generation. */
export function listShards(holdings: Holdings, worker: string): ReadonlyMap<number, number> {
  const shards = new Map<number, number>()
  for (const [shard, { owner, generation, next }] of holdings) {
    if (owner === worker && next === undefined) shards.set(shard, generation)
  }
  return shards
}

/** The next assignment, which is to be `generation`; undefined when all can stay as it is. */
export function spread(
  holdings: Holdings,
  shards: readonly number[],
  present: readonly Present[],
  generation: number,
): Holdings | undefined {
  const released = new Map(present.map((one) => [one.worker, one.released]))
  const goals = computeGoals(holdings, shards, released)
  const spreads = new Map<number, Holding>()
  for (const [shard, goal] of goals) {
    const now = holdings.get(shard)
    const then = step(now, goal, released, generation)
    assert(
      now === undefined || now.owner === then.owner || then.generation > now.generation,
      'TRIG-5: a shard goes to another worker under a generation that has had an owner',
    )
    spreads.set(shard, then)
  }
  return isSame(holdings, spreads) ? undefined : spreads
}

/** A shard on its way to the worker that is to have it. */
function step(
  now: Holding | undefined,
  goal: string,
  released: ReadonlyMap<string, number>,
  generation: number,
): Holding {
  const releasedUpTo = now && released.get(now.owner)
  // No worker has it, or its owner is gone.
  if (now === undefined || releasedUpTo === undefined) return { owner: goal, generation }
  if (now.owner === goal) return { owner: goal, generation: now.generation }
  const asked = now.next?.asked
  if (asked !== undefined && releasedUpTo >= asked) return { owner: goal, generation }
  return { ...now, next: { worker: goal, asked: asked ?? generation } }
}

/** The worker that is to have each shard in the end: as many shards each as can be, and few of them moved. */
function computeGoals(
  holdings: Holdings,
  shards: readonly number[],
  present: ReadonlyMap<string, number>,
): ReadonlyMap<number, string> {
  const goals = new Map<number, string>()
  if (present.size === 0) return goals
  const kept = new Map<string, number[]>([...present.keys()].sort(byText).map((one) => [one, []]))
  const free: number[] = []
  for (const shard of shards) {
    const { owner = '', next } = holdings.get(shard) ?? {}
    const list = (next && kept.get(next.worker)) ?? kept.get(owner) ?? free
    list.push(shard)
  }
  const quotas = computeQuotas(kept, shards.length)
  for (const [worker, list] of kept) free.push(...list.splice(quotas.get(worker) ?? 0))
  free.sort((a, b) => a - b)
  for (const [worker, list] of kept) {
    list.push(...free.splice(0, (quotas.get(worker) ?? 0) - list.length))
    for (const shard of list) goals.set(shard, worker)
  }
  return goals
}

/** The odd shards go to those who have most, so that fewer move. */
function computeQuotas(
  kept: ReadonlyMap<string, readonly number[]>,
  count: number,
): ReadonlyMap<string, number> {
  const least = Math.floor(count / kept.size)
  const odd = count % kept.size
  const byLoad = [...kept].sort(([, a], [, b]) => b.length - a.length)
  return new Map(byLoad.map(([worker], i) => [worker, least + (i < odd ? 1 : 0)]))
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function isSame(a: Holdings, b: Holdings): boolean {
  if (a.size !== b.size) return false
  return [...b].every(([shard, holding]) => isAlike(a.get(shard), holding))
}

function isAlike(a: Holding | undefined, b: Holding): boolean {
  const isHeldAlike = a?.owner === b.owner && a.generation === b.generation
  return isHeldAlike && a.next?.worker === b.next?.worker && a.next?.asked === b.next?.asked
}

/**
 * As it is stored: names once, and runs of shards that are held alike.
 *
 *   { workers: [name …], runs: [[first, last, owner, generation, next, asked] …] }
 */
export function encodeHoldings(holdings: Holdings): JsonValue {
  const workers: string[] = []
  const ensureNumber = (worker: string): number => {
    const known = workers.indexOf(worker)
    return known >= 0 ? known : workers.push(worker) - 1
  }
  const runs: number[][] = []
  let last: Holding | undefined
  for (const [shard, holding] of [...holdings].sort(([a], [b]) => a - b)) {
    const { owner, generation, next } = holding
    const run = runs.at(-1)
    if (run?.[1] === shard - 1 && isAlike(last, holding)) run[1] = shard
    else {
      const moving = next === undefined ? [-1, 0] : [ensureNumber(next.worker), next.asked]
      runs.push([shard, shard, ensureNumber(owner), generation, ...moving])
    }
    last = holding
  }
  return { workers, runs }
}

/** Throws `corrupt` for what is none. */
export function decodeHoldings(stored: JsonValue): Holdings {
  const holdings = new Map<number, Holding>()
  const { workers, runs } = readParts(stored)
  for (const run of runs) {
    const [first = -1, last = -1, owner = -1, generation = -1, next = -1, asked = 0] = run
    const worker = workers[owner]
    const nextWorker = workers[next]
    const isGood = isShard(first) && isShard(last) && worker !== undefined
    if (!isGood || (next >= 0 && nextWorker === undefined)) throw unreadable()
    const holding = { owner: worker, generation }
    const moving = nextWorker === undefined ? {} : { next: { worker: nextWorker, asked } }
    for (let shard = first; shard <= last; shard++) holdings.set(shard, { ...holding, ...moving })
  }
  return holdings
}

function readParts(stored: JsonValue): {
  readonly workers: readonly string[]
  readonly runs: readonly (readonly number[])[]
} {
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) throw unreadable()
  const { workers, runs } = Object.fromEntries(Object.entries(stored))
  if (!Array.isArray(workers) || !Array.isArray(runs)) throw unreadable()
  return {
    workers: workers.map((one: unknown) => (typeof one === 'string' ? one : '')),
    runs: runs.map((run: unknown) => (Array.isArray(run) ? run.map(Number) : [])),
  }
}

function unreadable(): StoreError {
  return new StoreError('corrupt', "who has which shards cannot be read from the service's row")
}
