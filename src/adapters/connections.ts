/**
 * The connections of a listener, and the bounds on their numbers. A connection is a stranger's until a link
 * or a request on it has proven to be a client's or a peer's. Strangers have a part of the room, and the
 * newest of them always comes in. Where it finds no room, the listener ends a connection of the address with
 * the most strangers: the one it has served nothing for longest. So a sender without a proof keeps its
 * connections only until another one wants the room. Idle connections of an address never push out a
 * connection that is in use.
 *
 * DOOR-1  Strangers never take the room of those who have proven themselves, nor the other way about.
 * DOOR-2  A peer always has room: there are as many as the cluster has nodes.
 * DOOR-4  Of the strangers of an address the one is ended first for which nothing has been done for longest.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../ports/clock.ts'

/** All are counts of connections. */
export interface ConnectionLimits {
  /** In all, but for those of peers. */
  readonly connectionsMax: number
  /** Of clients of one address; those of this machine itself are bounded together only. */
  readonly connectionsPerAddressMax: number
  /** Of strangers, among those in all. */
  readonly unprovenMax: number
  readonly unprovenPerAddressMax: number
}

/** The kind of sender that a connection is taken for. */
export type Standing = 'stranger' | 'client' | 'peer'

/** The part of a socket that this looks at. */
export interface Connection {
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
  readonly localAddress?: string | undefined
  destroy(): unknown
  once(event: 'close', run: () => void): unknown
}

/** Counts of connections by their fate, for metrics. */
export interface ConnectionCounts {
  opened: number
  /** Strangers ended for a newer one. */
  displaced: number
  /** Strangers ended because they said nothing for too long. */
  idle: number
  /** Clients refused because there are too many, in all or from their address. */
  refused: number
}

interface Held {
  readonly key: string
  readonly address: string
  readonly connection: Connection
  standing: Standing
  activeMs: number
}

export class Connections {
  readonly counts: ConnectionCounts = { opened: 0, displaced: 0, idle: 0, refused: 0 }
  readonly #limits: ConnectionLimits
  readonly #clock: Clock
  readonly #held = new Map<string, Held>()
  /** By address; first the one for which nothing has been done for longest. */
  readonly #strangers = new Map<string, Set<Held>>()
  #strangerCount = 0
  readonly #clients = new Map<string, number>()
  #clientCount = 0

