/**
 * Finds requests to a group that no node would read or carry out, whatever rows it holds. The caller gets the
 * problem at once, in the words of its own request.
 */
import { keyBytesMax, rangeEndBytesMax, sessionCharsMax } from '../base/limits.ts'
import { problem, type Problem } from '../base/problem.ts'
import { wordsFor } from '../base/words.ts'
import type { IntentName, RowRange, Submission } from '../group/replica-port.ts'
import type { GroupOperation, ReadGroup } from '../txn/group-operation.ts'
import { stalenessProblem } from '../txn/staleness.ts'
import { lockNameCharsMax } from '../wire/client/client-fields.ts'
import { isText } from '../../schema/values.ts'

export function groupOperationProblem(operation: GroupOperation): Problem | undefined {
  switch (operation.kind) {
    case 'read-group':
      return readProblem(operation)
    case 'outcome-group':
      return intentProblem(operation.intent)
    case 'list-groups':
      return limitProblem(operation.limit)
    case 'commit-group':
      return submissionProblem(operation.submission)
    default:
      return undefined
  }
}

function readProblem({ from, atLeast, keys, range }: ReadGroup): Problem | undefined {
  const wrong =
    (from.kind === 'at' ? countProblem('a time in microseconds', from.timestamp) : undefined) ??
    (from.kind === 'bounded' ? stalenessProblem(from.maxStalenessMs) : undefined) ??
    countProblem('a position', atLeast)
  if (wrong !== undefined) return wrong
  return keysProblem(keys) ?? (range && rangeProblem(range))
}

/** The node bounds the sizes of the whole transaction; longer keys it would not even read. */
function submissionProblem({ reads, ranges, mutations }: Submission): Problem | undefined {
  return keysProblem(reads) ?? keysProblem(mutations.map(({ key }) => key)) ?? rangesProblem(ranges)
}

function rangesProblem(ranges: Submission['ranges']): Problem | undefined {
  for (const range of ranges) {
    const wrong = rangeProblem(range)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

function keysProblem(keys: readonly Uint8Array[]): Problem | undefined {
  const long = keys.find(({ length }) => length > keyBytesMax)
  return long && tooLarge('a key', 'keyBytesMax', keyBytesMax, long.length)
}

function rangeProblem({ gte, gt, lt, limit }: RowRange): Problem | undefined {
  for (const end of [gte, gt, lt]) {
    if (end === undefined || end.length <= rangeEndBytesMax) continue
    return tooLarge('an end of a range', 'rangeEndBytesMax', rangeEndBytesMax, end.length)
  }
  return limit === undefined ? undefined : limitProblem(limit)
}

function intentProblem({ session, sequence, expiresAt = 0 }: IntentName): Problem | undefined {
  if (session.length > sessionCharsMax) {
    return problem('invalid', `a session has at most ${sessionCharsMax} characters`)
  }
  return countProblem('a sequence', sequence) ?? countProblem('a time in microseconds', expiresAt)
}

/** Why a lock cannot be asked for by this name. */
export function lockNameProblem(name: unknown): Problem | undefined {
  if (!isText(name)) {
    const words = 'a string of whole characters'
    return problem('invalid', `the name of a lock is ${wordsFor(name)}; expected ${words}`)
  }
  const { length: actual } = name
  if (actual === 0) return problem('invalid', 'the name of a lock is empty')
  if (actual <= lockNameCharsMax) return undefined
  const message = `the name of a lock has ${actual} characters, at most ${lockNameCharsMax}`
  return problem('invalid', message, {
    limit: 'lockNameCharsMax',
    limitValue: lockNameCharsMax,
    actual,
  })
}

/** Why `limit` is no number of rows or names for a page. */
export function limitProblem(limit: number): Problem | undefined {
  if (Number.isSafeInteger(limit) && limit >= 1) return undefined
  return problem('invalid', `limit is ${wordsFor(limit)}; expected a whole number from 1`)
}

function countProblem(what: string, value: number): Problem | undefined {
  if (Number.isSafeInteger(value) && value >= 0) return undefined
  return problem('invalid', `${what} is a whole number from 0; ${wordsFor(value)} is not`)
}

function tooLarge(what: string, limit: string, limitValue: number, actual: number): Problem {
  const message = `${what} of ${actual} bytes is too large; ${limit} is ${limitValue}`
  return problem('too-large', message, { limit, limitValue, actual })
}
