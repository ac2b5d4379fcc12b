/**
 * An index of tables from its declaration until it is ready, and from then until it is gone
 * (`../indexes/state.ts`): which step of its life comes when. A build or a drop may end at any
 * time, and another one goes on with it.
 *
 * IDX-6   It is ready when every writer keeps it, all rows are in it, and a comparison has shown so.
 * IDX-13  It is kept until no program asks it any more, and cleared when none keeps it.
 */
import { schemaGraceMs } from '../indexes/limits.ts'
import { waitForGrace } from '../indexes/grace.ts'
import { notRight } from '../indexes/report.ts'
import type { Timestamp } from '../base/ids.ts'
import type { IndexLife } from './index-life.ts'
import { clearIndex, compareIndex, makeIndex, type Made } from './index-make.ts'
import {
  beginDrop,
  forgetDropped,
  markReady,
  noteBuilding,
  noteKnown,
  withdrawIndex,
} from './index-steps.ts'
import type { UpkeepParts } from './index-parts.ts'

/**
 * `life`: as the caller has read it a moment ago. Rejects with `unavailable` when the comparison found
 * faults, and with `already-exists` when two rows have one value of a unique index; the index stays
 * `building` then, and another build goes on.
 */
export async function buildIndex(
  parts: UpkeepParts,
  life: IndexLife,
  graceMs: number = schemaGraceMs,
): Promise<Made> {
  const { port, schema, index, options } = parts
  if (life.state === 'ready') return { groups: 0, rows: 0, removed: 0, misfits: parts.misfits.all }
  if (life.state === 'declared') {
    const since = options.clock.wallMicros()
    await noteKnown(port, schema.name, options)
    await graceFrom(parts, since, graceMs)
  } else if (life.state === 'known') await graceFrom(parts, life.since, graceMs)
  const building = await noteBuilding(port, schema.name, index, options)
  if (building.state === 'ready') return buildIndex(parts, building)
  const made = await makeIndex(parts, {
    after: building.filledTo,
    onDone: async (to) => {
      await noteBuilding(port, schema.name, index, options, { to })
    },
  })
  const { report, asOf } = await compareIndex(parts)
  const place = { name: index.name, flags: `--schema ${schema.name}` }
  if (report.faults.length > 0) {
    // The next build fills all groups.
    await noteBuilding(port, schema.name, index, options, { to: undefined })
    throw notRight(place, report.faults)
  }
  await markReady(port, schema.name, index, asOf, options)
  return made
}

/**
 * Takes the index out of its schema. One that programs may ask is kept until none does, a grace later.
 * Its entries are still there: `clearDropped` takes them out.
 */
export async function dropIndex(
  parts: UpkeepParts,
  graceMs: number = schemaGraceMs,
): Promise<void> {
  const { port, schema, index, options } = parts
  const before = await beginDrop(port, schema.name, index, options)
  if (before !== 'ready' && before !== 'dropping') return
  // From now: that it began may have taken effect long after it was noted.
  await graceFrom(parts, options.clock.wallMicros(), graceMs)
  await withdrawIndex(port, schema.name, index, options)
}

/** Takes out the entries of an index that its schema has no more; resolves with how many there were. */
export async function clearDropped(
  parts: UpkeepParts,
  graceMs: number = schemaGraceMs,
): Promise<number> {
  const { port, schema, index, options } = parts
  await graceFrom(parts, options.clock.wallMicros(), graceMs)
  const cleared = await clearIndex(parts)
  await forgetDropped(port, schema.name, index, options)
  return cleared
}

async function graceFrom(parts: UpkeepParts, since: Timestamp, graceMs: number): Promise<void> {
  const { onProgress, options } = parts
  await waitForGrace({ clock: options.clock, onProgress, signal: options.signal }, since, graceMs)
}
