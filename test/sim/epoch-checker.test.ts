/** The checker of epochs knows a node that votes where it must not, and one that passes a gate too early. */
import { expect, test } from 'vitest'
import { recordKey } from '../../src/journal/ordered-journal.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { firstEpochs, type OwnEpochs } from '../../src/log/own-epochs.ts'
import { encodeMemory, memoryName } from '../../src/log/peer-memory.ts'
import { placementOver } from '../../src/placement/placement.ts'
import type { Put } from '../../src/ports/storage.ts'
import { EpochChecker } from '../../sim/checkers/epoch-checker.ts'
import { ensureAcceptor, PositionBook } from '../../sim/checkers/position-book.ts'
import { Referee } from '../../sim/checkers/referee.ts'

const nodes = ['n1', 'n2', 'n3'].map(nodeId)
const group = groupOfBytes(encodeTuple(['a group']))
const value = new Uint8Array([1])

function ballot(epoch: number): {
  readonly epoch: number
  readonly round: number
  readonly node: (typeof nodes)[number]
  readonly incarnation: number
} {
  return { epoch, round: 1, node: nodeId('n1'), incarnation: 1 }
}

class Bench {
  readonly referee = new Referee(() => 0)
  readonly book = new PositionBook(placementOver([nodes]))
  readonly checker = new EpochChecker({
    ...{ book: this.book, referee: this.referee },
    ...{ applied: () => 0, isTaking: () => false },
  })

  get rules(): readonly string[] {
    return this.referee.violations.map(({ rule }) => rule)
  }

  keep(own: Partial<OwnEpochs>): void {
    this.checker.onLogDurable('n1', [putOf(own)])
  }

  promise(epoch: number): void {
    this.checker.onVotes('n1', [], [{ kind: 'promise', group, position: 1, ballot: ballot(epoch) }])
  }

  accept(epoch: number, along: readonly Put[] = []): void {
    const record = { kind: 'accept', group, position: 1, ballot: ballot(epoch), value } as const
    this.checker.onVotes('n1', along, [record])
  }
}

function putOf(own: Partial<OwnEpochs>): Put {
  return { key: recordKey(memoryName), value: encodeMemory([], { ...firstEpochs, ...own }) }
}

test('MOVE-2: a vote in an epoch that its node has sealed is a find, and one of the same write is not', () => {
  const bench = new Bench()
  bench.keep({})
  bench.accept(1, [putOf({ epoch: 2 })])
  expect(bench.rules).toEqual([])
  bench.keep({ epoch: 2 })
  bench.accept(1)
  expect(bench.rules).toContain('MOVE-2')
})

test('MOVE-2: a vote of before the turn of the seal may be durable after it, and one of later may not', () => {
  const kept = (entered: number): readonly string[] => {
    const bench = new Bench()
    bench.keep({})
    bench.checker.onEntered('n1', entered)
    const vote = { group, position: 1, ballot: ballot(1) }
    bench.checker.onDecided('n1', { kind: 'promise', ...vote })
    bench.checker.onDecided('n1', { kind: 'accept', ...vote })
    bench.promise(1)
    bench.keep({ epoch: 2 })
    bench.accept(1)
    return bench.rules
  }
  expect(kept(1)).toEqual([])
  expect(kept(2)).toContain('MOVE-2')
})

test('MOVE-3: a vote before the gate is a find, and so is one of a store without a vote', () => {
  const bench = new Bench()
  bench.keep({ epoch: 2 })
  bench.accept(2, [putOf({ epoch: 2, gated: 2 })])
  expect(bench.rules).toEqual([])
  bench.accept(2)
  expect(bench.rules).toEqual(['MOVE-3'])
  const newcomer = new Bench()
  newcomer.keep({ isMember: false, gated: 0 })
  newcomer.accept(1)
  expect(newcomer.rules).toEqual(['MOVE-3'])
})

test('MOVE-3: a gate without a value that an earlier epoch has chosen is a find', () => {
  const bench = new Bench()
  const view = bench.book.of(group, 1)
  view.chosen = { ballot: ballot(1), value }
  bench.keep({ epoch: 2 })
  ensureAcceptor(view, 'n1').accepted = { ballot: ballot(1), value }
  bench.keep({ epoch: 2, gated: 2 })
  expect(bench.rules).toEqual([])
  ensureAcceptor(view, 'n1').accepted = undefined
  bench.keep({ epoch: 3, gated: 2 })
  bench.keep({ epoch: 3, gated: 3 })
  expect(bench.rules).toEqual(['MOVE-3'])
})

test('MOVE-3: a late gate may lack a value where a voter has accepted in the new epoch', () => {
  const passed = (of: number): readonly string[] => {
    const bench = new Bench()
    const view = bench.book.of(group, 1)
    view.chosen = { ballot: ballot(1), value }
    ensureAcceptor(view, 'n2').accepted = { ballot: ballot(of), value }
    bench.keep({ epoch: 2 })
    bench.keep({ epoch: 2, gated: 2 })
    return bench.rules
  }
  expect(passed(2)).toEqual([])
  expect(passed(1)).toEqual(['MOVE-3'])
})

test('MOVE-3: a seal that counts, of a node that has not passed the gate of the epoch before, is a find', () => {
  const bench = new Bench()
  bench.keep({ epoch: 2, soundFor: 2, gated: 1 })
  bench.keep({ epoch: 3, soundFor: 0, gated: 1 })
  expect(bench.rules).toEqual([])
  bench.keep({ epoch: 3, soundFor: 3, gated: 1 })
  expect(bench.rules).toEqual(['MOVE-3'])
})

test('MOVE-2: a node that tells its seal before it is durable is a find', () => {
  const bench = new Bench()
  const page = { kind: 'seal-page', epoch: 2, through: 1, groups: [] } as const
  bench.keep({ epoch: 2, soundFor: 2 })
  bench.checker.onSent('n1', page)
  expect(bench.rules).toEqual([])
  bench.checker.onSent('n1', { ...page, epoch: 3 })
  expect(bench.rules).toEqual(['MOVE-2'])
})
