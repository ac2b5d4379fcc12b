/** The answers of several replica sets, as one answer. */
import { expect, test } from 'vitest'
import type { StoreErrorCode } from '../../src/base/errors.ts'
import { problem } from '../../src/base/problem.ts'
import type { WorklistAnswer } from '../../src/worklist/worklist-operation.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { listedGroupsMax } from '../../src/base/limits.ts'
import { mergedGroups, mergedListing } from '../../src/node/merged-sets.ts'

/** A set names a bounded number of groups at a time, even where the limit is higher. */
function pageOf(groups: readonly GroupId[], after: GroupId | undefined, limit: number): GroupId[] {
  const behind = groups.filter((one) => after === undefined || one > after)
  return behind.slice(0, Math.min(limit, listedGroupsMax))
}

function named(first: string, count: number): GroupId[] {
  return Array.from({ length: count }, (_, n) =>
    groupOfBytes(Buffer.from(`${first}${String(n).padStart(6, '0')}`)),
  )
}

const sets = [named('a', listedGroupsMax + 200), named('b', 300)]
const limit = 2 * listedGroupsMax

async function followed(
  page: (after: GroupId | undefined) => Promise<readonly GroupId[]>,
): Promise<GroupId[]> {
  const found: GroupId[] = []
  for (let after: GroupId | undefined; ;) {
    const names = await page(after)
    found.push(...names)
    after = names.at(-1)
    if (after === undefined) return found
  }
}

test('LOG-8: pages of the groups of several sets join up, at any page size', async () => {
  const found = await followed(async (after) => {
    const answers = sets.map((groups) =>
      Promise.resolve({ kind: 'list-groups', groups: pageOf(groups, after, limit) } as const),
    )
    const group = groupOfBytes(Buffer.from('a'))
    const answer = await mergedGroups({ kind: 'list-groups', group, limit }, answers)
    return answer.kind === 'list-groups' ? answer.groups : []
  })
  expect(found).toEqual(sets.flat())
})

function pageOfWorklist(groups: readonly GroupId[], after?: GroupId): Promise<WorklistAnswer> {
  const page = pageOf(groups, after, limit).map((group) => ({ group, position: 1 }))
  return Promise.resolve({ kind: 'list-worklist', groups: page })
}

const listing = { kind: 'list-worklist', topic: 'outbox', limit } as const

test('pages of a worklist of several sets join up, at any page size', async () => {
  const found = await followed(async (after) => {
    const [own, ...others] = sets.map((groups) => pageOfWorklist(groups, after))
    const answer = await mergedListing(listing, own ?? expect.fail(), others)
    return answer.kind === 'list-worklist' ? answer.groups.map(({ group }) => group) : []
  })
  expect(found).toEqual(sets.flat())
})

test('a worklist leaves out a set that does not answer only for a partial listing', async () => {
  const [, west = []] = sets
  const away = Promise.resolve(refused('unavailable'))
  const wrong = Promise.resolve(refused('invalid'))
  const part = { ...listing, isPartial: true } as const
  expect(await mergedListing(listing, pageOfWorklist(west), [away])).toEqual(await away)
  expect(await mergedListing(part, pageOfWorklist(west), [away])).toEqual(
    await pageOfWorklist(west),
  )
  // Another node knows what the own set has; no set can answer a wrong question.
  expect(await mergedListing(part, away, [pageOfWorklist(west)])).toEqual(await away)
  expect(await mergedListing(part, pageOfWorklist(west), [away, wrong])).toEqual(await wrong)
})

function refused(code: StoreErrorCode): WorklistAnswer {
  return { kind: 'problem', problem: problem(code, 'no') }
}
