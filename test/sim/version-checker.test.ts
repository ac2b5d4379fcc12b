/** The checker of cluster versions knows a build that gets what it does not know, and a version that goes back. */
import { expect, test } from 'vitest'
import { latin1 } from '../../src/base/bytes.ts'
import { bytesOfGroup, nodeId } from '../../src/base/ids.ts'
import { encodeTransaction } from '../../src/group/transaction.ts'
import { firstRow, raiseVersion, type SetRow } from '../../src/members/change.ts'
import { encodeRow } from '../../src/members/row-codec.ts'
import { setGroupOf, setRowKey } from '../../src/members/set-group.ts'
import { placementOver } from '../../src/placement/placement.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { VersionChecker } from '../../sim/checkers/version-checker.ts'

const placement = placementOver([['n1', 'n2', 'n3'].map(nodeId)])
const group = setGroupOf(placement, 0)
const ballot = { epoch: 1, round: 1, node: nodeId('n1'), incarnation: 1 }
const second = raiseVersion(firstRow, 2)

function entryOf(row: SetRow): Uint8Array {
  const transaction = encodeTransaction({
    ...{ sequence: 1, attempt: 1, floor: 1, expiresAt: 9, session: 's', allocations: [] },
    mutations: [{ key: setRowKey, value: encodeRow(row) }],
  })
  const nextLeader = { node: nodeId('n1'), incarnation: 1 }
  return encodeEntry({
    ...{ position: 1, timestamp: 1, horizon: 0, nextLeader, transactions: [transaction] },
  })
}

class Bench {
  readonly referee = new Referee(() => 0)
  readonly checker = new VersionChecker(this.referee, placement)

  constructor() {
    this.checker.actsAs = (node) => (node === 'n3' ? 1 : 2)
  }

  get rules(): readonly string[] {
    return this.referee.violations.map(({ rule }) => rule)
  }

  accept(node: string, row: SetRow): void {
    const value = entryOf(row)
    this.checker.onLogDurable(node, { kind: 'accept', group, position: 1, ballot, value })
  }

  apply(node: string, position: number, row: SetRow): void {
    this.checker.onApplied(node, latin1(bytesOfGroup(group)), position, entryOf(row))
  }
}

test('UPG-3: a message of a later version at an earlier build is a find', () => {
  const bench = new Bench()
  const standing = { kind: 'standing', epoch: 1, gated: 1, isRestored: true } as const
  bench.checker.onDelivered('n1', 'n3', standing)
  bench.checker.onDelivered('n1', 'n2', { kind: 'version', inForce: 2 })
  expect([bench.rules, bench.referee.judgements()]).toEqual([[], { 'UPG-3': 2 }])
  bench.checker.onDelivered('n1', 'n3', { kind: 'version', inForce: 2 })
  expect(bench.rules).toEqual(['UPG-3'])
})

test('UPG-3: a row of a later version in the log or the data of an earlier build is a find', () => {
  const stored = new Bench()
  stored.accept('n3', firstRow)
  stored.accept('n2', second)
  expect(stored.rules).toEqual([])
  stored.accept('n3', second)
  expect(stored.rules).toEqual(['UPG-3'])
  const applied = new Bench()
  applied.apply('n3', 1, firstRow)
  applied.apply('n2', 1, second)
  expect(applied.rules).toEqual([])
  applied.apply('n3', 2, second)
  expect(applied.rules).toEqual(['UPG-3'])
})

test('UPG-2: a version that goes back at a later position is a find, and entries that are applied anew are none', () => {
  const bench = new Bench()
  for (const position of [1, 2]) bench.apply('n1', position, position === 2 ? second : firstRow)
  bench.apply('n1', 1, firstRow)
  bench.apply('n1', 2, second)
  expect(bench.rules).toEqual([])
  bench.apply('n1', 3, firstRow)
  expect(bench.rules).toEqual(['UPG-2'])
})
