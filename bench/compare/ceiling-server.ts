/**
 * One of the three servers of the bare ceiling: what a commit costs at the least with these parts
 * (ws, MessagePack, LevelDB), without agreement, conflicts or recovery. The client asks the first
 * one. It writes all puts that came during one write as one value, synced, sends them to the other
 * two in one frame, and answers when its own write and one other's are done. Every server writes
 * the rows themselves later, in large synced batches, to a store of their own.
 *
 * Run with its folder and, the first one, the ports of the other two. Tells its parent `{"port":…}`
 * and, each time it is sent anything, `{"backlogBytes":…}`.
 */
import { join } from 'node:path'
import { ClassicLevel, type OpenOptions } from 'classic-level'
import { pack, unpack } from 'msgpackr'
import { WebSocket, WebSocketServer } from 'ws'
import { defaultLimits } from '../../src/base/limits.ts'

/** Of a put: the client's number for it, its key and its value. */
type Put = readonly [number, Uint8Array, Uint8Array]

interface Asked {
  readonly link: WebSocket
  readonly put: Put
}

/** Puts that one synced write holds. */
interface Flush {
  readonly number: number
  readonly asked: readonly Asked[]
  /** Of this server and the others. */
  writes: number
}

/** Batches of rows are as large, and wait as long, as those of a node's applier. */
const { applierBatchBytesMax, applierDelayMs } = defaultLimits
const neededWrites = 2
const mebibyte = 1024 * 1024
const logOptions = { writeBufferSize: 16 * mebibyte, cacheSize: 8 * mebibyte }
/** Rows are not compressed, in larger blocks, and gather in a larger buffer. */
const dataOptions = {
  ...{ writeBufferSize: 32 * mebibyte, cacheSize: 64 * mebibyte },
  ...{ compression: false, blockSize: 16 * 1024 },
}

type Level = ClassicLevel<Uint8Array, Uint8Array>

