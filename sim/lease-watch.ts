/**
 * Read leases of all nodes, looked at from outside and at one moment: each node by its own clocks. Nothing
 * in the nodes notices.
 */
import { fromLatin1 } from '../src/base/bytes.ts'
import { groupOfBytes, nodeId } from '../src/base/ids.ts'
import type { ObservedLeases } from '../src/replica/replica.ts'
import type { CountedRegistration } from '../src/replication/read-lease.ts'
import type { LogChecker } from './checkers/log-checker.ts'
import type { Coverage } from './coverage.ts'
import type { NodeHost, Program } from './node-host.ts'

type Host<P extends Program> = Pick<NodeHost<P>, 'name' | 'program' | 'reading'>

export interface LeaseWatchParts<P extends Program> {
  readonly hosts: readonly Host<P>[]
  readonly checker: Pick<LogChecker, 'onLeaseSeen' | 'onRegistrationSeen'>
  readonly coverage: Coverage
  /** Undefined: the program has stopped, and serves nothing. */
  leasesOf(program: P): ObservedLeases | undefined
}

export class LeaseWatch<P extends Program> {
  readonly #parts: LeaseWatchParts<P>

  constructor(parts: LeaseWatchParts<P>) {
    this.#parts = parts
  }

  /** An entry becomes visible at a node: nobody else may serve the group alone without it. */
  onVisible(node: string, group: string, position: number): void {
    const { hosts, checker, coverage } = this.#parts
    for (const host of hosts) {
      const { name, reading } = host
      if (name === node || reading === undefined) continue
      const through = this.#leasesOf(host)?.leasedThrough(groupOfBytes(fromLatin1(group)), reading)
      if (through === undefined) continue
      coverage.count('lease holder looked at')
      checker.onLeaseSeen(name, group, position, through)
    }
  }

  /** A node has handled a frame: whatever anybody counts on, its grantor knows of. */
  onHandled(node: string): void {
    for (const holder of this.#parts.hosts) {
      const { name, reading } = holder
      if (reading === undefined) continue
      const ofGrantor = name === node ? undefined : nodeId(node)
      const counted = this.#leasesOf(holder)?.counted(reading.now, ofGrantor) ?? []
      for (const registration of counted) this.#look(name, registration)
    }
  }

  #look(holder: string, { group, grantor, position }: CountedRegistration): void {
    const { hosts, checker, coverage } = this.#parts
    const host = hosts.find(({ name }) => name === grantor)
    const leases = host && this.#leasesOf(host)
    // One that is down lists everybody when it comes back.
    if (host?.reading === undefined || leases === undefined) return
    coverage.count('registration looked at')
    const isListed = leases.lists(nodeId(holder), group, position, host.reading.now)
    checker.onRegistrationSeen(holder, grantor, { group, position, isListed })
  }

  #leasesOf({ program }: Host<P>): ObservedLeases | undefined {
    return program && this.#parts.leasesOf(program)
  }
}
