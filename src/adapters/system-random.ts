/** The operating system's randomness, fetched a pool at a time: a draw costs no system call. */
import { randomFillSync } from 'node:crypto'
import type { Random } from '../ports/random.ts'

const drawBytes = 6
const pool = Buffer.alloc(drawBytes * 1024)
let poolAt = pool.length

/** 48 fresh random bits. */
function draw(): number {
  if (poolAt === pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  poolAt += drawBytes
  return pool.readUIntBE(poolAt - drawBytes, drawBytes)
}

export const systemRandom: Random = {
  // Over the spans that are drawn from (back-offs, attempts) 48 bits are even enough.
  int: (from, to) => from + Math.floor((draw() / 2 ** 48) * (to - from + 1)),
  bytes: (count) => randomFillSync(Buffer.alloc(count)),
}
