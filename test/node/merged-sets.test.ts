/** What several replica sets answer, as one answer. */
import { expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { listedGroupsMax } from '../../src/base/limits.ts'
import { mergedGroups, mergedListing } from '../../src/node/merged-sets.ts'

/** A set names so many at a time, whatever it is asked for. */
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

test('LOG-8: pages of groups of several sets join up, however many are asked for', async () => {
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

test('pages of an agenda of several sets join up, however many are asked for', async () => {
  const found = await followed(async (after) => {
    const answers = sets.map((groups) => {
      const page = pageOf(groups, after, limit).map((group) => ({ group, position: 1 }))
      return Promise.resolve({ kind: 'list-agenda', groups: page } as const)
    })
    const answer = await mergedListing({ kind: 'list-agenda', topic: 'outbox', limit }, answers)
    return answer.kind === 'list-agenda' ? answer.groups.map(({ group }) => group) : []
  })
  expect(found).toEqual(sets.flat())
})
