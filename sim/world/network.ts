/**
 * The simulated network: `Transport` over the world. Frames go through the real codec; they are
 * delayed with a heavy tail, overtaken, doubled (also late), lost; links break, are noticed to be
 * broken, and come back with a handshake, as the real transport's do.
 */
import { assert } from '../../src/base/assert.ts'
import type { LinkInfo, Transport } from '../../src/ports/transport.ts'
import { describeAge, Echoes } from './echoes.ts'
import type { NetworkParts } from './network-parts.ts'
import { falseClaim } from '../faults/false-claims.ts'
import { Port, type Carrier } from './network-port.ts'
import type { SeededRandom } from './random.ts'
import type { SimProcess } from './sim-process.ts'

export type { FrameCodec, FrameObserver } from './network-parts.ts'

/** One connection between two endpoints, made again and again by the one that dials. */
interface Link {
  readonly dialer: string
  readonly listener: string
  /** Counts connections; what carries an older number belongs to a lost one. */
  epoch: number
  state: 'down' | 'dialing' | 'up'
  /** Unanswered dials since it was up. */
  vain: number
}

interface SentFrame {
  /** Of the link that it was sent over. */
  readonly epoch: number
  readonly bytes: Uint8Array
  readonly sentMicros: number
  /** It comes a second time. */
  isDoubled: boolean
  /** A copy that comes long after, whatever has become of its link. */
  readonly isEcho?: boolean
}

interface KeptFrame<Frame> extends SentFrame {
  readonly port: Port<Frame>
  /** The numbers of the requests that it brings. */
  readonly requests: readonly number[]
}

/**
 * After this many unanswered dials an endpoint waits longer: outages may last for minutes, and
 * dials take a while.
 */
const vainDialsMax = 500
const vainPauseMicros = 1_000_000

/** One direction of a link. */
interface Way<Frame> {
  readonly label: string
  readonly random: SeededRandom
  /** Frames that it carried lately, where copies come long after. */
  readonly echoes: Echoes<KeptFrame<Frame>>
  /** Slower than others for good. */
  readonly isFar: boolean
  /** Its own, once one of the ends has dialled. */
  link: Link | undefined
  underWay: number
  /** No frame that keeps its place arrives before this. */
  inOrderMicros: number
}

export class Network<Frame> implements Carrier<Frame> {
  readonly parts: NetworkParts<Frame>
  readonly #ports = new Map<string, Port<Frame>>()
  readonly #links = new Map<string, Link>()
  /** By both its ends. */
  readonly #linksByEnd = new Map<string, Link[]>()
  /** By the sender and the receiver. */
  readonly #ways = new Map<string, Map<string, Way<Frame>>>()
  /** Endpoints whose next frame is lost with its link. */
  readonly #losers = new Set<string>()

  constructor(parts: NetworkParts<Frame>) {
    this.parts = parts
  }

