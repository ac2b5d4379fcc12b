/** The words of an intent that is too old about the tries before. */
import { expect, test } from 'vitest'
import { problem } from '../../src/base/problem.ts'
import { CommitCall } from '../../src/client/commit-call.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { Outcome } from '../../src/group/replica-port.ts'
import type { CommitGroup } from '../../src/txn/group-operation.ts'
import type { Try } from '../../src/client/call.ts'

const operation: CommitGroup = {
  kind: 'commit-group',
  submission: {
    group: groupOfBytes(Buffer.from('g')),
    intent: { session: 's', sequence: 1, floor: 1, expiresAt: 1 },
    attempt: 1,
    readPosition: 0,
    reads: [],
    ranges: [],
    allocations: [],
    mutations: [],
  },
}

function answered(outcome: Outcome): Try {
  return {
    kind: 'answered',
    answered: { answer: { kind: 'commit-group', outcome }, positions: [] },
  }
}

const late = problem('unavailable', 'the time is up')

test('LOG-3: an intent that is too old was never carried out', () => {
  const call = new CommitCall(operation)
  expect(call.take(answered({ kind: 'expired' }))).toBe(true)
  expect(call.finish(late).answer).toMatchObject({ outcome: { kind: 'expired' } })
})

test('LOG-3: a commit whose answer was lost stays unknown, and the client asks no other node', () => {
  const call = new CommitCall(operation)
  expect(call.take({ kind: 'lost' })).toBe(false)
  expect(call.take(answered({ kind: 'expired' }))).toBe(true)
  expect(call.finish(late).answer).toMatchObject({ outcome: { kind: 'unknown' } })
})
