/** Transactions of one turn go into the core together. */
import { expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { SubmitBatcher } from '../../src/replica/submit-batcher.ts'
import type { Arrived } from '../../src/replication/group.ts'

const one = groupOfBytes(Buffer.from('one'))
const other = groupOfBytes(Buffer.from('other'))

function arrived(request: number): Arrived {
  const transaction = {
    ...{ session: 's', sequence: request, attempt: 1, floor: 0, expiresAt: 0 },
    ...{ allocations: [], mutations: [] },
  }
  const bytes = new Uint8Array()
  return { request, submitted: { transaction, bytes, readPosition: 0, reads: [], ranges: [] } }
}

test('each group has one event a turn, with all that came for it, in order', async () => {
  const turns: (readonly [GroupId, readonly number[]])[] = []
  const arrivals = new SubmitBatcher((group, all) => {
    turns.push([group, all.map(({ request }) => request)])
    // The arrivals that this turn makes anew belong to the next.
    if (turns.length === 1) arrivals.add(group, arrived(9))
  })
  arrivals.add(one, arrived(1))
  arrivals.add(other, arrived(2))
  arrivals.add(one, arrived(3))
  expect(turns).toEqual([])
  await new Promise((resolve) => setImmediate(resolve))
  expect(turns).toEqual([
    [one, [1, 3]],
    [other, [2]],
    [one, [9]],
  ])
})
