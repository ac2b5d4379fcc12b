/** Calls of the client library as programs in JavaScript make them: with anything for any argument. */
import type { SeededRandom } from '../../sim/world/random.ts'
import { areRight, knownCalls, type KnownCall, type On } from '../client/known-calls.ts'
import { drawValue } from './values.ts'

export interface DrawnCall {
  readonly known: KnownCall
  readonly given: readonly unknown[]
  /** Its options are such as the call takes. */
  readonly isRight: boolean
}

function changed(random: SeededRandom, value: unknown): unknown {
  if (random.chance(300_000)) return drawValue(random, 2)
  if (Array.isArray(value)) {
    const list: readonly unknown[] = value
    return list.map((one) => (random.chance(500_000) ? changed(random, one) : one))
  }
  if (typeof value !== 'object' || value === null) return drawValue(random, 2)
  const entries = Object.entries(value).map(([name, one]) => {
    return [name, random.chance(300_000) ? changed(random, one) : one] as const
  })
  return Object.fromEntries(entries)
}

/** Some options of the call, with anything for them, and now and then one that it does not know. */
function drawOptions(random: SeededRandom, { options }: KnownCall, whole: unknown): unknown {
  if (random.chance(100_000)) return drawValue(random, 2)
  const names = Object.keys(options).filter(() => random.chance(200_000))
  const known = names.map((name) => [name, drawValue(random, 1)] as const)
  const others = random.chance(100_000) ? [[random.pick(['x', 'limits']), 1] as const] : []
  return {
    ...(typeof whole === 'object' ? whole : {}),
    ...Object.fromEntries([...known, ...others]),
  }
}

/** Those that end by themselves, whatever they are given. */
const ending = knownCalls.filter(({ name }) => name !== 'db.handle')

export function drawCall(random: SeededRandom): DrawnCall {
  const known = random.pick(ending)
  const { optionsAt } = known
  const given = known.given.map((one, place) => {
    if (place === optionsAt) return drawOptions(random, known, one)
    return random.chance(300_000) ? changed(random, one) : one
  })
  const some = given.slice(0, random.int(0, given.length + 2))
  const isRight = areRight(known, some)
  // A tail waits for cells for as long as there are none.
  return known.name === 'cells.tail' && isRight ? drawCall(random) : { known, given: some, isRight }
}

/** Makes the call; throws what is thrown before there is a promise, too. */
export async function make(on: On, { known, given }: DrawnCall): Promise<unknown> {
  return known.make(on, given)
}
