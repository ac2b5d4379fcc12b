/**
 * The disk of a node's log, whichever kind of journal is on it: its durable flushes and records as rows, under the keys
 * of `../../src/journal/ordered-journal.ts`, and its faults.
 */
import type { Range } from '../../src/ports/storage.ts'
import type { DiskImage, ToldDamage, WriteFault } from './disk.ts'
import type { JournalRot } from './disk-journal.ts'

export interface LogDisk {
  /** A write that a crash cuts short is not shown: it is no damage. */
  readonly hidesTornWrites: boolean
  /** Whether there is a write that a crash could lose. */
  readonly hasPending: boolean
  /** The damage that a check has told the present process of first. */
  readonly told: ToldDamage | undefined
  isHurt(key: Uint8Array): boolean
  failNextWrite(fault: WriteFault): void
  failWrites(fault: WriteFault): void
  /** Flips one bit of a stored value; false: there is no such bit, or damage there would look like a torn write. */
  flipBit(key: Uint8Array, bit: number): boolean
  /** The value under one key stands under another one now; false: as for `flipBit`. */
  misdirect(from: Uint8Array, to: Uint8Array): boolean
  /** Damages one of the last writes, which the next process sees; not while one has it open. False: there is none. */
  rot(rot: JournalRot): boolean
  /** As it was when that happened, once; undefined when it did not since. */
  takeUndamaged(): DiskImage | undefined
  image(): DiskImage
  /** The disk of another time or another machine. Only while no process has it open. */
  restore(image: DiskImage): void
  durableValue(key: string): Uint8Array | undefined
  durableKeys(range: Range): string[]
}
