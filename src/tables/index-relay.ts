/**
 * Carries changes of entries from the groups of their rows to the groups of global indexes, at each
 * node for the groups that it serves (`worklist/worklist-worker.ts`). Knows no schema: each change on the
 * worklist names its place. At least once, and harmless when done again or by two.
 *
 * IDX-5  A change leaves the worklist when its index has it, and only if it is still the one.
 */
import { latin1 } from '../base/bytes.ts'
import type { GroupId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Trace } from '../ports/trace.ts'
import type { LocalReplica, Row } from '../group/replica-port.ts'
import {
  WorklistWorker,
  worklistBounds,
  type WorklistBounds,
  type Served,
} from '../worklist/worklist-worker.ts'
import type { GroupPort } from '../group/group-port.ts'
import { LocalGroups } from '../txn/local-groups.ts'
import { runTransaction } from '../txn/run.ts'
import { Sessions } from '../txn/session.ts'
import { relayBounds, relayPageBytesMax } from './limits.ts'
import { decodeEntryState, indexWorklist, indexTopic } from './index-worklist.ts'
import { IndexLag, type LagFigures } from './index-lag.ts'
import { IndexBatcher, type Relayed } from './index-batcher.ts'
import { inTurns } from '../ports/turns.ts'

export interface IndexRelayParts {
  readonly replica: LocalReplica
  /** All that may hold an index; the groups of this node, when it is absent. */
  readonly groups?: GroupPort
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
  readonly bounds?: WorklistBounds | undefined
  /** Told of each failure. */
  readonly onFailed?: (error: unknown) => void
}

export interface RelayFigures extends LagFigures {
  /** Groups with changes that wait here, or are at work. */
  readonly busyGroups: number
  /** How often it did not work, and was put off. */
  readonly failures: number
}

export class IndexRelay {
  readonly #parts: IndexRelayParts
  readonly #worker: WorklistWorker
  /** Made when there is something to write. */
  #sessions: Sessions | undefined
  readonly #groups: GroupPort
  readonly #batchers = new Map<GroupId, IndexBatcher>()
  readonly #lag = new IndexLag()
  /** In their indexes, and still on the worklists of these groups: taking them off failed. */
  readonly #leftOn = new Map<GroupId, readonly Relayed[]>()
  #failures = 0

  constructor(parts: IndexRelayParts) {
    this.#parts = parts
    const { replica, clock, random } = parts
    const bounds = parts.bounds ?? {
      ...worklistBounds,
      groupsAtOnceMax: relayBounds.groupsAtOnceMax,
    }
    this.#groups = parts.groups ?? new LocalGroups(replica)
    this.#worker = new WorklistWorker({
      topic: indexTopic,
      worklist: replica.worklist,
      clock,
      random,
      bounds,
      serve: (group) => this.#serve(group),
      onFailed: (_group, error) => {
        this.#failures += 1
        parts.onFailed?.(error)
      },
    })
  }

  start(): void {
    this.#worker.start()
  }

  /** Begins nothing more; resolves when the work under way has ended. */
  stop(): Promise<void> {
    return this.#worker.stop()
  }

  get figures(): RelayFigures {
    const { busyGroups } = this.#worker
    return { ...this.#lag.figures, busyGroups, failures: this.#failures }
  }

  async #serve(group: GroupId): Promise<Served> {
    const { replica } = this.#parts
    const { position } = await replica.read(group, 'snapshot', relayBounds.callMs)
    const limit = relayBounds.changesLookedAtMax
    const page = { limit, bytesMax: relayPageBytesMax, ...indexWorklist }
    const rows = await replica.scan(group, page)
    if (rows.length === 0) {
      this.#leftOn.delete(group)
      return { kind: 'empty', position }
    }
    const done = this.#doneBefore(group, rows)
    const keysDone = new Set(done.map(({ worklistKey }) => latin1(worklistKey)))
    const open = rows.filter(({ key }) => !keysDone.has(latin1(key)))
    const ways = await Promise.allSettled(
      [...byTarget(open)].map(([target, keys]) => this.#batcher(target).relay(group, keys)),
    )
    const relayed = ways.flatMap((way) => (way.status === 'fulfilled' ? way.value : []))
    this.#note(group, relayed)
    if (relayed.length + done.length > 0) await this.#takeOff(group, [...done, ...relayed])
    const failed = ways.find((way) => way.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return { kind: 'again' }
  }

  #intents(): Sessions {
    this.#sessions ??= new Sessions(this.#parts.clock, this.#parts.random)
    return this.#sessions
  }

  /** Those that are still what they were when they were relayed. */
  #doneBefore(group: GroupId, rows: readonly Row[]): readonly Relayed[] {
    const done = this.#leftOn.get(group)
    if (done === undefined) return []
    const madeAtByKey = new Map(rows.map(({ key, timestamp }) => [latin1(key), timestamp]))
    return done.filter(({ worklistKey, madeAt }) => madeAtByKey.get(latin1(worklistKey)) === madeAt)
  }

  #batcher(target: GroupId): IndexBatcher {
    const known = this.#batchers.get(target)
    if (known !== undefined) return known
    const batcher = new IndexBatcher(
      target,
      { sessions: this.#intents(), ...this.#parts, groups: this.#groups },
      () => {
        this.#batchers.delete(target)
      },
    )
    this.#batchers.set(target, batcher)
    return batcher
  }

  async #takeOff(group: GroupId, relayed: readonly Relayed[]): Promise<void> {
    const { clock, random } = this.#parts
    const options = {
      ...({ clock, random, intents: this.#intents(), from: 'snapshot' } as const),
      timeoutMs: relayBounds.callMs,
    }
    if (this.#leftOn.size < relayBounds.groupsLeftOnMax) this.#leftOn.set(group, relayed)
    await runTransaction(this.#groups, group, options, async (transaction) => {
      for await (const some of inTurns(relayed, clock)) {
        const rows = await transaction.getMany(some.map(({ worklistKey }) => worklistKey))
        for (const [place, { worklistKey, madeAt }] of some.entries()) {
          if (rows[place]?.timestamp === madeAt) transaction.delete(worklistKey)
        }
      }
    })
    this.#leftOn.delete(group)
  }

  #note(group: GroupId, relayed: readonly Relayed[]): void {
    const { clock, trace } = this.#parts
    const now = clock.wallMicros()
    for (const { madeAt, worklistKey } of relayed) {
      const lagMicros = this.#lag.add(madeAt, now)
      trace.emit({ kind: 'index-relayed', group, key: latin1(worklistKey), madeAt, lagMicros })
    }
  }
}

/** Rows in the same group of an index together, by their keys. */
function byTarget(rows: readonly Row[]): ReadonlyMap<GroupId, readonly Uint8Array[]> {
  const keysByTarget = new Map<GroupId, Uint8Array[]>()
  for (const row of rows) {
    const { target } = decodeEntryState(row)
    const keys = keysByTarget.get(target)
    if (keys === undefined) keysByTarget.set(target, [row.key])
    else keys.push(row.key)
  }
  return keysByTarget
}
