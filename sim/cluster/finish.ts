/** How long the work of a run may take to end in the healed world, and the work that has not. */
import type { LinkConditions } from '../world/weather.ts'

const finishMicros = 120_000_000
/** Messages one after another that the longest work may wait for: a build of an index, page by page. */
const messagesInTurn = 4_000

/** Links between far places leave less of the time for the work itself. */
export function boundOfFinish({
  delayMinMicros,
  delayMeanMicros,
  farFactor = 1,
}: Pick<LinkConditions, 'delayMinMicros' | 'delayMeanMicros' | 'farFactor'>): number {
  return finishMicros + messagesInTurn * (delayMinMicros + delayMeanMicros) * farFactor
}

/** The kinds of work that have not ended. */
export function listWaiting(
  sessions: readonly { isDone(): boolean }[],
): Readonly<Record<string, readonly string[]>> {
  const waiting = sessions.filter((one) => !one.isDone())
  return { waiting: waiting.map((one) => one.constructor.name) }
}
