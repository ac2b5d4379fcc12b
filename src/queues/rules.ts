/** The rules for what calls of queues are given, checked before a call does anything. */
import { callback, number, wholeFrom, type Rules } from '../base/arguments.ts'
import { signalRule } from '../txn/signalled.ts'
import type { HandleCall } from './handle-call.ts'
import type { ConsumeOptions } from './limits.ts'
import type { SendOptions } from './send.ts'

export const sendRules: Rules<SendOptions> = { delayMs: number }
/** Of a handler, whether its messages are typed or bytes. */
export const consumeRules: Rules<ConsumeOptions & Pick<HandleCall, 'onFailed' | 'signal'>> = {
  batch: wholeFrom(1),
  concurrency: wholeFrom(1),
  attemptsMax: wholeFrom(1),
  retryMs: number,
  retryMaxMs: number,
  timeoutMs: number,
  onFailed: callback,
  signal: signalRule,
}

/** All members that a handler of bytes may be given. */
export const handleCallNames: readonly string[] = [
  ...['queue', 'prepare', 'handle', 'onHandled'],
  ...Object.keys(consumeRules),
]
