/** A call under way, as the caller keeps it over its tries. */
import { problem, type Problem } from '../base/problem.ts'
import type { ClientLimits } from './client-limits.ts'
import type { Pace } from '../ports/pace.ts'
import type { Random } from '../ports/random.ts'
import type { Endpoint } from '../ports/transport.ts'
import { isWrite, type Operation, type Replied } from '../wire/client/client-message.ts'
import { isClosed, findOverload, type Call, type Sending, type Try } from './call.ts'

/** Nodes refuse writes sooner than the rest. */
export type Lane = 'reads' | 'writes'

/** A call under way, with its latest try. */
export interface InFlight {
  readonly call: Call
  readonly operation: Operation
  /** Which windows bound it; undefined: none, for it waits at its node, or asks for nothing but words. */
  readonly lane: Lane | undefined
  /** The bytes that it brings to be written. */
  readonly bytes: number
  readonly cameMs: number
  readonly deadlineMs: number
  /** Until when it may wait here for a node that has room; undefined: it has not been held back. */
  heldUntilMs: number | undefined
  /** The same where nodes refuse for load, and this client asks for few things. */
  fewUntilMs: number | undefined
  /** The time that it asks its node to wait, in milliseconds. */
  readonly waitMs: number
  readonly end: (replied: Replied) => void
  readonly reject: (reason: unknown) => void
  tries: number
  /** How long the try may take, and when it is over. */
  tryMs: number
  lostAtMs: number
  /** The node that has the request. */
  endpoint: Endpoint | undefined
  /** The node that had the try before, in vain. */
  last: Endpoint | undefined
  /** The number of the latest request, and its content. */
  id: number
  sending: Sending | undefined
  /** Until when its node may still begin it; 0: it does not wait at any. */
  waitsUntilMs: number
  /** Some try of it was lost. */
  isUnsure: boolean
  isOver: boolean
  /** Stops watching whether the caller still waits. */
  forget: (() => void) | undefined
}

/** The facts known of a call as it comes. */
interface Coming extends Pick<InFlight, 'call' | 'operation' | 'bytes' | 'end' | 'reject'> {
  readonly nowMs: number
  readonly timeoutMs: number
}

export function inFlightCall(coming: Coming): InFlight {
  const { call, operation, bytes, nowMs, timeoutMs, end, reject } = coming
  // Spelled out: spreading objects takes longer than all the rest of a try.
  return {
    call,
    operation,
    lane: pickLane(operation),
    bytes,
    cameMs: nowMs,
    deadlineMs: nowMs + timeoutMs,
    heldUntilMs: undefined,
    fewUntilMs: undefined,
    waitMs: 'waitMs' in operation ? operation.waitMs : 0,
    end,
    reject,
    tries: 0,
    tryMs: 0,
    lostAtMs: 0,
    endpoint: undefined,
    last: undefined,
    id: 0,
    sending: undefined,
    waitsUntilMs: 0,
    isUnsure: false,
    isOver: false,
    forget: undefined,
  }
}

/**
 * Calls `then` once the caller has gone, at once where it has gone already. Gives a function that takes that
 * back.
 */
export function whenGone(pace: Pick<Pace, 'onGone'>, then: () => void): (() => void) | undefined {
  try {
    return pace.onGone(then)
  } catch {
    then()
    return undefined
  }
}

function pickLane(operation: Operation): Lane | undefined {
  const isWaiting = 'waitMs' in operation && operation.waitMs > 0
  if (isWaiting || operation.kind === 'status') return undefined
  return isWrite(operation) ? 'writes' : 'reads'
}

/** A try was refused for load. */
export interface Load {
  readonly retryAfterMs: number
  /** Not of one group alone, which tells nothing of the node's others. */
  readonly isOfNode: boolean
}

/** The shortest and the longest wait that a client names when it refuses a call itself. */
export const heldMsMin = 50
export const heldMsMax = 1_000

/** Of nodes that do not say when to come again. */
const retryAfterMsDefault = 100

export function readLoad(result: Try): Load | undefined {
  const { detail } = (result.kind === 'answered' && findOverload(result.answered.answer)) || {}
  if (detail === undefined) return undefined
  const { retryAfterMs = retryAfterMsDefault, group } = detail
  return { retryAfterMs, isOfNode: group === undefined }
}

/** Whether the call waits nowhere any more, through no fault of load: the link broke, or the node stops. */
export function isFree(result: Try): boolean {
  if (result.kind === 'answered') return isClosed(result.answered.answer)
  return result.kind === 'unsent' || result.isLinkDown === true
}

/** Tries that one node is given `tryTimeoutMs` for; then twice as long, and so on. */
const triesBeforeLonger = 3

/** Longer and longer: on a network slower than thought, no try would ever be long enough. */
export function computeTryMs(
  tries: number,
  { tryTimeoutMs }: Pick<ClientLimits, 'tryTimeoutMs'>,
): number {
  const doublings = Math.floor((tries - 1) / triesBeforeLonger)
  return tryTimeoutMs * 2 ** Math.min(doublings, 16)
}

/** The first retry is at once: at another node, where there is one. */
export function computeBackoffMs(
  tries: number,
  { backoffMs, backoffMaxMs }: Pick<ClientLimits, 'backoffMs' | 'backoffMaxMs'>,
  random: Random,
): number {
  if (tries === 1) return 0
  const longestMs = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(tries - 2, 16))
  return random.int(Math.ceil(longestMs / 2), longestMs)
}

/** Its caller is to learn what became of it. */
export function waitToTheEnd(one: InFlight): void {
  one.heldUntilMs = one.deadlineMs
  one.fewUntilMs = undefined
}

export function leftMs({ deadlineMs }: InFlight, nowMs: number): number {
  return Math.max(1, Math.ceil(deadlineMs - nowMs))
}

/** Of a write whose caller waits no longer. */
export const givenUpInWrite: Problem = problem(
  'unknown-outcome',
  'this call was given up while it was under way, and may have been carried out: look before you do it again',
)

export const closed: Problem = problem('closed', 'this client is closed')

const underWay = { callsMax: 'calls', putBytesMax: 'bytes of puts' } as const

/** The problem of a call beyond the client's bounds: it names the bound, and how much is under way. */
export function tooMuchUnderWay(
  limit: keyof typeof underWay,
  limitValue: number,
  actual: number,
): Problem {
  const message = `too many ${underWay[limit]} are under way in this client, ${limit} is ${limitValue}; wait for some of them`
  return problem('overloaded', message, {
    ...{ limit, limitValue, actual },
    retryAfterMs: retryAfterMsDefault,
  })
}

/** Of a call that the nodes had no room for. */
export function heldBack(retryAfterMs: number = heldMsMax): Problem {
  return problem('overloaded', tooMuchToDo, { retryAfterMs })
}

const tooMuchToDo = 'the nodes have more to do than they can; try again later'

/** It was not begun, and has come to its end all the same. */
export function refusal(refused: Problem, call: Call): Replied {
  call.finish(refused)
  return { answer: { kind: 'problem', problem: refused }, positions: [] }
}

export function asItIs(replied: Replied): Replied {
  return replied
}
