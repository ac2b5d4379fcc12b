/** Who writes at one node alone, one write after another, until that node is cut off from the others. */
import { loneMicros } from './lone-draw.ts'
import type { World } from './world.ts'

export interface LoneWriterParts {
  readonly world: World
  /** When the node is cut off. */
  readonly atMicros: number
  /** Resolves with whether it is known what became of it. */
  put(number: number): Promise<boolean>
  isEnding(): boolean
}

const thinkMicros = 2_000

/**
 * Resolves with whether the last write was begun about when the node was cut off and its outcome is not
 * known: the node may have accepted it, and nobody else.
 */
export async function writeAlone({
  world,
  atMicros,
  put,
  isEnding,
}: LoneWriterParts): Promise<boolean> {
  for (let number = 1; world.nowMicros < atMicros + loneMicros && !isEnding(); number++) {
    const isKnown = await put(number)
    if (!isKnown && world.nowMicros >= atMicros) return true
    await world.sleep(thinkMicros)
  }
  return false
}
