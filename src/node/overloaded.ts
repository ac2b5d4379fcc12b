/**
 * Answers that say that there was no room, from any part of the node. Each says when the client may try
 * again.
 *
 * LOAD-5  A refusal for load says that load is the reason, and after how long the client may try again.
 */
import type { Outcome, Problem } from '../base/problem.ts'
import { noRoom } from '../txn/no-room.ts'
import type { Operation, Reply } from '../wire/client/client-message.ts'
import type { Admission } from './admission.ts'
import type { WorkEnd } from './work-limit.ts'

type Times = Pick<Admission, 'retryAfterMs'>

/** The end of a write, as far as it tells of the node's load. */
export function classifyEnd(answer: Reply): WorkEnd {
  if (isOverloaded(answer)) return 'refused'
  return isInVain(answer) ? 'failed' : 'done'
}

export function endOfProblem(of: Problem): WorkEnd {
  return classifyEnd({ kind: 'problem', problem: of })
}

/** No majority took it in its time. */
function isInVain(answer: Reply): boolean {
  if (answer.kind === 'problem') return isVain(answer.problem)
  if (answer.kind !== 'put') return false
  return answer.items.every((item) => item.kind === 'problem' && isVain(item.problem))
}

function isVain({ code }: Problem): boolean {
  return code === 'unavailable' || code === 'unknown-outcome'
}

/** Nothing of it was carried out, for want of room. */
function isOverloaded(answer: Reply): boolean {
  if (answer.kind === 'problem') return answer.problem.code === 'overloaded'
  if (answer.kind === 'commit-group') return answer.outcome.kind === 'overloaded'
  if (answer.kind !== 'put') return false
  return answer.items.every((item) => item.kind === 'problem' && item.problem.code === 'overloaded')
}

export function withRetryAfter(answer: Reply, operation: Operation, times: Times): Reply {
  switch (answer.kind) {
    case 'problem':
      return timed(answer, times)
    case 'commit-group': {
      if (answer.outcome.kind !== 'overloaded') return answer
      if (operation.kind !== 'commit-group') return answer
      const why = noRoom(operation.submission.group, answer.outcome)
      return timed({ kind: 'problem', problem: why }, times)
    }
    case 'put':
      return { kind: 'put', items: timedItems(answer.items, times) }
    case 'get':
      return { kind: 'get', items: timedItems(answer.items, times) }
    case 'log':
      return { kind: 'log', items: timedItems(answer.items, times) }
    default:
      return answer
  }
}

function timedItems<Value>(
  items: readonly Outcome<Value>[],
  times: Times,
): readonly Outcome<Value>[] {
  if (!items.some(isUntimed)) return items
  return items.map((item) => (item.kind === 'problem' ? timed(item, times) : item))
}

function isUntimed(outcome: Outcome<unknown>): boolean {
  if (outcome.kind !== 'problem') return false
  const { code, detail } = outcome.problem
  return code === 'overloaded' && detail.retryAfterMs === undefined
}

function timed<Of extends Outcome<never>>(outcome: Of, times: Times): Of {
  if (outcome.kind !== 'problem' || !isUntimed(outcome)) return outcome
  const { problem: of } = outcome
  const detail = { ...of.detail, retryAfterMs: times.retryAfterMs() }
  return { ...outcome, problem: { ...of, detail } }
}
