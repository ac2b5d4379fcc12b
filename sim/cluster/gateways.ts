/**
 * Gateways of a run. Each is a process with links of its own to the nodes, and serves HTTP with the
 * gateway's real code over the real relay. Gateways keep no state: a crashed one restarts without
 * it, and clients of several gateways use another one meanwhile.
 *
 * LIVE-1 In a healed world a gateway skips no node that works: its breakers close.
 */
import { defaultClientLimits } from '../../src/client/client-limits.ts'
import { Relay } from '../../src/client/relay.ts'
import { gatewayFetch } from '../../src/gateway/http.ts'
import { Admission } from '../../src/node/admission.ts'
import { Bugs } from '../../src/node/bugs.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { Slices } from '../../src/ports/slices.ts'
import type { Transport } from '../../src/ports/transport.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import type { Referee } from '../checkers/referee.ts'
import { ownError } from '../checkers/own-error-checker.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import { nameEndpoint, gatewayNames } from './endpoints.ts'
import type { GatewayOptions } from './gateway-draw.ts'
import { HttpCaller } from '../workloads/http-caller.ts'
import { answered, type HttpFrame, type HttpHandler } from './http-wire.ts'
import type { Network } from '../world/network.ts'
import type { SeededRandom } from '../world/random.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { World } from '../world/world.ts'

export interface GatewaysParts {
  readonly world: World
  readonly coverage: Coverage
  readonly referee: Referee
  /** Absent: there are none. */
  readonly options: GatewayOptions | undefined
  readonly timeoutMs: number
  /** A frame and its answer between ends that are far from one another, as a rule. */
  readonly farRoundTripMs: number
  readonly nodes: readonly string[]
  readonly nodeNetwork: Network<ClientFrame>
  readonly httpNetwork: Network<HttpFrame>
  onFailed(error: unknown): void
}

interface Living {
  readonly name: string
  readonly life: number
  readonly process: SimProcess
  readonly random: SeededRandom
  readonly relay: Relay
  readonly serve: HttpHandler
}

/** From being asked to stop to the end of what is under way, and to the end. */
const graceMicros = 100_000
const partingMicros = 20_000
/** In the healed world: between two looks, and for how long beyond what breakers stay open. */
const lookMicros = 250_000
const looksMicros = 30_000_000
/** A node may have to ask others, who are far as well. */
const roundTripsPerTry = 6
/** A gateway looks for this many rows in turn, since each may begin at another node. */
const rowsLookedFor = 12

export class Gateways {
  readonly names: readonly string[]
  readonly #parts: GatewaysParts
  readonly #living = new Map<string, Living>()
  #busy = 0

  constructor(parts: GatewaysParts) {
    this.#parts = parts
    this.names = gatewayNames(parts.options)
  }

  start(): void {
    for (const name of this.names) this.#bringUp(name, 1)
  }

  end(): void {
    // The callers end by themselves.
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  /** False when it is no gateway. Another life of it begins after a while. */
  kill(name: string, downMicros: number): boolean {
    const living = this.#living.get(name)
    if (living === undefined) return this.names.includes(name)
    this.#living.delete(name)
    if (living.random.chance(300_000)) this.#stop(living, downMicros)
    else this.#end(living, downMicros)
    return true
  }

  /** It stands still: its clients wait, or go to another one. */
  pause(name: string, lengthMicros: number): void {
    this.#living.get(name)?.process.pause(lengthMicros)
  }

  /** Once the world has healed: every gateway must come to ask all nodes that work. */
  finish(): void {
    for (const name of this.names) {
      this.#living.get(name)?.process.resume()
      this.#busy += 1
      this.#untilNobodyIsPassedOver(name).then(
        () => (this.#busy -= 1),
        (error: unknown) => this.#parts.onFailed(error),
      )
    }
  }

  /** An application's end of HTTP: it knows one of the gateways, or some. */
  connect(process: SimProcess, clock: Clock, random: SeededRandom): HttpCaller {
    const { httpNetwork, options, farRoundTripMs } = this.#parts
    const gateways = random.shuffle(this.names).slice(0, random.int(1, this.names.length))
    const transport = httpNetwork.attach(process, gateways)
    const { askTimeoutMs = 0, triesMax = 0 } = options ?? {}
    // A caller with a timeout shorter than the way to a gateway and one try of it never hears an
    // answer.
    const tryTimeoutMs = Math.max(askTimeoutMs, (1 + roundTripsPerTry) * farRoundTripMs)
    return new HttpCaller({ transport, clock, random, gateways, tryTimeoutMs, triesMax })
  }

  /** The application is gone. */
  disconnect(name: string): void {
    this.#parts.httpNetwork.detach(name)
  }

  async #untilNobodyIsPassedOver(name: string): Promise<void> {
    const { world, referee, options } = this.#parts
    const deadlineMicros = world.nowMicros + looksMicros + 16_000 * (options?.openMs ?? 0)
    // On slow ways a try may be given up before its answer comes: each breaker closes in its time.
    const asked = new Set<string>()
    let passedOver: readonly string[] = []
    for (let looks = 0; world.nowMicros < deadlineMicros; looks++) {
      const living = this.#living.get(name)
      if (living !== undefined) {
        await this.#lookAround(living, looks % rowsLookedFor)
        passedOver = passedOverBy(living.relay, asked)
        if (passedOver.length === 0) return
      }
      await world.sleep(lookMicros)
    }
    const sentence = 'A gateway passes over a node that works.'
    referee.check(false, 'LIVE-1', sentence, () => ({ gateway: name, passedOver }))
  }

