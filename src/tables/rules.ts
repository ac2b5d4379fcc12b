/** The rules for arguments of typed tables, checked before a call does anything. */
import {
  checkArgument,
  flag,
  givenMembers,
  number,
  oneOf,
  text,
  wholeFrom,
  type Rules,
} from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { storeTime } from '../base/given-time.ts'
import type { ReadFrom } from '../group/group-port.ts'
import { timeoutRule } from '../txn/intents.ts'
import { isText } from '../../schema/values.ts'
import { signalRule } from '../txn/signalled.ts'
import { stalenessRule } from '../txn/staleness.ts'
import type { ScanOptions } from './read-rows.ts'
import type {
  CallOptions,
  GlobalIndexOptions,
  ReadLevel,
  TransactionCallOptions,
} from './call-options.ts'

export const callRules: Rules<CallOptions> = {
  timeoutMs: timeoutRule,
  atLeast: wholeFrom(0),
  signal: signalRule,
}
export const transactionRules: Rules<TransactionCallOptions> = {
  ...callRules,
  from: oneOf('current', 'snapshot'),
  // Looked at, with words of its own, where it is used.
  intent: { accepts: () => true, words: 'an intent' },
  rerunsMax: wholeFrom(0),
  lock: { accepts: isText, words: 'a string of whole characters' },
}
export const scanRules: Rules<ScanOptions> = { reverse: flag, limit: number, cursor: text }
export const globalIndexRules: Rules<GlobalIndexOptions> = {
  ...scanRules,
  verify: flag,
  timeoutMs: timeoutRule,
  signal: signalRule,
  level: oneOf('current', 'snapshot'),
}

const levels = oneOf('current', 'snapshot', 'inconsistent')

/** Where a read begins. Throws `invalid` for what is no level. */
export function readFrom(call: string, level: ReadLevel): ReadFrom {
  if (typeof level === 'string' && levels.accepts(level)) return { kind: level }
  const words = `${levels.words}, { at: a moment } or { maxStalenessMs: a number }`
  const known = ['at', 'maxStalenessMs']
  const { at, maxStalenessMs } = givenMembers(call, 'the level', level, { known, words })
  if (maxStalenessMs !== undefined) {
    if (at !== undefined) {
      throw new StoreError('invalid', `${call}: a level has at or maxStalenessMs, not both`)
    }
    checkArgument(call, 'maxStalenessMs', maxStalenessMs, stalenessRule)
    return { kind: 'bounded', maxStalenessMs: Number(maxStalenessMs) }
  }
  return { kind: 'at', timestamp: storeTime(at, `${call}: at`) }
}
