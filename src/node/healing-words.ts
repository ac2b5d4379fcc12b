/** Words for a node whose log must not be used, and for one that has begun anew after that. */
import type { HealingStatus } from './log-healing.ts'

const asking = 'the log is damaged: asking the others for a seat'

/** Of readiness, while the stores are not open. */
export function describeOpening(healing: HealingStatus | undefined): string {
  return healing?.reason === undefined ? 'being opened' : asking
}

/** Of the status, then. */
export function describeUnopened(healing: HealingStatus | undefined): readonly string[] {
  if (healing?.reason === undefined) return ['the stores are being opened']
  const { reason, refusals } = healing
  const why = refusals.length === 0 ? '' : ` (${refusals.join('; ')})`
  return [
    `${asking}${why}; start the other nodes: they need a majority without this one. ${reason}`,
  ]
}

/** Of the status, once an empty store is in the place of the old one. */
export function describeHealed(healing: HealingStatus | undefined): readonly string[] {
  if (healing === undefined || healing.replaced === 0) return []
  return [
    'log/ was damaged, and an empty store has taken the place of this one: the old log is log.damaged; check this disk',
  ]
}
