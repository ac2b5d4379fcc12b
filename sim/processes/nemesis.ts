/**
 * Carries a list of faults out on real processes: each at its moment, by signals to the daemons and
 * by what the proxies do. Kinds that cannot be done from outside are left out.
 */
import type { Fault } from '../faults/fault.ts'
import type { ProcessCluster } from './cluster.ts'
import { nameFault } from './plan.ts'

export interface NemesisParts {
  readonly cluster: ProcessCluster
  /** All clients write to one row for this long. */
  storm(lengthMs: number): void
  killClient(client: string, downMs: number): void
}

export class ProcessNemesis {
  readonly #parts: NemesisParts
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #counts = new Map<string, number>()
  /** Actions on daemons that have not come to their end. */
  readonly #underWay = new Set<Promise<void>>()
  #isOver = false

  constructor(parts: NemesisParts) {
    this.#parts = parts
  }

  /** How often each name of a fault struck. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }

  start(faults: readonly Fault[]): void {
    for (const fault of faults) {
      this.#after(fault.atMicros, () => {
        if (this.#strike(fault)) {
          const name = nameFault(fault)
          this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
        }
      })
    }
  }

  /** Begins no more faults, and ends none: the healing of the cluster does that. */
  async end(): Promise<void> {
    this.#isOver = true
    for (const timer of this.#timers) clearTimeout(timer)
    await Promise.all(this.#underWay)
  }

  #after(micros: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      if (!this.#isOver) run()
    }, micros / 1000)
    this.#timers.add(timer)
  }

  /** False when the fault is none of ours, or there is nothing for it to strike. */
  #strike(fault: Fault): boolean {
    const { cluster } = this.#parts
    switch (fault.kind) {
      case 'crash':
      case 'stop':
        return this.#bringDown(fault)
      case 'pause':
      case 'stall': {
        const daemon = cluster.daemon(fault.node)
        if (daemon?.isUp !== true) return false
        daemon.pause()
        this.#after(fault.lengthMicros, () => daemon.resume())
        return true
      }
      case 'cut':
      case 'clog':
        cluster.cut(fault.ways, { resets: fault.kind === 'cut' && fault.resets })
        this.#after(fault.lengthMicros, () => cluster.mend(fault.ways))
        return true
      case 'reset':
        cluster.reset(...fault.between)
        return true
      case 'lose-reply':
        cluster.loseNextReply(fault.node)
        return true
      case 'slow-node':
        cluster.slow(fault.node, fault.extraMicros / 1000)
        this.#after(fault.lengthMicros, () => cluster.slow(fault.node, 0))
        return true
      case 'storm':
        this.#parts.storm(fault.lengthMicros / 1000)
        return true
      case 'client-death':
        this.#parts.killClient(fault.client, fault.downMicros / 1000)
        return true
      default:
        return false
    }
  }

  #bringDown({ node, kind, downMicros }: Fault & { readonly kind: 'crash' | 'stop' }): boolean {
    const daemon = this.#parts.cluster.daemon(node)
    if (daemon?.isUp !== true) return false
    const work = (kind === 'crash' ? daemon.kill() : daemon.stop()).then(() => {
      this.#underWay.delete(work)
      this.#after(downMicros, () => daemon.start())
    })
    this.#underWay.add(work)
    return true
  }
}
