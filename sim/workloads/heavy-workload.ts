/**
 * A client that sends heavy requests at once, beside all others: many polls that wait over many
 * shards, large batches, whole rows. It disconnects in the middle of them. The nodes' own
 * assertions bound their work per turn (COST-1 to COST-5). Such runs have budgets so small that
 * every request takes many turns.
 */
import type { StoreError } from '../../src/base/errors.ts'
import { toStoreError, captureOutcome } from '../../src/base/problem.ts'
import type { LogPlace } from '../../src/cells/operation.ts'
import type { NewCell } from '../../src/cells/cell.ts'
import { Client } from '../../src/client/client.ts'
import { defaultClientLimits } from '../../src/client/client-limits.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import type { Referee } from '../checkers/referee.ts'
import { createClock } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { HeavyOptions } from './heavy-draw.ts'
import type { Network } from '../world/network.ts'
import type { SeededRandom } from '../world/random.ts'
import { SimProcess } from '../world/sim-process.ts'
import type { World } from '../world/world.ts'
import { shardOf } from './datastore.ts'

export interface HeavyParts {
  readonly world: World
  readonly coverage: Coverage
  readonly referee: Referee
  readonly network: Network<ClientFrame>
  readonly nodes: readonly string[]
  readonly options: { readonly heavy?: HeavyOptions; readonly timeoutMs: number }
  mayBeCorrupt(): boolean
  onFailed(error: unknown): void
}

const datastore = 'heavy'
const column = 'BASE'
const callsMax = 1_000

/** One life of the application. */
interface Life {
  readonly name: string
  readonly process: SimProcess
  readonly client: Client
  isOver: boolean
}

export class HeavyWorkload {
  readonly #parts: HeavyParts
  /** Cells that were acknowledged. */
  readonly #written: NewCell[] = []
  #isEnding = false
  #busy = 0

  constructor(parts: HeavyParts) {
    this.#parts = parts
  }

  isDone(): boolean {
    return this.#busy === 0
  }

  start(): void {
    const { options, world, onFailed } = this.#parts
    if (options.heavy === undefined) return
    this.#busy += 1
    this.#run(options.heavy, world.random.fork('heavy')).then(() => (this.#busy -= 1), onFailed)
  }

  end(): void {
    this.#isEnding = true
  }

  async #run(heavy: HeavyOptions, random: SeededRandom): Promise<void> {
    const { world, coverage, network } = this.#parts
    for (let burst = 0; burst < heavy.bursts && !this.#isEnding; burst++) {
      await world.sleep(1 + random.exponential(500_000))
      const life = this.#live(burst, random)
      const calls = this.#burst(life, heavy, burst)
      coverage.count('heavy: burst')
      // It goes away while most of it is under way, or waits for all.
      const isGoing = random.chance(500_000)
      if (isGoing) await world.sleep(1 + random.exponential(300_000))
      else await Promise.all(calls)
      life.isOver = true
      if (isGoing) coverage.count('heavy: gone')
      life.process.kill()
      network.detach(life.name)
    }
  }

  #live(burst: number, random: SeededRandom): Life {
    const { world, network, nodes } = this.#parts
    const name = `heavy${burst}`
    const process = new SimProcess(world, name)
    const skew = { offsetMicros: 0, driftPpm: 0, timerLatenessMicros: 0 }
    const clock = createClock(process, skew, random.fork(`clock ${burst}`))
    const transport = network.attach(process, nodes, name)
    const ports = { transport, clock, random: random.fork(`client ${burst}`) }
    const { timeoutMs } = this.#parts.options
    const client = new Client(ports, { ...defaultClientLimits, callsMax, timeoutMs })
    return { name, process, client, isOver: false }
  }

  /** In one turn, so that many requests are in one frame. */
  #burst(life: Life, heavy: HeavyOptions, burst: number): Promise<void>[] {
    const cells = life.client.cells(datastore)
    const { polls, places, waitMs, batchItems } = heavy
    const known = [...this.#written]
    const asked = Array.from({ length: batchItems }, (_, nth) => buildName(nth))
    const all = Array.from({ length: places }, (_, shard): LogPlace => {
      return { kind: 'after', shard: shardOf(buildName(shard).rowKey), addedId: 0 }
    })
    const calls = Array.from({ length: polls }, () =>
      this.#call(life, async () => void (await cells.shardLogs(all, { waitMs, limit: 10 }))),
    )
    calls.push(
      this.#call(life, async () => {
        const items = await cells.getMany(asked)
        for (const { rowKey } of known) this.#expect(rowKey, asked, items)
      }),
      this.#call(life, async () => {
        for (let nth = 0; nth < 3; nth++) {
          const cell = { ...buildName(burst * 3 + nth), body: { burst, nth } }
          await cells.put(cell)
          this.#written.push(cell)
        }
      }),
    )
    return calls
  }

  /** A current read sees all acknowledged before it began. */
  #expect(
    rowKey: string,
    asked: readonly { readonly rowKey: string }[],
    items: readonly { readonly kind: string; readonly value?: unknown }[],
  ): void {
    const place = asked.findIndex((one) => one.rowKey === rowKey)
    const item = items[place]
    const isThere = item?.kind !== 'ok' || item.value !== undefined
    const sentence = 'A batch did not find what was acknowledged before it.'
    this.#parts.referee.check(isThere, 'CELL-1', sentence, () => ({ rowKey, item }))
  }

  async #call(life: Life, work: () => Promise<void>): Promise<void> {
    const outcome = await captureOutcome(work)
    if (outcome.kind === 'ok' || life.isOver) return
    this.#excuse(toStoreError(outcome.problem))
  }

  #excuse(error: StoreError): void {
    const isDamage = error.code === 'corrupt' && this.#parts.mayBeCorrupt()
    const excused = ['expired', 'closed', 'snapshot-too-old', 'too-large']
    if (error.retry === 'never' && !excused.includes(error.code) && !isDamage) throw error
  }
}

function buildName(nth: number): {
  readonly rowKey: string
  readonly column: string
  readonly refKey: number
} {
  const rowKey = `00000000-0000-4000-8000-${nth.toString(16).padStart(12, '0')}`
  return { rowKey, column, refKey: 1 }
}
