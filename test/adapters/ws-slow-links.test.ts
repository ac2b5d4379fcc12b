/** A link on which a large frame takes its time is not a dead one, at neither of its ends. */
import { createServer, type Server } from 'node:http'
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { WsClientDialer, WsClientListener } from '../../src/adapters/ws-clients.ts'
import { clusterId, nodeId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { TransportHandlers } from '../../src/ports/transport.ts'

const frame = 'x'.repeat(1_000_000)
const pieceBytes = 10_000

async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 8_000
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`it did not come so: ${String(isSo)}`)
    await pause()
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5))
}

/** The test sets off its timers. */
class HandClock implements Clock {
  readonly #timers = new Set<() => void>()
  readonly wallMicros = systemClock.wallMicros
  readonly monotonicMs = systemClock.monotonicMs
  readonly defer = systemClock.defer

  setTimer(_delayMs: number, run: () => void): { cancel(): void } {
    const timer = (): void => run()
    this.#timers.add(timer)
    return { cancel: () => void this.#timers.delete(timer) }
  }

  goOff(): void {
    const timers = [...this.#timers]
    this.#timers.clear()
    for (const run of timers) run()
  }
}

/** A way to a server that may be held up: then what the dialer sends passes piece by piece. */
class Gate {
  isHeld = false
  readonly #port: number
  #held: Buffer = Buffer.alloc(0)
  #far: Socket | undefined

  constructor(port: number) {
    this.#port = port
  }

  get heldBytes(): number {
    return this.#held.length
  }

  take(near: Socket): void {
    const far = connect(this.#port, '127.0.0.1')
    this.#far = far
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    near.on('error', () => far.destroy()).on('close', () => far.destroy())
    far.pipe(near)
    near.on('data', (piece: Buffer) => {
      this.#held = Buffer.concat([this.#held, piece])
      if (!this.isHeld) this.pass(this.#held.length)
    })
  }

  pass(bytes: number): void {
    this.#far?.write(this.#held.subarray(0, bytes))
    this.#held = this.#held.subarray(bytes)
  }
}

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const address = server.address()
  return isAddress(address) ? address.port : 0
}

function isAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null
}

function handlers(told: string[]): TransportHandlers<string> {
  return {
    self: () => ({}),
    admit: () => undefined,
    onRefused: (_, reason) => void told.push(reason),
    onLink: (_, state) => void told.push(state),
    onFrame: (_, content) => void told.push(`${content.length} bytes`),
  }
}

test('a link on which a large frame comes in slowly stays; one on which nothing comes does not', async () => {
  const server = createServer()
  const port = await listen(server)
  const arrived: Socket[] = []
  server.on('connection', (socket) => arrived.push(socket))
  const gate = new Gate(port)
  const url = `http://127.0.0.1:${await listen(createTcpServer((near) => gate.take(near)))}`
  const [clock, log]: [HandClock, string[]] = [new HandClock(), []]
  const common = {
    ...{ clock, random: systemRandom, secret: '', queueBytesMax: 2 * frame.length },
    codec: {
      encode: (content: string) => Buffer.from(content),
      decode: (bytes: Uint8Array) => ({ ok: true, frame: Buffer.from(bytes).toString() }) as const,
    },
    log: (message: string) => void log.push(message),
  }
  const names = { node: nodeId('n1'), cluster: clusterId('c'), server, clientsMax: 5 }
  const listener = new WsClientListener<string>({ ...common, ...names })
  const dialer = new WsClientDialer<string>({ ...common, urls: [url] })
  const told: string[] = []
  listener.start(handlers(told))
  dialer.start(handlers([]))
  onTestFinished(async () => {
    for (const socket of arrived) socket.destroy()
    await Promise.all([listener.close(), dialer.close()])
  })
  await until(() => listener.isUp('c1') && dialer.isUp(url))

  gate.isHeld = true
  expect(dialer.send(url, frame)).toBe(true)
  await until(() => gate.heldBytes > frame.length)
  for (let tick = 0; tick < 12; tick++) {
    const before = arrived[0]?.bytesRead ?? 0
    gate.pass(pieceBytes)
    await until(() => arrived[0]?.bytesRead === before + pieceBytes)
    clock.goOff()
    await pause()
  }
  expect([listener.isUp('c1'), dialer.isUp(url), log, told]).toEqual([true, true, [], ['up']])
  gate.pass(gate.heldBytes)
  await until(() => told.includes(`${frame.length} bytes`))

  for (let tick = 0; tick < 12; tick++) clock.goOff()
  await until(() => told.includes('down'))
  expect(log).toContain('link closed: silent')
})
