/**
 * The healing of a node whose log must not be used: it was found damaged, or a peer has proven that it was cut. The node asks
 * the others for a seat, moves its stores aside, and begins anew with an empty store. The others restore that one.
 *
 * SEAT-1  A node asks for a seat only where its folder says that it is this node's and this cluster's. An empty folder, one of
 *         another node, and a store that another one has replaced ask for none.
 */
import { join } from 'node:path'
import type { Logger } from 'pino'
import { lockStore } from '../adapters/level-lock.ts'
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { NodeConfig } from '../config/node-config.ts'
import { RetiredStore, StaleLog } from '../peers/refusal.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import { makeDataFolder } from './data-folder.ts'
import { readIdentity, writeIdentity, type FolderIdentity } from './folder-identity.ts'
import type { Figure } from './metrics.ts'
import { askForSeat, type SeatAsksParts } from './seat-asks.ts'
import { markUnfit, readUnfit, removeSeat, settleSeat, takeSeat } from './seat-note.ts'
import { answered } from './silent-folder.ts'

export interface LogHealingParts {
  readonly config: NodeConfig
  /** The cluster's; absent: it has none. */
  readonly secret: string | undefined
  readonly logger: Logger
  readonly clock: Pick<Clock, 'setTimer' | 'monotonicMs'>
  /** Ends the questions. */
  readonly signal: AbortSignal | undefined
}

/** Two nodes are no majority of two without each other. */
const nodesLeast = 3
const linkLookMs = 1_000
const linesApartMs = 60_000

/** For `/status`. */
export interface HealingStatus {
  /** Why the log must not be used, while the node asks the others for a seat. Absent: it does not. */
  readonly reason?: string
  /** The reasons of the others, as far as they have answered. */
  readonly refusals: readonly string[]
  /** Stores that an empty one has replaced since this process began. */
  readonly replaced: number
}

export class LogHealing {
  readonly #parts: LogHealingParts
  #identity: FolderIdentity | undefined
  #seat: number | undefined
  /** Why the log must not be used. */
  #reason: string | undefined
  #refusals: readonly string[] = []
  #replaced = 0
  #toldMs = Number.NEGATIVE_INFINITY
  #looking: Timer | undefined
  #isStopped = false

  constructor(parts: LogHealingParts) {
    this.#parts = parts
  }

  /** The seat of the store that is to be made; undefined: the node's own store is there, or the configuration has the seat. */
  get seat(): number | undefined {
    return this.#seat
  }

  get status(): HealingStatus {
    const reason = this.#reason
    return {
      ...(reason !== undefined && { reason }),
      refusals: this.#refusals,
      replaced: this.#replaced,
    }
  }