  /**
   * Reads rows that do not exist, which any replica may answer: the gateway tries each node in
   * turn.
   */
  async #lookAround({ name, serve }: Living, row: number): Promise<void> {
    const rowKey = `00000000-0000-4000-8000-${row.toString(16).padStart(12, '0')}`
    const path = `/v1/datastores/nobody/cells/${rowKey}?read=snapshot`
    await answered(serve, name, { method: 'GET', path, headers: {} })
  }

  #bringUp(name: string, life: number): void {
    const { world, nodes, nodeNetwork, httpNetwork, options } = this.#parts
    if (options === undefined) return
    const process = new SimProcess(world, nameEndpoint(name, life))
    const random = world.random.fork(`gateway ${process.name}`)
    const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
    const clock = createClock(process, skew, random.fork('clock'))
    const ports = { transport: nodeNetwork.attach(process, nodes), clock }
    const relay = new Relay({ ...ports, random: random.fork('relay') }, this.#limits(options))
    const bugs = new Bugs({ clock, random, tell: (bug) => this.#parts.onFailed(ownError(bug)) })
    const fetch = gatewayFetch({
      cells: relay,
      slices: new Slices(clock),
      admission: new Admission(clock),
      timeoutMs: this.#parts.timeoutMs,
      noteBug: bugs.note,
    })
    const serve: HttpHandler = (request) => Promise.resolve(fetch(request))
    const living = { name, life, process, random, relay, serve }
    this.#living.set(name, living)
    this.#listen(living, httpNetwork.attach(process, [], name))
  }

  #limits({ tryTimeoutMs, failuresMax, openMs }: GatewayOptions): typeof defaultClientLimits {
    const { timeoutMs, farRoundTripMs } = this.#parts
    const breaker = { failuresMax, avoidMs: openMs, avoidMaxMs: 8 * openMs }
    // A node that is farther than one waits for is no node that works.
    const tryMs = Math.max(tryTimeoutMs, roundTripsPerTry * farRoundTripMs)
    return { ...defaultClientLimits, ...breaker, timeoutMs, tryTimeoutMs: tryMs }
  }

  #listen({ process, serve, name }: Living, transport: Transport<HttpFrame>): void {
    const { coverage, onFailed } = this.#parts
    transport.start({
      self: () => ({}),
      admit: () => undefined,
      onRefused: () => undefined,
      onLink: () => undefined,
      onFrame: (from, frame) => {
        if (frame.kind !== 'request') return
        answered(serve, name, frame.request).then((answer) => {
          coverage.count(`gateway: ${frame.request.method} ${answer.status}`)
          if (process.isAlive) transport.send(from, { kind: 'answer', id: frame.id, answer })
        }, onFailed)
      },
    })
  }

  /** As an operator stops it: no new requests, then those under way are cut short. */
  #stop(living: Living, downMicros: number): void {
    const { world, coverage, onFailed } = this.#parts
    coverage.count('gateway: stopped')
    living.relay.stop()
    world.schedule(graceMicros, 'gateway closes', () => {
      living.relay.close().catch(onFailed)
    })
    world.schedule(graceMicros + partingMicros, 'gateway ends', () => {
      this.#end(living, downMicros)
    })
  }

  #end({ name, life, process }: Living, downMicros: number): void {
    const { world, nodeNetwork, httpNetwork } = this.#parts
    nodeNetwork.detach(process.name)
    httpNetwork.detach(name)
    process.kill()
    world.schedule(downMicros, 'gateway again', () => {
      this.#bringUp(name, life + 1)
    })
  }
}

/** Nodes that a link is up to, and that were at no look `asked` as any other. */
function passedOverBy(relay: Relay, asked: Set<string>): readonly string[] {
  const linked = relay.nodes().filter(({ isUp }) => isUp)
  for (const { node, breaker } of linked) if (breaker === 'closed') asked.add(node)
  return linked.map(({ node }) => node).filter((node) => !asked.has(node))
}
