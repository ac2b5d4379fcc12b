/** Values for rows that have nothing in common, as those of users: LevelDB would write less of one that repeats. */
import { randomBytes } from 'node:crypto'

/** Bytes that values are taken from: rows beside each other in a table seldom have the same ones. */
const poolBytes = 4 * 1024 * 1024

/** Gives values of `bytes` bytes each. Drawing them for each put would be much of a client's CPU. */
export function bytesValues(bytes: number): () => Uint8Array {
  const pool = randomBytes(Math.max(poolBytes, 2 * bytes + 1))
  const next = offsets(pool.length, bytes)
  return () => {
    const at = next()
    return pool.subarray(at, at + bytes)
  }
}

/** The same of `chars` characters. */
export function textValues(chars: number): () => string {
  const pool = randomBytes(Math.max(poolBytes, 2 * chars + 1)).toString('base64')
  const next = offsets(pool.length, chars)
  return () => {
    const at = next()
    return pool.slice(at, at + chars)
  }
}

/** One piece after the other; each time round they begin elsewhere than the time before. */
function offsets(length: number, size: number): () => number {
  let start = 0
  let at = start
  return () => {
    const given = at
    at += size
    if (at + size > length) {
      start = size > 1 ? (start + 1 + Math.floor(Math.random() * (size - 1))) % size : 0
      at = start
    }
    return given
  }
}
