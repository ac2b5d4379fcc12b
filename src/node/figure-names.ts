/** Members of `/status` as figures of `/metrics`: `logDamages` is `trilithon_replica_log_damages_total`. */

/** Those that count since the process began: they never fall, and their names say so. */
const counted: ReadonlySet<string> = new Set([
  ...['logDamages', 'scrubLogDamages', 'lostFlushes', 'falseClaims', 'droppedFlushes'],
  ...['scrubPasses', 'logScrubPasses', 'rowScrubPasses', 'rowScrubWrong'],
  ...['relayed', 'failures', 'removed', 'heldBack'],
])

/** `field` under `prefix`, in the spelling of Prometheus. */
export function figureName(
  prefix: string,
  field: string,
  isCounter: boolean = counted.has(field),
): string {
  const snake = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return `${prefix}_${snake}${isCounter ? counterEnding : ''}`
}

/** The ending of a counter's name, and of no other name. */
export const counterEnding = '_total'
