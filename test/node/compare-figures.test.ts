/** Groups with wrong rows, as the status and the metrics of a node tell of them. */
import { expect, test } from 'vitest'
import { compareFigures, describeCompare } from '../../src/node/compare-figures.ts'

const nothing = {
  ...{ rounds: 3, groups: 5, differences: 0, unequal: 2, uncompared: 1, isUnderWay: false },
  ...{ aside: 0, mended: 4, open: 0, undecided: 0, isCounting: false, countedGroups: 4 },
}

test('HEAL-4: the status says in words which groups are served by others, and says nothing when all is well', () => {
  expect(describeCompare(nothing)).toEqual([])
  const [one] = describeCompare({ ...nothing, aside: 1 })
  expect(one).toMatch(/^1 group of this node has damaged rows: others serve it .*check this disk$/)
  const [more] = describeCompare({ ...nothing, aside: 3 })
  expect(more).toMatch(/^each of 3 groups of this node has damaged rows/)
})

test('HEAL-6: the status says in words which groups take no write, and the remedy', () => {
  const [one] = describeCompare({ ...nothing, undecided: 1 })
  expect(one).toMatch(
    /^1 group takes no write here: .*start the nodes that are down, or see trilithon compare resolve --help$/,
  )
})

test('HEAL-2: the metrics count rounds, groups, differences, unequal positions and what was mended', () => {
  const figures = Object.fromEntries(
    compareFigures(nothing).map(({ name, value }) => [
      name.replace('trilithon_compare_', ''),
      value,
    ]),
  )
  expect(figures).toEqual({
    ...{ rounds_total: 3, groups_total: 5, differences_total: 0, unequal_positions: 2 },
    ...{ uncompared_peers: 1, aside: 0, mended_total: 4, undecided: 0 },
  })
  expect(compareFigures(undefined)).toEqual([])
})
