/**
 * A TCP proxy between a dialer and a listener. It controls each of its two ways: cut (bytes wait,
 * as packets under retransmission do), slowed, or broken off.
 *
 * Bytes keep their order, as TCP's do: a proxy cannot lose some and deliver later ones. The waiting
 * bytes are bounded; beyond that the proxy does not read from the sender, which notices the same as
 * on a real network.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

/** Bytes of one way of one connection that wait here. */
const waitingBytesMax = 256 * 1024

interface Chunk {
  readonly dueMs: number
  readonly bytes: Buffer
}

/** One direction: of all connections that the proxy has. */
class Way {
  delayMs = 0
  #cuts = 0
  readonly #pipes = new Set<Pipe>()

  get isCut(): boolean {
    return this.#cuts > 0
  }

  add(pipe: Pipe): void {
    this.#pipes.add(pipe)
  }

  delete(pipe: Pipe): void {
    this.#pipes.delete(pipe)
  }

  cut(): void {
    this.#cuts += 1
  }

  mend(): void {
    this.#cuts = Math.max(0, this.#cuts - 1)
    this.#pump()
  }

  heal(): void {
    this.#cuts = 0
    this.delayMs = 0
    this.#pump()
  }

  #pump(): void {
    for (const pipe of [...this.#pipes]) pipe.pump()
  }
}

/** One direction of one connection. */
class Pipe {
  readonly #way: Way
  readonly #from: Socket
  readonly #to: Socket
  readonly #waiting: Chunk[] = []
  #waitingBytes = 0
  #hasEnded = false
  #timer: NodeJS.Timeout | undefined

  /**
   * `mayPass` is called for all bytes that come; when it returns false, both ends are broken off.
   */
  constructor(
    way: Way,
    ends: { readonly from: Socket; readonly to: Socket },
    mayPass: () => boolean,
  ) {
    const { from, to } = ends
    this.#way = way
    this.#from = from
    this.#to = to
    way.add(this)
    from.on('data', (bytes: Buffer) => {
      if (mayPass()) this.#take(bytes)
      else for (const socket of [from, to]) socket.destroy()
    })
    // A reset says nothing that its `close` does not say.
    from.on('error', () => undefined)
    from.once('close', () => {
      this.#hasEnded = true
      this.pump()
    })
    to.on('drain', () => this.pump())
    to.once('close', () => this.#stop())
  }

  /** Delivers the bytes that are due, unless the way is cut; the connection's end comes last. */
  pump(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const nowMs = performance.now()
    while (!this.#way.isCut && !this.#to.writableNeedDrain) {
      const [first] = this.#waiting
      if (first === undefined || first.dueMs > nowMs) break
      this.#waiting.shift()
      this.#waitingBytes -= first.bytes.length
      this.#to.write(first.bytes)
    }
    if (this.#waitingBytes < waitingBytesMax) this.#from.resume()
    if (this.#way.isCut) return
    const [next] = this.#waiting
    if (next !== undefined) {
      this.#timer = setTimeout(() => this.pump(), Math.max(1, Math.ceil(next.dueMs - nowMs)))
    } else if (this.#hasEnded) this.#to.destroy()
  }

  #take(bytes: Buffer): void {
    this.#waiting.push({ dueMs: performance.now() + this.#way.delayMs, bytes })
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes >= waitingBytesMax) this.#from.pause()
    this.pump()
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#way.delete(this)
    this.#from.destroy()
  }
}

export interface WayProxyOptions {
  readonly targetPort: number
  /** Asked of all that the listening side sends; no: the connection breaks, and that is lost. */
  mayAnswer?(): boolean
}

export class WayProxy {
  readonly forward: Way = new Way()
  readonly backward: Way = new Way()
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async open({ targetPort, mayAnswer }: WayProxyOptions): Promise<WayProxy> {
    const server = createServer()
    const proxy = new WayProxy(server)
    server.on('connection', (dialer) => {
      const listener = connect({ port: targetPort, host: '127.0.0.1' })
      for (const socket of [dialer, listener]) proxy.#keep(socket)
      const { forward, backward } = proxy
      void new Pipe(forward, { from: dialer, to: listener }, () => true)
      void new Pipe(backward, { from: listener, to: dialer }, mayAnswer ?? (() => true))
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    return proxy
  }

  get url(): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed')
    return `http://127.0.0.1:${address.port}`
  }

  /** Breaks all connections. */
  reset(): void {
    for (const socket of [...this.#sockets]) socket.destroy()
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.reset()
    await closed
  }

  #keep(socket: Socket): void {
    socket.setNoDelay(true)
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }
}