  figures(): readonly Figure[] {
    return [
      {
        name: 'trilithon_log_unfit',
        help: '1 while log/ must not be used, and the node asks the others for a seat.',
        value: Number(this.#reason !== undefined),
      },
      {
        name: 'trilithon_log_replaced_total',
        help: 'Times an empty store took the place of one with an unfit log since this process began.',
        value: this.#replaced,
      },
    ]
  }

  /** Before the stores are opened. Goes on with a healing that was begun; resolves when the stores may be opened. */
  async prepare(): Promise<void> {
    const { config, logger } = this.#parts
    this.#isStopped = false
    await makeDataFolder(config.data)
    this.#identity = await answered(config.data, readIdentity(config.data))
    this.#seat = await settleSeat(config.data)
    if (this.#seat !== undefined) {
      logger.info(
        { seat: this.#seat },
        'an empty store takes the place of the one with the unfit log',
      )
      this.#reason = undefined
      return
    }
    this.#reason ??= await readUnfit(config.data)
    if (this.#reason === undefined) return
    if (this.mayAsk) await this.#ask(this.#reason)
    else this.#reason = undefined
  }

  /** Whether the node may ask for a seat. */
  get mayAsk(): boolean {
    const { cluster, node, healLog = false } = this.#parts.config
    const own = this.#identity
    return (
      healLog &&
      this.#others.length + 1 >= nodesLeast &&
      own?.cluster === cluster &&
      own.node === node
    )
  }

  get #others(): SeatAsksParts['others'] {
    const { node, nodes } = this.#parts.config
    const set = nodes.find(({ id }) => id === node)?.set
    return nodes.filter((one) => one.set === set && one.id !== node)
  }

  /** Whether another start heals what ended this one. The stores must be closed. */
  async takeUp(error: unknown): Promise<boolean> {
    if (!this.isHealable(error)) return false
    this.#reason = error.message
    // Damage is found again by each start. A log that was cut looks sound.
    if (error instanceof StaleLog) await markUnfit(this.#parts.config.data, error.message)
    return true
  }

  isHealable(error: unknown): error is StoreError {
    if (!(error instanceof StoreError) || error instanceof RetiredStore) return false
    return error.detail.store === 'log' && this.mayAsk
  }

  async #ask(reason: string): Promise<void> {
    const { config, logger, secret, signal } = this.#parts
    const identity = this.#identity
    assert(identity?.node === config.node, 'SEAT-1: a folder of another node asks for a seat')
    const { node, data } = config
    const text =
      'the log is damaged: asking the others for a seat; log/ stays where it is until one is given'
    logger.error({ reason }, text)
    const asks = {
      ...{ node, storeId: identity.storeId, others: this.#others, secret, signal },
      onRefused: (why: readonly string[], waitMs: number) => this.#onRefused(why, waitMs),
    }
    const seat = await whileLocked(data, () => askForSeat(asks))
    await takeSeat(data, seat)
    this.#seat = seat
    this.#reason = undefined
    logger.warn({ seat }, 'a seat is given: log/ and data/ are put aside, as log.damaged and so on')
  }

  #onRefused(why: readonly string[], waitMs: number): void {
    const { clock, logger } = this.#parts
    const isNews = why.join() !== this.#refusals.join()
    this.#refusals = why
    const nowMs = clock.monotonicMs()
    if (!isNews && nowMs - this.#toldMs < linesApartMs) return
    this.#toldMs = nowMs
    logger.warn({ why, waitMs }, 'no node gives a seat yet: asking again')
  }

  /** The node serves with this store. `isLinked`: whether a peer has a link with it. */
  async finish(storeId: string, isLinked: () => boolean): Promise<void> {
    const { data, cluster, node } = this.#parts.config
    const identity = { cluster, node, storeId }
    if (this.#seat !== undefined) {
      await writeIdentity(data, identity)
      await removeSeat(data)
      this.#identity = identity
      this.#seat = undefined
      this.#replaced += 1
    }
    if (this.#identity?.storeId !== storeId || this.#identity.node !== node) {
      this.#noteOnceLinked(identity, isLinked)
    }
  }

  #noteOnceLinked(identity: FolderIdentity, isLinked: () => boolean): void {
    if (this.#isStopped) return
    this.#looking = this.#parts.clock.setTimer(linkLookMs, () => {
      if (!isLinked()) return this.#noteOnceLinked(identity, isLinked)
      writeIdentity(this.#parts.config.data, identity).then(
        () => (this.#identity = identity),
        // A disk that is full: a later look tries again.
        () => this.#noteOnceLinked(identity, isLinked),
      )
    })
  }

  /** The node closes its stores. */
  stop(): void {
    this.#isStopped = true
    this.#looking?.cancel()
  }
}

/** No other process opens the stores of the folder meanwhile. */
async function whileLocked<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const lock = await lockStore(join(folder, 'data'))
  try {
    if (lock.state !== 'in use') return await work()
  } finally {
    await lock.release()
  }
  const text = `the data folder ${folder} is in use by another process; stop it, or give this node a folder of its own with --data`
  throw new StoreError('unavailable', text)
}