class CeilingServer {
  readonly #log: Level
  readonly #data: Level
  readonly #peers: readonly WebSocket[]
  #arrived: Asked[] = []
  #isFlushing = false
  #flushes = 0
  readonly #open = new Map<number, Flush>()
  readonly #answers = new Map<WebSocket, number[]>()
  #rows: Put[] = []
  #rowBytes = 0
  /** Bytes of the batch under way. */
  #applying = 0
  #timer: NodeJS.Timeout | undefined
  readonly #frames: {
    readonly number: number
    readonly bytes: Uint8Array
    readonly link: WebSocket
  }[] = []

  constructor(log: Level, data: Level, peers: readonly WebSocket[]) {
    this.#log = log
    this.#data = data
    this.#peers = peers
    for (const peer of peers) {
      peer.on('message', (bytes: Buffer) => this.#onWritten(Number(unpack(bytes))))
    }
  }

  get backlogBytes(): number {
    return this.#rowBytes + this.#applying
  }

  /** Of a client: an array of puts. Of the first server: the number of a flush, and its puts. */
  onMessage(link: WebSocket, bytes: Buffer): void {
    const message: unknown = unpack(bytes)
    if (isOfFlush(message)) {
      const [number, puts] = message
      this.#frames.push({ number, bytes, link })
      this.#keep(puts)
      return this.#flushFrames()
    }
    if (!isPuts(message)) throw new Error('ceiling: a frame is of puts')
    for (const put of message) this.#arrived.push({ link, put })
    this.#flush()
  }

  /** As the first server: everything that has arrived, once the write under way is done. */
  #flush(): void {
    if (this.#isFlushing || this.#arrived.length === 0) return
    this.#isFlushing = true
    const number = ++this.#flushes
    const flush: Flush = { number, asked: this.#arrived, writes: 0 }
    this.#arrived = []
    this.#open.set(number, flush)
    const puts = flush.asked.map(({ put }) => put)
    const frame = pack([number, puts])
    for (const peer of this.#peers) peer.send(frame)
    void this.#write(number, frame).then(() => {
      this.#isFlushing = false
      this.#onWritten(number)
      this.#keep(puts)
      this.#flush()
    })
  }

  /** As another server: the frames that have come, as one write. */
  #flushFrames(): void {
    if (this.#isFlushing || this.#frames.length === 0) return
    this.#isFlushing = true
    const frames = this.#frames.splice(0)
    void this.#write(++this.#flushes, Buffer.concat(frames.map(({ bytes }) => bytes))).then(() => {
      this.#isFlushing = false
      for (const { number, link } of frames) link.send(pack(number))
      this.#flushFrames()
    })
  }

  #write(number: number, value: Uint8Array): Promise<void> {
    const key = Buffer.alloc(8)
    key.writeUInt32BE(number, 4)
    return this.#log.batch().put(key, value).write({ sync: true })
  }

  #onWritten(number: number): void {
    const flush = this.#open.get(number)
    if (flush === undefined) return
    flush.writes += 1
    if (flush.writes < neededWrites) return
    this.#open.delete(number)
    for (const { link, put } of flush.asked) this.#answer(link, put[0])
  }

  /** One frame a client and turn. */
  #answer(link: WebSocket, id: number): void {
    if (this.#answers.size === 0) setImmediate(() => this.#sendAnswers())
    const known = this.#answers.get(link)
    if (known === undefined) this.#answers.set(link, [id])
    else known.push(id)
  }

  #sendAnswers(): void {
    for (const [link, ids] of this.#answers) link.send(pack(ids))
    this.#answers.clear()
  }

  #keep(puts: readonly Put[]): void {
    for (const put of puts) {
      this.#rows.push(put)
      this.#rowBytes += put[1].length + put[2].length
    }
    if (this.#rowBytes >= applierBatchBytesMax) this.#apply()
    else this.#timer ??= setTimeout(() => this.#apply(), applierDelayMs)
  }

  #apply(): void {
    if (this.#applying > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    const batch = this.#data.batch()
    for (const [, key, value] of this.#rows) batch.put(key, value)
    this.#rows = []
    this.#applying = this.#rowBytes
    this.#rowBytes = 0
    void batch.write({ sync: true }).then(() => {
      this.#applying = 0
      if (this.#rows.length > 0) this.#apply()
    })
  }
}

function isOfFlush(message: unknown): message is readonly [number, readonly Put[]] {
  return Array.isArray(message) && typeof message[0] === 'number'
}

function isPuts(message: unknown): message is readonly Put[] {
  return Array.isArray(message)
}

/** As a node opens its stores (`openLevelStore`), which are nothing but themselves here. */
async function openLevel(path: string, options: OpenOptions): Promise<Level> {
  const level: Level = new ClassicLevel(path, { keyEncoding: 'view', valueEncoding: 'view' })
  await level.open({ maxFileSize: 16 * mebibyte, ...options })
  return level
}

async function connectTo(port: number): Promise<WebSocket> {
  const link = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
  await new Promise<void>((resolve, reject) => link.once('open', resolve).once('error', reject))
  return link
}

async function serve(folder: string, ports: readonly number[]): Promise<CeilingServer> {
  const [log, data] = await Promise.all([
    openLevel(join(folder, 'log'), logOptions),
    openLevel(join(folder, 'data'), dataOptions),
  ])
  const server = new CeilingServer(log, data, await Promise.all(ports.map(connectTo)))
  const listening = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false })
  listening.on('connection', (link) => {
    link.on('message', (bytes: Buffer) => server.onMessage(link, bytes))
  })
  await new Promise<void>((resolve) => listening.once('listening', resolve))
  const address = listening.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 })
  return server
}

const [folder = '', ...peers] = process.argv.slice(2)
const server = await serve(folder, peers.map(Number))
process.on('message', () => process.send?.({ backlogBytes: server.backlogBytes }))
