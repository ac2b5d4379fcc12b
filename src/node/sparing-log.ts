/**
 * The log of what strangers bring about, who may do so as often as they like: of each message a few lines
 * in a while, and then one that says how many more there were.
 *
 * DOOR-5  Whatever strangers do, they write a bounded number of lines a second, and each is counted.
 */
import type { LinkLog } from '../adapters/ws-link.ts'
import { assert } from '../base/assert.ts'
import type { Clock } from '../ports/clock.ts'

/** Of one message in `spanMs`. */
export const linesMax = 20
export const spanMs = 10_000

interface Span {
  told: number
  untold: number
}

/**
 * `known`: nodes whose lines are counted by themselves, so that strangers do not take theirs; they may change. A line `…: more
 * of these` with the count `inconclusive` ends a span in which there were too many.
 */
export function sparingLog(
  clock: Pick<Clock, 'setTimer'>,
  known: Pick<ReadonlySet<string>, 'has'>,
  tell: LinkLog,
): LinkLog {
  const spans = new Map<string, Span>()
  const begin = (message: string, key: string): Span => {
    const span: Span = { told: 0, untold: 0 }
    spans.set(key, span)
    clock.setTimer(spanMs, () => {
      spans.delete(key)
      if (span.untold > 0) tell(`${message}: more of these`, { untold: span.untold })
    })
    return span
  }
  return (message, detail) => {
    const { node } = detail
    // Messages are words of this program, and nodes those that it has links with or knows by its configuration: keys are few.
    const key = typeof node === 'string' && known.has(node) ? `${message} ${node}` : message
    const span = spans.get(key) ?? begin(message, key)
    if (span.told >= linesMax) {
      span.untold += 1
      return
    }
    span.told += 1
    assert(span.told <= linesMax, 'DOOR-5: strangers write more lines than they may')
    tell(message, detail)
  }
}
