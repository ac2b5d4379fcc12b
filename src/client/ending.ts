/** The conclusion from the end of a try about the node that it was made at. */
import type { Problem } from '../base/problem.ts'
import type { Replied } from '../wire/client/client-message.ts'
import { isDamageOf, isUnbuilt, mayBeRetried, type Try } from './call.ts'
import type { Ending } from './links.ts'

/** A try that had less time says nothing of the node. */
const tellingTryMs = 20

export function classifyEnding(result: Try, tryMs: number): Ending {
  if (result.kind === 'unsent') return 'inconclusive'
  if (result.kind === 'lost') return tryMs < tellingTryMs ? 'inconclusive' : 'lost'
  return isFailed(result.answered) ? 'failed' : 'answered'
}

/** The node would not hear of it. Where that does not end the call, another one may know more. */
export function isRefused(result: Try): boolean {
  return result.kind === 'answered' && isAll(result.answered, (problem) => !mayBeRetried(problem))
}

/** The node cannot answer: it is cut off from the others, or stopping. */
function isFailed(replied: Replied): boolean {
  const { answer } = replied
  if (answer.kind === 'commit-group') return answer.outcome.kind === 'unknown'
  return isAll(replied, isOutage)
}

/** Of a batch, each item is such a problem. */
function isAll({ answer }: Replied, is: (problem: Problem) => boolean): boolean {
  if (answer.kind === 'problem') return is(answer.problem)
  if (!('items' in answer)) return false
  return answer.items.every((item) => item.kind === 'problem' && is(item.problem))
}

function isOutage(problem: Problem): boolean {
  if (isUnbuilt(problem)) return false
  const { code } = problem
  const isSilent = code === 'unavailable' || code === 'closed' || code === 'unknown-outcome'
  return isSilent || isDamageOf(problem)
}