  /** A process's end of the network. It dials `dials`; others dial it. */
  attach(
    process: SimProcess,
    dials: readonly string[],
    name: string = process.name,
  ): Transport<Frame> {
    assert(!this.#ports.has(name), 'network: the name is in use')
    for (const listener of dials) {
      const key = linkKey(name, listener)
      if (!this.#links.has(key)) this.#addLink(key, name, listener)
    }
    const port = new Port(this, process, name)
    this.#ports.set(name, port)
    return port
  }

  #addLink(key: string, dialer: string, listener: string): void {
    const link: Link = { dialer, listener, epoch: 0, state: 'down', vain: 0 }
    this.#links.set(key, link)
    for (const end of [dialer, listener]) {
      const links = this.#linksByEnd.get(end)
      if (links === undefined) this.#linksByEnd.set(end, [link])
      else links.push(link)
    }
  }

  /** The process crashed or stopped: its links are lost, and the others notice in time. */
  detach(name: string): void {
    this.#ports.delete(name)
    for (const link of this.#findLinks(name)) {
      // Most links that are down are of processes that died long ago, and need no event. But the
      // dialer may have given up while an answer is on its way: a new epoch keeps that answer from
      // the next process of this name.
      if (link.state === 'down') link.epoch += 1
      else this.#lose(link)
    }
  }

  /** Loses the link between two endpoints: a reset, with what was under way on it. */
  reset(a: string, b: string): void {
    const link = this.#linkBetween(a, b)
    if (link !== undefined && link.state !== 'down') this.#lose(link)
  }

  /** The next frame that `from` sends is lost, and its link breaks. */
  loseNext(from: string): void {
    this.#losers.add(from)
  }

  started(port: Port<Frame>): void {
    for (const link of this.#findLinks(port.name)) {
      if (link.dialer === port.name) this.#dialLater(link, 0)
    }
  }

  closed(port: Port<Frame>): void {
    if (this.#ports.get(port.name) === port) this.detach(port.name)
  }

  /** Takes a frame on its way; false when it is refused at once. */
  carry(from: Port<Frame>, to: string, frame: Frame): boolean {
    const { weather, coverage, codec, observer, world } = this.parts
    const epoch = from.epochByPeer.get(to)
    const way = this.#ensureWay(from.name, to)
    const { conditions } = weather
    if (epoch === undefined || way.underWay >= conditions.framesUnderWayMax) return false
    const bytes = codec.encode(frame)
    world.hash.bytes(bytes)
    from.process.work('frame', 1, bytes.length)
    if (this.parts.hasEchoes === true) this.#repeatRefused(from.name, to, frame)
    observer.onSent(from.name, to, frame, bytes.length)
    // Frames written to a connection that is lost, but not yet known to be, go nowhere.
    if (this.#findLink(way, from.name, to)?.epoch !== epoch) coverage.count('sent in vain')
    else if (this.#isLost(from.name, to)) coverage.count('lost-reply')
    else if (weather.isCut(from.name, to)) coverage.count('cut')
    else if (way.random.chance(conditions.drop)) coverage.count('drop')
    else
      this.#depart(way, from, to, frame, {
        epoch,
        bytes,
        sentMicros: world.nowMicros,
        isDoubled: false,
      })
    return true
  }

  /**
   * Repeats frames sent to an endpoint lately, up to this many a way. Their senders have their
   * answers, have moved on, or have died.
   */
  echo(to: string, framesMax: number): void {
    const { world, coverage, keepsCopies } = this.parts
    for (const ways of this.#ways.values()) {
      const way = ways.get(to)
      for (const frame of way?.echoes.take(world.nowMicros, framesMax) ?? []) {
        const { port, epoch, sentMicros } = frame
        if (keepsCopies === true && port.epochByPeer.get(to) !== epoch) continue
        coverage.count('echo')
        coverage.count(`echo after ${describeAge(world.nowMicros - sentMicros)}`)
        if (way) this.#deliverLater(way, port, to, frame, this.#computeDelay(way, port.name, to))
      }
    }
  }

  /**
   * Another store takes the place of the endpoint's. A frame of the old one says how far its own log is, and the links of the new
   * one never carry it.
   */
  forgetFramesOf(from: string): void {
    for (const { echoes } of this.#ways.get(from)?.values() ?? []) echoes.forget()
  }

  /**
   * Some of the requests that this answer refuses come once more, perhaps when their client has
   * given up.
   */
  #repeatRefused(node: string, client: string, answer: Frame): void {
    const { world, weather, coverage, codec } = this.parts
    const refused = weather.isHealed ? [] : (codec.refused?.(answer) ?? [])
    if (refused.length === 0) return
    const way = this.#ensureWay(client, node)
    const brings = ({ requests }: KeptFrame<Frame>): boolean =>
      requests.some((id) => refused.includes(id))
    for (const [frame, afterMicros] of way.echoes.refused(brings)) {
      world.schedule(afterMicros, way.label, () => {
        const { port, epoch } = frame
        if (port.epochByPeer.get(node) !== epoch) return
        coverage.count('echo of a refused request')
        this.#deliverLater(way, port, node, frame, this.#computeDelay(way, client, node))
      })
    }
  }

  #isLost(from: string, to: string): boolean {
    if (!this.#losers.delete(from)) return false
    this.reset(from, to)
    return true
  }

  #depart(way: Way<Frame>, from: Port<Frame>, to: string, frame: Frame, sent: SentFrame): void {
    const { coverage, weather, codec } = this.parts
    const { conditions } = weather
    if (this.parts.hasEchoes === true && codec.hasContent?.(frame) !== false) {
      const requests = codec.requests?.(frame) ?? []
      const kept = { port: from, requests, ...sent, isDoubled: true, isEcho: true }
      way.echoes.keep(kept, codec.asks?.(frame) === true)
    }
    this.#deliverLater(way, from, to, sent, this.#delayFrom(from, way, to))
    if (this.parts.isStream === true || !way.random.chance(conditions.duplicate)) return
    coverage.count('duplicate')
    sent.isDoubled = true
    const isLate = way.random.chance(conditions.late)
    if (isLate) coverage.count('late-duplicate')
    const lateMicros = isLate ? way.random.exponential(conditions.lateMeanMicros) : 0
    const delayMicros = this.#delayFrom(from, way, to) + lateMicros
    this.#deliverLater(way, from, to, sent, delayMicros)
  }

  /**
   * Frames that a process sends while it stands still leave it afterwards, and those of a turn at its end.
   */
  #delayFrom({ name, process }: Port<Frame>, way: Way<Frame>, to: string): number {
    return this.#computeDelay(way, name, to, process.heldUpMicros)
  }

