/**
 * The numbers that YCSB draws (Cooper et al., SoCC 2010; `core/generator` of its sources): Zipf's
 * distribution over ten thousand million items, by the method of Gray et al. (SIGMOD 1994), and
 * scattered over the records by a hash, so that the popular ones are not neighbours.
 */

/** Zipf's constant of the core workloads. */
export const zipfConstant = 0.99

/** Items that are drawn from before the hash, and the sum of 1 / i ** 0.99 over them. */
const scrambledItems = 10_000_000_000
const scrambledZeta = 26.46902820178302

/** A number from 0 to below 1, uniformly. */
export type Uniform = () => number

/** Numbers from 0 to below `items`, 0 the most frequent; `zeta`: the sum of 1 / i ** 0.99 up to `items`. */
export function zipfian(items: number, zeta: number, uniform: Uniform): () => number {
  const alpha = 1 / (1 - zipfConstant)
  const eta = (1 - (2 / items) ** (1 - zipfConstant)) / (1 - computeZeta(2) / zeta)
  return () => {
    const drawn = uniform()
    if (drawn * zeta < 1) return 0
    if (drawn * zeta < 1 + 0.5 ** zipfConstant) return 1
    return Math.floor(items * (eta * drawn - eta + 1) ** alpha)
  }
}

/** The sum of 1 / i ** 0.99 over the first `items` numbers. */
export function computeZeta(items: number): number {
  let sum = 0
  for (let i = 1; i <= items; i++) sum += 1 / i ** zipfConstant
  return sum
}

/** Record numbers from 0 to below `records`, as the core workloads ask for them. */
export function scrambledZipfian(records: number, uniform: Uniform): () => number {
  const draw = zipfian(scrambledItems, scrambledZeta, uniform)
  return () => Number(hash64(draw()) % BigInt(records))
}

const fnvOffset = 0xcbf29ce484222325n
const fnvPrime = 1_099_511_628_211n

/** FNV-1a of the eight bytes of a number, the lowest first, without its sign: 63 bits. */
export function hash64(value: number): bigint {
  let hash = fnvOffset
  let rest = BigInt(value)
  for (let byte = 0; byte < 8; byte++) {
    hash = BigInt.asUintN(64, (hash ^ (rest & 0xffn)) * fnvPrime)
    rest >>= 8n
  }
  const signed = BigInt.asIntN(64, hash)
  return signed < 0n ? -signed : signed
}
