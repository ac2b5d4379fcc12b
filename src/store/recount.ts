/** Counts a group's rows against the hash in its state record (HASH-1): damage that came after the write shows so. */
import { assert } from '../base/assert.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock } from '../ports/clock.ts'
import { DamagedGroup } from './damage.ts'
import type { ReadPart } from './group-snapshot.ts'

/** As much of a snapshot of the group as is needed here. */
export interface CountedSnapshot {
  next(bytesMax: number): Promise<ReadPart>
  close(): Promise<void>
}

/** Beside its rows a group costs some look-ups, about as much as a count of this many bytes. */
const groupBytes = 4_096

/**
 * How fast a node counts rows, `scrubBytesPerSecond` in all groups together.
 *
 * LIVE-6  One turn counts about `snapshotPartBytesMax`, in however many groups: then the count rests.
 */
export class CountPace {
  readonly #clock: Pick<Clock, 'setTimer'>
  readonly #limits: Pick<Limits, 'scrubBytesPerSecond' | 'snapshotPartBytesMax'>
  /** Counted since the last rest. */
  #bytes = 0

  constructor(
    clock: Pick<Clock, 'setTimer'>,
    limits: Pick<Limits, 'scrubBytesPerSecond' | 'snapshotPartBytesMax'>,
  ) {
    assert(limits.scrubBytesPerSecond > 0, 'LIVE-6: a count of rows without a pace')
    this.#clock = clock
    this.#limits = limits
  }

  /** That number of bytes was counted. Resolves at once, or after the rest that is due. */
  async onCounted(bytes: number): Promise<void> {
    const { scrubBytesPerSecond, snapshotPartBytesMax } = this.#limits
    this.#bytes += bytes
    if (this.#bytes < snapshotPartBytesMax) return
    const restMs = (1_000 * this.#bytes) / scrubBytesPerSecond
    this.#bytes = 0
    await new Promise<void>((resolve) => {
      this.#clock.setTimer(restMs, resolve)
    })
  }
}

/** In parts of about `bytesMax`, at the pace. `open` gives undefined where there is no snapshot of the group now. */
export async function recount(
  open: () => CountedSnapshot | undefined,
  bytesMax: number,
  pace: Pick<CountPace, 'onCounted'>,
): Promise<'sound' | 'damaged' | 'unknown'> {
  await pace.onCounted(groupBytes)
  const snapshot = open()
  if (snapshot === undefined) return 'unknown'
  try {
    for (;;) {
      const { rows, crc, isDamaged } = await snapshot.next(bytesMax)
      let bytes = 0
      for (const { key, payload } of rows) bytes += key.length + payload.length
      await pace.onCounted(bytes)
      if (crc !== undefined) return isDamaged === true ? 'damaged' : 'sound'
    }
  } catch (error) {
    if (error instanceof DamagedGroup) return 'damaged'
    throw error
  } finally {
    await snapshot.close()
  }
}
