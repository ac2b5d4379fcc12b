/**
 * A writer at one node alone, one write after another, until that node is cut off from the others.
 */
import type { World } from '../world/world.ts'

export interface LoneWriterParts {
  readonly world: World
  /** When the node is cut off. */
  readonly atMicros: number
  /**
   * Resolves with whether it is known what became of it. The last one is begun when the node is
   * alone.
   */
  put(number: number, isLast: boolean): Promise<boolean>
  isEnding(): boolean
}

const thinkMicros = 2_000
/** A write's time limit: this, or this factor times the time of the write before. */
const usualMicros = 30_000
const slackFactor = 3

/**
 * Writes until the node is cut off. Resolves with whether the last write's outcome is unknown: then
 * perhaps only that node accepted it. The other writes keep the node leading its group, and end
 * with the cut.
 */
export async function writeAlone(parts: LoneWriterParts): Promise<boolean> {
  const { world, atMicros, put, isEnding } = parts
  let number = 1
  for (let tookMicros = usualMicros; !isEnding(); number++) {
    const beganAt = world.nowMicros
    if (beganAt + Math.max(usualMicros, slackFactor * tookMicros) > atMicros) break
    await put(number, false)
    tookMicros = world.nowMicros - beganAt
    await world.sleep(thinkMicros)
  }
  await world.sleep(Math.max(thinkMicros, atMicros + thinkMicros - world.nowMicros))
  return !isEnding() && !(await put(number, true))
}