  #computeDelay(way: Way<Frame>, from: string, to: string, heldUpMicros = 0): number {
    const { weather, world, coverage } = this.parts
    const { conditions } = weather
    const { nowMicros } = world
    const drawn = conditions.delayMinMicros + way.random.exponential(conditions.delayMeanMicros)
    let delay = conditions.between?.[`${from}>${to}`] ?? drawn
    if (way.isFar) {
      coverage.count('far')
      delay *= conditions.farFactor ?? 1
    }
    const extraMicros = weather.extraMicros(from, to, nowMicros)
    const slowMicros = delay * weather.takeTurn(from, to) + extraMicros
    delay += extraMicros
    if (way.random.chance(conditions.tail)) {
      coverage.count('tail')
      delay *= conditions.tailFactor
    }
    // The one or the other: both together would last for minutes.
    delay = Math.max(delay, slowMicros)
    let at = Math.max(nowMicros + heldUpMicros + delay, weather.clearAtMicros(from, to))
    if (way.random.chance(conditions.reorder)) {
      if (at < way.inOrderMicros) coverage.count('reorder')
    } else {
      at = Math.max(at, way.inOrderMicros)
      way.inOrderMicros = at
    }
    return at - nowMicros
  }

  #deliverLater(
    way: Way<Frame>,
    { name: from, process }: Port<Frame>,
    to: string,
    sent: SentFrame,
    delayMicros: number,
  ): void {
    const { world, weather, coverage, isStream = false, keepsCopies = false } = this.parts
    way.underWay += 1
    const { epoch, bytes, sentMicros, isEcho } = sent
    const isDrawn = isEcho === true || (!isStream && way.random.chance(weather.conditions.survive))
    world.schedule(delayMicros, way.label, () => {
      way.underWay -= 1
      const port = this.#ports.get(to)
      const current = port?.epochByPeer.get(from)
      if (port === undefined || current === undefined) return
      const survives = isDrawn && !(keepsCopies && sent.isDoubled)
      if (current !== epoch && !survives) return
      if (current !== epoch) coverage.count('survivor')
      if (!process.isAlive && this.#ports.has(from)) coverage.count('old-incarnation')
      port.receive(from, bytes, sentMicros)
    })
  }

  /** Dials: hello with what the dialer tells of itself, welcome or a refusal, ready. */
  #dial(link: Link): void {
    const dialer = this.#ports.get(link.dialer)
    if (dialer?.isStarted !== true || link.state !== 'down') return
    link.state = 'dialing'
    const epoch = ++link.epoch
    const info = dialer.handlers.self()
    // A new connection does not queue behind what the lost one carried.
    for (const way of this.#bothWays(link)) way.inOrderMicros = 0
    this.#pass(link.dialer, link.listener, () => {
      this.#answer(link, epoch, info)
    })
    this.parts.world.schedule(this.#patienceMicros(link), `give-up ${link.dialer}`, () => {
      if (link.epoch !== epoch || link.state !== 'dialing') return
      link.state = 'down'
      link.vain += 1
      this.#dialLater(link, this.#reconnectMicros(link))
    })
  }

  #answer(link: Link, epoch: number, dialerInfo: LinkInfo): void {
    const listener = this.#ports.get(link.listener)
    if (listener?.isStarted !== true || link.epoch !== epoch) return
    const reason =
      listener.handlers.admit(link.dialer, dialerInfo) ??
      falseClaim(this.#ensureWay(link.dialer, link.listener).random, link.dialer, dialerInfo)
    const info = listener.handlers.self()
    this.#pass(link.listener, link.dialer, () => {
      const dialer = this.#ports.get(link.dialer)
      if (dialer === undefined || link.epoch !== epoch) return
      if (reason !== undefined) this.#refused(link, dialer, reason)
      else this.#welcome(link, epoch, dialer, { dialerInfo, listenerInfo: info })
    })
  }

  #refused(link: Link, dialer: Port<Frame>, reason: string): void {
    link.state = 'down'
    this.#dialLater(link, this.#reconnectMicros(link) * 10)
    dialer.handlers.onRefused(link.listener, reason)
  }

  #welcome(
    link: Link,
    epoch: number,
    dialer: Port<Frame>,
    infos: { readonly dialerInfo: LinkInfo; readonly listenerInfo: LinkInfo },
  ): void {
    const reason = dialer.handlers.admit(link.listener, infos.listenerInfo)
    this.#pass(link.dialer, link.listener, () => {
      const listener = this.#ports.get(link.listener)
      if (listener === undefined || link.epoch !== epoch) return
      if (reason !== undefined) listener.handlers.onRefused(link.dialer, reason)
      else listener.linked(link.dialer, epoch, infos.dialerInfo)
    })
    if (reason !== undefined) {
      link.state = 'down'
      this.#dialLater(link, this.#reconnectMicros(link) * 10)
      return
    }
    link.state = 'up'
    link.vain = 0
    dialer.linked(link.listener, epoch, infos.listenerInfo)
    this.#expectListener(link, epoch)
  }

  /** A link whose last word of the handshake was lost is no link: the dialer notices in time. */
  #expectListener(link: Link, epoch: number): void {
    this.parts.world.schedule(this.#patienceMicros(link), `expect ${link.listener}`, () => {
      if (link.epoch !== epoch) return
      const listener = this.#ports.get(link.listener)
      if (listener?.epochByPeer.get(link.dialer) !== epoch) this.#lose(link)
    })
  }

  #lose(link: Link): void {
    const { epoch } = link
    link.epoch += 1
    link.state = 'down'
    const { world, weather } = this.parts
    for (const [name, peer] of [
      [link.dialer, link.listener],
      [link.listener, link.dialer],
    ] as const) {
      const port = this.#ports.get(name)
      const random = this.#ensureWay(name, peer).random
      const delayMicros = random.exponential(weather.conditions.noticeMeanMicros)
      world.schedule(delayMicros, `lost ${name}`, () => {
        if (port !== undefined && port === this.#ports.get(name)) port.unlinked(peer, epoch)
      })
    }
    this.#dialLater(link, this.#reconnectMicros(link))
  }

  #dialLater(link: Link, delayMicros: number): void {
    this.parts.world.schedule(delayMicros, `dial ${link.dialer}`, () => {
      this.#dial(link)
    })
  }

  /** How long a handshake may take. */
  #patienceMicros({ dialer, listener }: Link): number {
    const { weather } = this.parts
    const { conditions } = weather
    const { noticeMeanMicros, delayMinMicros, delayMeanMicros, farFactor = 1 } = conditions
    const there = weather.slownessOf(dialer, listener)
    const factor = farFactor * Math.max(there, weather.slownessOf(listener, dialer))
    const usual = factor * (delayMinMicros + delayMeanMicros)
    return (
      4 * noticeMeanMicros +
      10 * Math.max(usual, conditions.between?.[`${dialer}>${listener}`] ?? 0)
    )
  }

  #reconnectMicros(link: Link): number {
    const { random } = this.#ensureWay(link.dialer, link.listener)
    const least = link.vain < vainDialsMax ? 1000 : vainPauseMicros
    return least + random.exponential(this.parts.weather.conditions.reconnectMeanMicros)
  }

  /** A part of a handshake: lost where frames would be, else delayed as they are. */
  #pass(from: string, to: string, arrive: () => void): void {
    const { world, weather } = this.parts
    if (weather.isCut(from, to)) return
    const way = this.#ensureWay(from, to)
    world.schedule(this.#computeDelay(way, from, to), `handshake ${way.label}`, () => {
      this.#ports.get(to)?.process.enter(way.label, arrive)
    })
  }

  #linkBetween(a: string, b: string): Link | undefined {
    return this.#links.get(linkKey(a, b)) ?? this.#links.get(linkKey(b, a))
  }

  #findLinks(name: string): readonly Link[] {
    return this.#linksByEnd.get(name) ?? []
  }

  #bothWays({ dialer, listener }: Link): readonly Way<Frame>[] {
    return [this.#ensureWay(dialer, listener), this.#ensureWay(listener, dialer)]
  }

  /** Links are made once, and stay. */
  #findLink(way: Way<Frame>, from: string, to: string): Link | undefined {
    way.link ??= this.#linkBetween(from, to)
    return way.link
  }

  #ensureWay(from: string, to: string): Way<Frame> {
    let ways = this.#ways.get(from)
    if (ways === undefined) {
      ways = new Map()
      this.#ways.set(from, ways)
    }
    let way = ways.get(to)
    if (way === undefined) {
      way = this.#makeWay(from, to)
      ways.set(to, way)
    }
    return way
  }

  #makeWay(from: string, to: string): Way<Frame> {
    const label = `${this.parts.name} ${from}>${to}`
    const random = this.parts.world.random.fork(label)
    const isFar = random.fork('far').chance(this.parts.weather.conditions.far ?? 0)
    const echoes = new Echoes<KeptFrame<Frame>>(random.fork('echoes'))
    return { label, random, isFar, echoes, link: undefined, underWay: 0, inOrderMicros: 0 }
  }
}

function linkKey(dialer: string, listener: string): string {
  return `${dialer}>${listener}`
}
