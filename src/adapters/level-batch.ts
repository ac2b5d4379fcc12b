/** A batch of writes as it stands in LevelDB's journal: one record, whole or not at all. */
import type { Put } from '../ports/storage.ts'
import { Cursor } from './level-format.ts'

const headerBytes = 12
const sequenceBytes = 7
const tags = { deletion: 0, value: 1 } as const

export interface Batch {
  /** The number of its first put; each put after it has the next number. */
  readonly sequence: number
  readonly puts: readonly Put[]
  /** False: bytes follow that cannot be made out. */
  readonly isWhole: boolean
}

/**
 * A batch: sequence 8, count 4, then kind, key and value of each put. As many as can be made out; whole are those
 * that reach to the last byte, whatever the count says.
 */
export function decodeBatch(bytes: Uint8Array): Batch {
  const puts: Put[] = []
  const sequence = readSequence(bytes)
  const cursor = new Cursor(bytes.subarray(headerBytes))
  while (!cursor.isAtEnd) {
    const tag = cursor.bytes(1)?.[0]
    const key = cursor.string()
    const isPut = tag === tags.value
    const value = isPut ? cursor.string() : undefined
    const isMadeOut = key !== undefined && (isPut ? value !== undefined : tag === tags.deletion)
    if (!isMadeOut) return { sequence, puts, isWhole: false }
    puts.push(value === undefined ? { key } : { key, value })
  }
  return { sequence, puts, isWhole: bytes.length >= headerBytes }
}

/** The number of a write, little-endian in seven bytes. LevelDB counts no further than a double does. */
export function readSequence(bytes: Uint8Array, at = 0): number {
  return bytes.subarray(at, at + sequenceBytes).reduceRight((sum, byte) => sum * 256 + byte, 0)
}

/** Whether an internal key's kind is that of a value; else the key was deleted. */
export function isValueKind(kind: number | undefined): boolean {
  return kind === tags.value
}
