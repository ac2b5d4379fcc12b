import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { ClockChecker } from '../../sim/checkers/clock-checker.ts'
import { firstEpochs } from '../../src/log/own-epochs.ts'
import { PositionBook } from '../../sim/checkers/position-book.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { Coverage } from '../../sim/coverage.ts'

const free = (wall: number): number => wall
const bounded = (wall: number): number => Math.min(wall, 1_000)

test.each([
  ['ready at once', 10, true, free, ['CLOCK-3']],
  ['not ready at once', 10, false, free, []],
  ['ready at once, and held to others', 10, true, bounded, []],
  ['ready after long', 2_600, true, free, []],
])('CLOCK-3: a node is judged that is %s', (_, upMs, isReady, held, rules) => {
  const referee = new Referee(() => 0)
  const book = new PositionBook(staticPlacement(['n1', 'n2', 'n3'].map(nodeId)))
  const checker = new ClockChecker(book, referee, new Coverage())
  checker.onStart('n1', 5_000)
  checker.onSeen('n1', 5_000 + upMs, { isReady: () => isReady, held })
  expect(referee.violations.map(({ rule }) => rule)).toEqual(rules)
})

test('CLOCK-3: a node of an epoch with two voters waits for no clocks, and one of three does', () => {
  const referee = new Referee(() => 0)
  const nodes = ['n1', 'n2', 'n3'].map(nodeId)
  const book = new PositionBook(staticPlacement(nodes))
  const checker = new ClockChecker(book, referee, new Coverage())
  book.voters.note('n1', { ...firstEpochs, epoch: 2, voters: nodes.slice(0, 2) })
  for (const node of ['n1', 'n2']) {
    checker.onStart(node, 0)
    checker.onSeen(node, 100, { isReady: () => true, held: free })
  }
  expect(referee.violations.map(({ rule, detail }) => [rule, detail])).toEqual([
    ['CLOCK-3', { node: 'n2', upMs: 100 }],
  ])
})
