/**
 * YCSB's core workloads A, B and E on the tables: which operations, in which shares, on which records.
 *
 *   A   50 % reads, 50 % updates of one field
 *   B   95 % reads, 5 % updates of one field
 *   E   95 % scans of 1 to 100 records, 5 % inserts
 *
 * The client draws records by the scrambled Zipf distribution; a scan begins at one and takes a number
 * of records that is drawn uniformly, or as many as its group has left.
 */
import type { Drawn } from '../load.ts'
import { scrambledZipfian } from './generators.ts'
import { authorCount, postName, type Records } from './records.ts'

export const workloadNames = ['a', 'b', 'e'] as const
export type WorkloadName = (typeof workloadNames)[number]

export const kinds = ['read', 'update', 'scan', 'insert'] as const
export type Kind = (typeof kinds)[number]

/** Each workload has two kinds of operations; this is the part of the second one. */
const secondShares: Readonly<Record<WorkloadName, number>> = { a: 0.5, b: 0.05, e: 0.05 }

const scanRowsMax = 100
/** Records that may be asked for beside those of the load: inserts beyond them are only scanned over. */
const insertedShare = 0.1

/** Counts of a run of a workload, beside its latencies. */
export interface Tally {
  /** Records that scans gave. */
  scanned: number
  /** Runs of transactions beyond the first, after conflicts. */
  reruns: number
}

/** Where operations come from: there are `count` users, or posts for E, as the load wrote them. */
export function makeWorkload(
  name: WorkloadName,
  records: Records,
  count: number,
  tally: Tally,
): () => Drawn<Kind> {
  const operations = name === 'e' ? postOperations : userOperations
  const [first, second] = operations(records, count, tally)
  const secondShare = secondShares[name]
  return () => (Math.random() < secondShare ? second : first)
}

type Operations = readonly [first: Drawn<Kind>, second: Drawn<Kind>]

function userOperations(records: Records, count: number, tally: Tally): Operations {
  const draw = scrambledZipfian(count, Math.random)
  const read = (): Promise<void> => records.readUser(draw())
  const update = async (): Promise<void> => {
    const runs = await records.updateUser(draw())
    tally.reruns += runs - 1
  }
  return [
    { kind: 'read', run: read },
    { kind: 'update', run: update },
  ]
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
  const scan = async (): Promise<void> => {
    const limit = 1 + Math.floor(Math.random() * scanRowsMax)
    const found = await records.scanPosts(postName(drawExisting(), authors), limit)
    tally.scanned += found
  }
  const insert = async (): Promise<void> => {
    const n = next++
    const runs = await records.insertPost(postName(n, authors))
    tally.reruns += runs - 1
    inserted.add(n)
  }
  return [
    { kind: 'scan', run: scan },
    { kind: 'insert', run: insert },
  ]
}
