/**
 * YCSB's core workloads A, B and E on the tables: which operations, in which shares, on which records.
 *
 *   A   50 % reads, 50 % updates of one field
 *   B   95 % reads, 5 % updates of one field
 *   E   95 % scans of 1 to 100 records, 5 % inserts
 *
 * Records are asked for by the scrambled Zipf distribution; a scan begins at one and takes a number of
 * records that is drawn uniformly, or as many as its group has left.
 */
import type { Drawn } from '../load.ts'
import { scrambledZipfian } from './generators.ts'
import { authorCount, postName, type Records } from './records.ts'

export const workloadNames = ['a', 'b', 'e'] as const
export type WorkloadName = (typeof workloadNames)[number]

export const kinds = ['read', 'update', 'scan', 'insert'] as const
export type Kind = (typeof kinds)[number]

/** In parts of one. */
export const shares: Readonly<Record<WorkloadName, Readonly<Partial<Record<Kind, number>>>>> = {
  a: { read: 0.5, update: 0.5 },
  b: { read: 0.95, update: 0.05 },
  e: { scan: 0.95, insert: 0.05 },
}

const scanRowsMax = 100
/** Records that may be asked for beside those of the load: inserts beyond them are only scanned over. */
const insertedShare = 0.1

/** What a run of a workload counts beside its latencies. */
export interface Tally {
  /** Records that scans gave. */
  scanned: number
  /** Runs of transactions beyond the first, after conflicts. */
  reruns: number
}

/** Where operations come from: there are `count` users, or posts for E, as the load wrote them. */
export function workloadOf(
  name: WorkloadName,
  records: Records,
  count: number,
  tally: Tally,
): () => Drawn<Kind> {
  const run = (name === 'e' ? postOperations : userOperations)(records, count, tally)
  return () => {
    const kind = drawKind(name)
    return { kind, run: run[kind] }
  }
}

function drawKind(name: WorkloadName): Kind {
  let rest = Math.random()
  const ofWorkload = kinds.filter((kind) => shares[name][kind] !== undefined)
  for (const kind of ofWorkload) {
    rest -= shares[name][kind] ?? 0
    if (rest < 0) return kind
  }
  return ofWorkload[0] ?? 'read'
}

type Operations = Readonly<Record<Kind, () => Promise<void>>>

/** A rejection is a failure of the bench: a workload has no other kinds than its own. */
function notOfThis(): Promise<void> {
  return Promise.reject(new Error('the workload has no such operation'))
}

function userOperations(records: Records, count: number, tally: Tally): Operations {
  const draw = scrambledZipfian(count, Math.random)
  return {
    read: () => records.readUser(draw()),
    update: async () => {
      const runs = await records.updateUser(draw())
      tally.reruns += runs - 1
    },
    scan: notOfThis,
    insert: notOfThis,
  }
}

function postOperations(records: Records, count: number, tally: Tally): Operations {
  const authors = authorCount(count)
  const draw = scrambledZipfian(Math.ceil(count * (1 + insertedShare)), Math.random)
  const inserted = new Set<number>()
  let next = count
  /** As YCSB does, again until it is one that has been acknowledged. */
  const drawExisting = (): number => {
    for (let n = draw(); ; n = draw()) if (n < count || inserted.has(n)) return n
  }
  return {
    scan: async () => {
      const limit = 1 + Math.floor(Math.random() * scanRowsMax)
      const found = await records.scanPosts(postName(drawExisting(), authors), limit)
      tally.scanned += found
    },
    insert: async () => {
      const n = next++
      const runs = await records.insertPost(postName(n, authors))
      tally.reruns += runs - 1
      inserted.add(n)
    },
    read: notOfThis,
    update: notOfThis,
  }
}
