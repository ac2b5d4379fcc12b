/**
 * Read leases of all nodes, looked at from outside and at one moment: each node by its own clocks.
 * Nothing in the nodes notices.
 */
import { present } from '../../src/base/assert.ts'
import { fromLatin1 } from '../../src/base/bytes.ts'
import { groupOfBytes, nodeId, type NodeId } from '../../src/base/ids.ts'
import type { ClockReading } from '../../src/lease/clock-reading.ts'
import type { ObservedLeases } from '../../src/replica/replica.ts'
import type { LogChecker } from '../checkers/log-checker.ts'
import type { Coverage } from '../coverage.ts'
import type { NodeHost, Program } from './node-host.ts'

type Host<P extends Program> = Pick<NodeHost<P>, 'name' | 'program' | 'nowMicros' | 'readingAt'>

export interface LeaseWatchParts<P extends Program> {
  readonly hosts: readonly Host<P>[]
  readonly checker: Pick<LogChecker, 'onLeaseSeen' | 'onUnlistedSeen'>
  readonly coverage: Coverage
  /** Undefined: the program has stopped, and serves nothing. */
  readLeases(program: P): ObservedLeases | undefined
}

/** A node at one moment. */
interface Seen {
  readonly id: NodeId
  readonly leases: ObservedLeases
  readonly reading: ClockReading
}

export class LeaseWatch<P extends Program> {
  readonly #parts: LeaseWatchParts<P>
  readonly #byName: ReadonlyMap<string, { readonly id: NodeId; readonly host: Host<P> }>

  constructor(parts: LeaseWatchParts<P>) {
    this.#parts = parts
    this.#byName = new Map(parts.hosts.map((host) => [host.name, { id: nodeId(host.name), host }]))
  }

  /** An entry becomes visible at a node: no other node may serve the group alone without it. */
  onVisible(node: string, group: string, position: number): void {
    const { hosts, checker, coverage } = this.#parts
    const atMicros = this.#moment()
    for (const host of hosts) {
      const { name } = host
      const leases = name === node ? undefined : this.#readLeases(host)
      if (leases === undefined) continue
      const reading = host.readingAt(atMicros)
      const through = leases.leasedThrough(groupOfBytes(fromLatin1(group)), reading)
      if (through === undefined) continue
      coverage.count('lease holder looked at')
      checker.onLeaseSeen(name, group, position, through)
    }
  }

  /** A node has handled a frame: its grantors know of every lease that a holder counts on. */
  onHandled(node: string): void {
    const atMicros = this.#moment()
    const handler = this.#see(node, atMicros)
    // One that is down lists everybody when it comes back.
    if (handler === undefined) return
    for (const { name } of this.#parts.hosts) {
      const other = name === node ? undefined : this.#see(name, atMicros)
      if (other === undefined) continue
      this.#look(handler, other)
      this.#look(other, handler)
    }
  }

  /** Undefined when it is down, or has stopped. */
  #see(name: string, atMicros: number): Seen | undefined {
    const { id, host } = present(this.#byName.get(name), 'lease-watch: a node of the cluster')
    const leases = this.#readLeases(host)
    return leases && { id, leases, reading: host.readingAt(atMicros) }
  }

  /**
   * All nodes are observed at the clock of the busiest one: a lease may last until then by its
   * belief.
   */
  #moment(): number {
    let latest = 0
    for (const { nowMicros = 0 } of this.#parts.hosts) latest = Math.max(latest, nowMicros)
    return latest
  }

  /** Looks at the leases of a grantor that a holder counts on. */
  #look(holder: Seen, grantor: Seen): void {
    const { checker, coverage } = this.#parts
    let looks = 0
    holder.leases.eachCounted(holder.reading, grantor.id, (group, position) => {
      looks += 1
      if (grantor.leases.lists(holder.id, group, position, grantor.reading.now)) return
      checker.onUnlistedSeen(holder.id, grantor.id, group, position)
    })
    if (looks > 0) coverage.count('registration looked at', looks)
  }

  #readLeases({ program }: Host<P>): ObservedLeases | undefined {
    return program && this.#parts.readLeases(program)
  }
}