  constructor(limits: ConnectionLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  count(standing: Standing): number {
    if (standing === 'stranger') return this.#strangerCount
    if (standing === 'client') return this.#clientCount
    return this.#held.size - this.#strangerCount - this.#clientCount
  }

  /** Takes a connection that has just been made, and ends an older one for it where there is no room. */
  open(connection: Connection): void {
    const key = formatKey(connection)
    // It is gone already, and nothing is known of it any more.
    if (key === undefined) return void connection.destroy()
    this.counts.opened += 1
    const address = groupAddress(connection.remoteAddress ?? '')
    const activeMs = this.#clock.monotonicMs()
    const held: Held = { key, address, connection, standing: 'stranger', activeMs }
    const older = this.#held.get(key)
    if (older !== undefined) this.#forget(older)
    this.#held.set(key, held)
    connection.once('close', () => this.#forget(held))
    const strangers = this.#strangers.get(address) ?? new Set()
    this.#strangers.set(address, strangers.add(held))
    this.#strangerCount += 1
    const { unprovenMax, unprovenPerAddressMax } = this.#limits
    if (strangers.size > unprovenPerAddressMax) this.#displace(address)
    else if (this.#strangerCount > unprovenMax) this.#displace(this.#busiest())
    assert(this.#strangerCount <= unprovenMax, 'DOOR-1: strangers have more room than theirs')
  }

  /**
   * Says that a connection has proven to be a client's or a peer's. Returns the reason where it may not stay
   * as such: then it is a stranger's as before.
   */
  prove(connection: Connection, as: 'client' | 'peer'): string | undefined {
    const held = this.#find(connection)
    if (held === undefined || held.standing !== 'stranger') return undefined
    const problem = as === 'client' ? this.#fullFor(held.address) : undefined
    assert(as === 'client' || problem === undefined, 'DOOR-2: a peer is refused for want of room')
    if (problem !== undefined) {
      this.counts.refused += 1
      return problem
    }
    this.#noStranger(held)
    held.standing = as
    if (as === 'peer') return undefined
    this.#clients.set(held.address, this.#countClients(held.address) + 1)
    this.#clientCount += 1
    assert(this.#clientCount <= this.#clientsMax, 'DOOR-1: clients have the room of strangers')
    return undefined
  }

  /** The listener has just served a stranger, with the health of the node. */
  touch(connection: Connection): void {
    const held = this.#find(connection)
    if (held === undefined) return
    held.activeMs = this.#clock.monotonicMs()
    const strangers = this.#strangers.get(held.address)
    if (strangers?.delete(held) === true) strangers.add(held)
  }

  /** Ends strangers that the listener has served nothing for `idleMs` milliseconds. */
  endIdle(idleMs: number): void {
    const before = this.#clock.monotonicMs() - idleMs
    for (const strangers of this.#strangers.values()) {
      for (const held of strangers) {
        if (held.activeMs > before) continue
        this.counts.idle += 1
        this.#end(held)
      }
    }
  }

  get #clientsMax(): number {
    return this.#limits.connectionsMax - this.#limits.unprovenMax
  }

  #countClients(address: string): number {
    return this.#clients.get(address) ?? 0
  }

  #fullFor(address: string): string | undefined {
    const { connectionsMax, connectionsPerAddressMax } = this.#limits
    if (this.#clientCount >= this.#clientsMax) {
      return `overloaded: ${this.#clientCount} connections are open, as many as may be (of connections_max ${connectionsMax}); ask another node`
    }
    if (address === ownMachine || this.#countClients(address) < connectionsPerAddressMax)
      return undefined
    return `overloaded: your address has ${connectionsPerAddressMax} connections here, as many as one may have (connections_per_address_max)`
  }

  #find(connection: Connection): Held | undefined {
    const key = formatKey(connection)
    return key === undefined ? undefined : this.#held.get(key)
  }

  #busiest(): string {
    let busiest = ''
    let most = 0
    for (const [address, strangers] of this.#strangers) {
      if (strangers.size <= most) continue
      busiest = address
      most = strangers.size
    }
    return busiest
  }

  #displace(address: string): void {
    const [first, second] = this.#strangers.get(address) ?? []
    if (first === undefined) return
    assert(
      second === undefined || first.activeMs <= second.activeMs,
      'DOOR-4: a stranger is ended before one for which less has been done',
    )
    this.counts.displaced += 1
    this.#end(first)
  }

  #end(held: Held): void {
    this.#forget(held)
    held.connection.destroy()
  }

  #forget(held: Held): void {
    if (this.#held.get(held.key) !== held) return
    this.#held.delete(held.key)
    if (held.standing === 'stranger') this.#noStranger(held)
    if (held.standing !== 'client') return
    this.#clientCount -= 1
    const others = this.#countClients(held.address) - 1
    if (others > 0) this.#clients.set(held.address, others)
    else this.#clients.delete(held.address)
  }

  #noStranger(held: Held): void {
    const strangers = this.#strangers.get(held.address)
    if (strangers?.delete(held) !== true) return
    this.#strangerCount -= 1
    if (strangers.size === 0) this.#strangers.delete(held.address)
  }
}

/** The key names both ends: TLS makes another object of a connection, with the same ends. */
function formatKey({ remoteAddress, remotePort, localAddress }: Connection): string | undefined {
  if (remoteAddress === undefined) return undefined
  return `${remoteAddress} ${remotePort ?? 0} ${localAddress ?? ''}`
}

const ownMachine = 'loopback'

/** A host with one address of IPv6 has as many as it likes: those of a network of 64 bits count as one. */
function groupAddress(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (plain.startsWith('127.') || plain === '::1') return ownMachine
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = Math.max(0, 8 - first.length - last.length)
  return [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':')
}
