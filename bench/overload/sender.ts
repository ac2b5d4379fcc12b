/**
 * A process that puts small new cells through many clients of the library, each of which knows one node; each
 * message to it is a load. Its arguments: the nodes' URLs, and how many clients.
 */
import { randomUUID } from 'node:crypto'
import type { Client } from '../../src/client/client.ts'
import { connect } from '../../src/client/connect.ts'
import { pause } from '../processes.ts'
import {
  freshInTimeMs,
  inTimeMs,
  sliceMs,
  type ClosedLoad,
  type Ends,
  type Load,
  type OpenEnds,
  type OpenLoad,
  type Said,
  type Slice,
} from './messages.ts'

const timeoutMs = 10_000
const tickMs = 5
const body = { pad: 'x'.repeat(200) }

const [urlList = '', clientCount = '1'] = process.argv.slice(2)
const urls = urlList.split(',')
const clients: Client[] = []
let nth = 0
const count = { underWay: 0 }

function noEnds(): Ends {
  return { sent: 0, ok: 0, okLater: 0, refused: 0, others: {}, tookMs: [] }
}

/** The time that counts, by the clock of this process. */
interface Span {
  readonly fromMs: number
  readonly toMs: number
}

const always: Span = { fromMs: 0, toMs: Number.POSITIVE_INFINITY }

/** Resolves with how long it took, or undefined when it was not acknowledged. */
async function put(ends: Ends, { fromMs, toMs }: Span = always): Promise<number | undefined> {
  const client = clients[nth++ % clients.length]
  const startMs = performance.now()
  const isCounted = startMs >= fromMs
  if (isCounted) ends.sent += 1
  count.underWay += 1
  try {
    await client?.cells('bench').put({ rowKey: randomUUID(), column: 'A', refKey: 0, body })
    const endMs = performance.now()
    if (endMs > toMs) ends.okLater += 1
    else if (endMs >= fromMs) ends.ok += 1
    if (isCounted) ends.tookMs.push(endMs - startMs)
    return endMs - startMs
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    if (!isCounted) return undefined
    if (code === 'overloaded') ends.refused += 1
    else ends.others[code] = (ends.others[code] ?? 0) + 1
    return undefined
  } finally {
    count.underWay -= 1
  }
}

async function closed({ underWay: loops, ms }: ClosedLoad): Promise<OpenEnds> {
  const ends = noEnds()
  const endMs = performance.now() + ms
  const loop = async (): Promise<void> => {
    while (performance.now() < endMs) await put(ends)
  }
  await Promise.all(Array.from({ length: loops }, loop))
  return { ...ends, after: [] }
}

/** Calls `begin` `perSecond` times a second, whatever becomes of it. */
async function offer(perSecond: number, ms: number, begin: () => void): Promise<void> {
  const startMs = performance.now()
  let begun = 0
  for (let passedMs = 0; passedMs < ms; passedMs = performance.now() - startMs) {
    for (const due = Math.floor((passedMs / 1_000) * perSecond); begun < due; begun++) begin()
    await pause(tickMs)
  }
}

async function open(load: OpenLoad): Promise<OpenEnds> {
  const ends = noEnds()
  const fromMs = performance.now() + load.fillMs
  const span = { fromMs, toMs: fromMs + load.ms }
  await offer(load.perSecond, load.fillMs + load.ms, () => void put(ends, span))
  const fresh = answerOfFresh(load.afterMs)
  const after = await lookAfter(load)
  const freshMs = await fresh
  await rest()
  return { ...ends, after, ...(freshMs !== undefined && { freshMs }) }
}

async function rest(): Promise<void> {
  while (count.underWay > 0) await pause(tickMs)
}

/** The same clients send a rate that the nodes can easily serve. */
async function lookAfter({ afterPerSecond, afterMs }: OpenLoad): Promise<readonly Slice[]> {
  const startMs = performance.now()
  const ends = noEnds()
  const none = (): Slice => ({ asked: 0, inTime: 0 })
  const slices = Array.from({ length: Math.ceil(afterMs / sliceMs) }, none)
  const one = async (slice: Slice): Promise<void> => {
    slice.asked += 1
    const tookMs = await put(ends)
    if (tookMs !== undefined && tookMs <= inTimeMs) slice.inTime += 1
  }
  await offer(afterPerSecond, afterMs, () => {
    const slice = slices[Math.floor((performance.now() - startMs) / sliceMs)]
    if (slice !== undefined) void one(slice)
  })
  await rest()
  return slices
}

/** Of a client that no node has refused yet, and that sends one request after another. */
async function answerOfFresh(ms: number): Promise<number | undefined> {
  const startMs = performance.now()
  const passedMs = (): number => performance.now() - startMs
  const client = await connect({ endpoints: urls, timeoutMs })
  try {
    while (passedMs() < ms) {
      const fromMs = passedMs()
      const cell = { rowKey: randomUUID(), column: 'A', refKey: 0, body }
      const isDone = await client
        .cells('bench')
        .put(cell)
        .then(
          () => true,
          () => false,
        )
      if (isDone && passedMs() - fromMs <= freshInTimeMs) return passedMs()
      await pause(tickMs)
    }
    return undefined
  } finally {
    await client.close()
  }
}

function say(said: Said): void {
  process.send?.(said)
}

function carryOut(load: Load): Promise<OpenEnds> {
  return load.kind === 'closed' ? closed(load) : open(load)
}

function isLoad(given: unknown): given is Load {
  return typeof given === 'object' && given !== null && 'kind' in given
}

// The process that began this one has ended.
process.on('disconnect', () => process.exit())
process.on('message', (load) => {
  if (isLoad(load)) void carryOut(load).then((ends) => say({ kind: 'ended', ends }))
})
for (let n = 0; n < Number(clientCount); n++) {
  const own = urls[n % urls.length]
  if (own !== undefined) clients.push(await connect({ endpoints: [own], follow: false, timeoutMs }))
}
say({ kind: 'ready' })
