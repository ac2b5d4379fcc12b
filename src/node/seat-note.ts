/**
 * The notes of a node whose log must not be used any more, and the move of its stores out of the way.
 *
 *   log/unfit.json   a peer has proven that this log was cut, or is a copy of the past. It moves with the log.
 *   seat.json        the others have given a seat to an empty store of this node. `moving`: the old stores may be in their
 *                    places. `empty`: no old store is. The file goes when the new store is made.
 *
 * SEAT-2  The old stores leave their places only after the seat is durable, and a new store is made only after they have left.
 *         A crash between any two steps leaves a folder with which the next start goes on.
 */
import { readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readBounded } from '../adapters/bounded-file.ts'
import { writeDurably } from '../adapters/durable-file.ts'
import { logName } from '../adapters/log-switch.ts'
import { syncFolder } from '../adapters/sync-folder.ts'
import { assert } from '../base/assert.ts'

export const seatName = 'seat.json'
const unfitName = 'unfit.json'
const noteBytesMax = 65_536

interface SeatNote {
  /** The first incarnation of the new store. */
  readonly seat: number
  readonly phase: 'moving' | 'empty'
}

/** Why the log must not be used, as a peer has proven; undefined: it may be. */
export async function readUnfit(folder: string): Promise<string | undefined> {
  const found = await readNote(join(folder, logName, unfitName))
  if (typeof found !== 'object' || found === null || !('reason' in found)) return undefined
  return typeof found.reason === 'string' ? found.reason : undefined
}

/** The stores of the folder must be closed. Rejects with the error of the system. */
export async function markUnfit(folder: string, reason: string): Promise<void> {
  const note = { reason, at: new Date().toISOString() }
  await writeDurably(join(folder, logName, unfitName), `${JSON.stringify(note)}\n`)
}

/** The seat of the store that is to be made, with the old stores out of their places; undefined: no seat was given. */
export async function settleSeat(folder: string): Promise<number | undefined> {
  const note = await readSeat(folder)
  if (note?.phase === 'moving') await moveAside(folder, note.seat)
  return note?.seat
}

/** Makes the seat durable, then moves `log/` and `data/`, which must be closed, aside. Rejects with the error of the system. */
export async function takeSeat(folder: string, seat: number): Promise<void> {
  await writeSeat(folder, { seat, phase: 'moving' })
  await moveAside(folder, seat)
}

/** The store with the seat is made. */
export async function removeSeat(folder: string): Promise<void> {
  await rm(join(folder, seatName), { force: true })
  await syncFolder(folder)
}

async function moveAside(folder: string, seat: number): Promise<void> {
  const note = await readSeat(folder)
  assert(note?.seat === seat && note.phase === 'moving', 'SEAT-2: a store moves without a seat')
  for (const name of [logName, 'data']) {
    // A start that ended amid this has moved it: the store itself is aside by now.
    if (!(await readdir(folder)).includes(name)) continue
    const aside = join(folder, `${name}.damaged`)
    await rm(aside, { recursive: true, force: true })
    await rename(join(folder, name), aside)
    await syncFolder(folder)
  }
  await writeSeat(folder, { seat, phase: 'empty' })
}

async function writeSeat(folder: string, note: SeatNote): Promise<void> {
  await writeDurably(join(folder, seatName), `${JSON.stringify(note)}\n`)
}

async function readSeat(folder: string): Promise<SeatNote | undefined> {
  const found = await readNote(join(folder, seatName))
  if (typeof found !== 'object' || found === null) return undefined
  if (!('seat' in found) || !('phase' in found)) return undefined
  const { seat, phase } = found
  if (typeof seat !== 'number' || !Number.isSafeInteger(seat) || seat < 1) return undefined
  return phase === 'moving' || phase === 'empty' ? { seat, phase } : undefined
}

/** Undefined where there is none that can be read. */
async function readNote(path: string): Promise<unknown> {
  try {
    const bytes = await readBounded(path, noteBytesMax)
    return JSON.parse(bytes?.toString() ?? '')
  } catch {
    return undefined
  }
}
