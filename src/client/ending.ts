/** What the end of a try tells of the node that it was made at. */
import type { Problem } from '../base/problem.ts'
import type { Replied } from '../wire/client-message.ts'
import { isDamageOf, type Try } from './call.ts'
import type { Ending } from './links.ts'

/** A try that had less time says nothing of the node. */
const tellingTryMs = 20

export function endingOf(result: Try, tryMs: number): Ending {
  if (result.kind === 'unsent') return 'untold'
  if (result.kind === 'lost') return tryMs < tellingTryMs ? 'untold' : 'lost'
  return isUseless(result.answered) ? 'useless' : 'answered'
}

/** The node cannot answer: it is cut off from the others, or stopping. */
function isUseless({ answer }: Replied): boolean {
  if (answer.kind === 'problem') return isOutage(answer.problem)
  if (answer.kind === 'commit-group') return answer.outcome.kind === 'unknown'
  if (!('items' in answer)) return false
  return answer.items.every((item) => item.kind === 'problem' && isOutage(item.problem))
}

function isOutage(problem: Problem): boolean {
  const { code } = problem
  const isSilent = code === 'unavailable' || code === 'closed' || code === 'unknown-outcome'
  return isSilent || isDamageOf(problem)
}
