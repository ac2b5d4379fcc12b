/** The bounds of one transaction, told where it enters. */
import { expect, test } from 'vitest'
import { defaultLimits, transactionMutationsMax } from '../../src/base/limits.ts'
import type { Submission } from '../../src/group/replica-port.ts'
import { findExcess, toTransaction } from '../../src/replica/submission-size.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import { packVerdict, readVerdict } from '../../src/wire/verdict.ts'
import { group } from '../log/log-fixture.ts'

function numbering(count: number): Submission {
  return {
    group: group('a'),
    intent: { session: 's', sequence: 1, floor: 0, expiresAt: 2 ** 50 },
    ...{ attempt: 1, readPosition: 0, reads: [], ranges: [], mutations: [] },
    allocations: Array.from({ length: count }, (_, counter) => counter),
  }
}

test('a transaction draws as many numbers as a verdict may have, and no more', () => {
  const tellOf = (submission: Submission): ReturnType<typeof findExcess> =>
    findExcess(submission, encodeTransaction(toTransaction(submission)), defaultLimits)
  const most = numbering(transactionMutationsMax)
  expect(tellOf(most)).toBeUndefined()
  const committed = { kind: 'committed', position: 1, timestamp: 1, attempt: 1 } as const
  const verdict: Verdict = { ...committed, sequences: most.allocations }
  expect(readVerdict(packVerdict(verdict))).toEqual(verdict)
  expect(tellOf(numbering(transactionMutationsMax + 1))).toMatchObject({
    code: 'too-large',
    detail: { limit: 'transactionMutationsMax', actual: transactionMutationsMax + 1 },
  })
})
