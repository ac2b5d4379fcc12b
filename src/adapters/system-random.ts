/** The operating system's randomness. */
import { randomBytes } from 'node:crypto'
import type { Random } from '../ports/random.ts'

export const systemRandom: Random = {
  int: (from, to) => {
    // 48 random bits over any span the protocol draws from: the bias is below one in a million.
    const drawn = randomBytes(6).readUIntBE(0, 6) / 2 ** 48
    return from + Math.floor(drawn * (to - from + 1))
  },
  bytes: (count) => randomBytes(count),
}
