/** A call under way, as the caller keeps it over its tries. */
import { problem, type Problem } from '../base/problem.ts'
import type { Endpoint } from '../ports/transport.ts'
import type { Operation, Replied } from '../wire/client-message.ts'
import { isClosed, type Call, type Sending, type Try } from './call.ts'

/** A call under way, with its latest try. */
export interface Calling {
  readonly call: Call
  readonly operation: Operation
  /** What it brings to be written. */
  readonly bytes: number
  readonly deadlineMs: number
  /** What it asks its node to wait for. */
  readonly waitMs: number
  readonly end: (replied: Replied) => void
  readonly reject: (reason: unknown) => void
  tries: number
  /** How long the try may take, and when it is over. */
  tryMs: number
  lostAtMs: number
  /** Who is asked. */
  endpoint: Endpoint | undefined
  /** Who has just been asked in vain. */
  last: Endpoint | undefined
  /** The number of the latest request, and what it asked. */
  id: number
  sending: Sending | undefined
  /** Until when its node may still begin it; 0: it does not wait at any. */
  waitsUntilMs: number
  /** Some try of it was lost. */
  isUnsure: boolean
  isOver: boolean
}

export const tooMuchToDo = 'the nodes have too much to do, and took little of late; try again later'

/** What does not wait anywhere any more, through no fault of load: the link broke, or the node stops. */
export function isFree(result: Try): boolean {
  if (result.kind === 'answered') return isClosed(result.answered.answer)
  return result.kind === 'unsent' || result.isLinkDown === true
}

export function leftMs({ deadlineMs }: Calling, nowMs: number): number {
  return Math.max(1, Math.ceil(deadlineMs - nowMs))
}

export const closed: Problem = problem('closed', 'this client is closed')

export const tooManyCalls: Problem = problem(
  'overloaded',
  'too many calls are under way in this client; wait for some of them',
)

/** It was not begun, and has come to its end all the same. */
export function refusal(refused: Problem, call: Call): Replied {
  call.finish(refused)
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

export function asItIs(replied: Replied): Replied {
  return replied
}
