/** YCSB's load phase: users one by one, each a group; posts of one author many at once. */
import { forEachBelow } from '../common.ts'
import { authorCount, postName, type Records } from './records.ts'

/** Transactions under way. */
const underWay = 128
/** Posts in one transaction: 100 KiB. */
const postsAtOnce = 100

export interface FillOptions {
  readonly signal: AbortSignal
  /** Rows that are written so far. */
  readonly onProgress: (done: number) => void
}

/** Writes the first `count` users. */
export async function fillUsers(
  records: Records,
  count: number,
  options: FillOptions,
): Promise<void> {
  await each(count, options, async (n) => {
    await records.putUser(n)
    return 1
  })
}

/** Writes the first `count` records as posts. */
export async function fillPosts(
  records: Records,
  count: number,
  options: FillOptions,
): Promise<void> {
  const batches = buildBatches(count)
  await each(batches.length, options, async (place) => {
    const { author, postIds } = batches[place] ?? { author: 0, postIds: [] }
    await records.putPosts(author, postIds)
    return postIds.length
  })
}

interface Batch {
  readonly author: number
  readonly postIds: readonly number[]
}

function buildBatches(count: number): Batch[] {
  const authors = authorCount(count)
  const byAuthor: number[][] = Array.from({ length: authors }, () => [])
  for (let n = 0; n < count; n++) {
    const { author, postId } = postName(n, authors)
    byAuthor[author]?.push(postId)
  }
  return byAuthor.flatMap((postIds, author) => {
    const batches: Batch[] = []
    for (let at = 0; at < postIds.length; at += postsAtOnce) {
      batches.push({ author, postIds: postIds.slice(at, at + postsAtOnce) })
    }
    return batches
  })
}

/** `write` for each number below `count`; it gives the rows that it wrote. */
async function each(
  count: number,
  { signal, onProgress }: FillOptions,
  write: (n: number) => Promise<number>,
): Promise<void> {
  let done = 0
  await forEachBelow(count, underWay, signal, async (n) => {
    const rows = await write(n)
    done += rows
    onProgress(done)
  })
  signal.throwIfAborted()
}
