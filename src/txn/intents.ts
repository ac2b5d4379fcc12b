/** The names under which writes take effect once, and whether they and their time-outs can be taken. */
import { readGiven, type Rule } from '../base/arguments.ts'
import { StoreError, type StoreErrorDetail } from '../base/errors.ts'
import { otherUnitOf } from '../base/given-time.ts'
import type { Timestamp } from '../base/ids.ts'
import { problem, type Problem } from '../base/problem.ts'
import { isReadable } from '../base/readable.ts'
import type { Submission } from '../group/replica-port.ts'
import { callTimeoutMsMax, intentLifetimeMsMax } from './limits.ts'

/**
 * The intents of some writes, for exactly-once retries through any node: one sequence a write.
 * `floor` is the session's lowest sequence that may still be on its way.
 */
export interface Intents {
  readonly session: string
  readonly sequences: readonly number[]
  readonly floor: number
  readonly expiresAt: Timestamp
}

const sessionPattern = /^[A-Za-z0-9-]{1,64}$/

/** An intent as a program gives it, who may give anything; throws `invalid`. */
export function checkedIntent(given: unknown): Intent {
  const isObject = typeof given === 'object' && given !== null && isReadable(given)
  const { session, sequence, floor, expiresAt } = isObject
    ? readGiven('the intent', () => ({ ...noIntent, ...given }))
    : noIntent
  const isNamed = typeof session === 'string' && sessionPattern.test(session)
  // That of an error's detail has no floor: the lowest holds nothing back but its own session.
  const least = floor ?? 1
  const isTimed = isCount(expiresAt) && otherUnitOf(expiresAt) === undefined
  if (isNamed && isCount(sequence) && isTimed && isCount(least) && least <= sequence) {
    return { session, sequence, floor: least, expiresAt }
  }
  throw new StoreError('invalid', intentWords)
}

type Intent = Submission['intent']

const noIntent: Readonly<Record<keyof Intent, unknown>> = {
  ...{ session: undefined, sequence: undefined, floor: undefined, expiresAt: undefined },
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1
}

const intentWords =
  'an intent is { session, sequence, floor, expiresAt }: a name of 1 to 64 of A-Z a-z 0-9 -, numbers from 1 of which the floor is not above the sequence, and microseconds since 1970 (no seconds or milliseconds), as an error whose outcome is not known has them in detail.intent'

/** Why the intents of `writes` writes cannot be taken, here and now. */
export function intentsProblem(
  intents: Intents,
  writes: number,
  wallMicros: number,
): Problem | undefined {
  const { session, sequences, floor, expiresAt } = intents
  if (!sessionPattern.test(session))
    return problem('invalid', 'a session is 1 to 64 of A-Z a-z 0-9 -')
  const isComplete = sequences.length === writes && new Set(sequences).size === writes
  if (!isComplete) return problem('invalid', 'there is one sequence for each write, all different')
  if (sequences.some((sequence) => sequence < floor)) {
    return problem('invalid', "a write's sequence is not below its session's floor")
  }
  return clockProblem(expiresAt, wallMicros)
}

/**
 * CLOCK-2 A node refuses no request for good by its clock alone: its own clock may be the wrong one.
 *
 * When a request is good for too long by this node's clock, the client asks another node. Only the
 * group says whether a request is out of date: it goes by its log.
 */
function clockProblem(expiresAt: Timestamp, nodeMicros: Timestamp): Problem | undefined {
  if ((expiresAt - nodeMicros) / 1000 <= intentLifetimeMsMax) return undefined
  const message =
    'the request is good for longer than 15 minutes by the clock of this node: another one may take it; else compare the clocks of the client and of the nodes'
  return problem('unavailable', message)
}

/** Of an option `timeoutMs`. */
export const timeoutRule: Rule = {
  accepts: (value) => typeof value === 'number' && value >= 1 && value <= callTimeoutMsMax,
  words: `milliseconds from 1 to ${callTimeoutMsMax}`,
  detail: (actual) => ({ limit: 'callTimeoutMsMax', limitValue: callTimeoutMsMax, actual }),
}

export function timeoutProblem(timeoutMs: number): Problem | undefined {
  if (timeoutRule.accepts(timeoutMs)) return undefined
  const detail: StoreErrorDetail = Number.isFinite(timeoutMs)
    ? { limit: 'callTimeoutMsMax', limitValue: callTimeoutMsMax, actual: timeoutMs }
    : {}
  return problem('invalid', `a time-out is from 1 to ${callTimeoutMsMax} milliseconds`, detail)
}
