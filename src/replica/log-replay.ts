/**
 * A start takes up what the log holds beyond the data store. One that is made anew takes in the whole
 * log: no faster than it is applied, and of a group no more at once than one answer of a peer would bring.
 *
 * LIVE-6  A turn ends with the first group, or the first position that is read of one, that reaches `sliceMs`:
 *         a request for the node's status is answered meanwhile.
 */
import { assert } from '../base/assert.ts'
import type { GroupId } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { DataStore } from '../store/data-store.ts'
import type { LogStore } from '../log/log-store.ts'
import type { StoredRecords } from './record-source.ts'
import type { Replica } from './replica.ts'

export interface ReplayParts {
  readonly log: LogStore
  readonly data: DataStore
  readonly source: StoredRecords
  readonly replica: Replica
  readonly limits: Limits
  readonly clock: Clock
  wake(group: GroupId): void
}

export async function replayLog(parts: ReplayParts): Promise<void> {
  const { log, data, source, limits, clock } = parts
  const turn = new Turn(clock, limits.sliceMs)
  assert(source.partMax === undefined, 'LOG-7: the log is replayed twice at once')
  source.partMax = { entries: limits.catchUpEntriesMax, bytes: limits.catchUpBytesMax }
  log.isReplaying = true
  // The fold before this had its share of this turn.
  await turn.end()
  for (const group of [...log.groupsWithUnsettled()]) {
    await replayGroup(parts, group, turn)
    if (data.overlayBytes > limits.overlayBytesMax / 2) await data.drain()
    if (turn.isOver) await turn.end()
  }
  source.partMax = undefined
  log.isReplaying = false
}

async function replayGroup(parts: ReplayParts, group: GroupId, turn: Turn): Promise<void> {
  const { data, source, replica, wake } = parts
  for (;;) {
    for (const _ of source.readAhead(group)) if (turn.isOver) await turn.end()
    wake(group)
    while (replica.isApplying(group)) {
      await turn.end()
      wake(group)
    }
    if (!replica.holdsPart(group)) return
    await data.drain()
    assert(source.isSettled(group), 'LOG-7: a part of a group is forgotten before it is durable')
    replica.forgetPart(group)
    turn.begin()
  }
}

/** How long the turn has been at work. */
class Turn {
  readonly #clock: Clock
  readonly #sliceMs: number
  #sinceMs = 0

  constructor(clock: Clock, sliceMs: number) {
    this.#clock = clock
    this.#sliceMs = sliceMs
    this.begin()
  }

  begin(): void {
    this.#sinceMs = this.#clock.monotonicMs()
  }

  get isOver(): boolean {
    return this.#clock.monotonicMs() - this.#sinceMs >= this.#sliceMs
  }

  /** Resolves in the next one. */
  async end(): Promise<void> {
    await new Promise<void>((resolve) => this.#clock.defer(resolve))
    this.begin()
  }
}
