/** A node's table of groups as the node becomes a read-only member, and the messages of one at a voter. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type NodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { Leases } from '../../src/lease/leases.ts'
import { staticPlacement, type ReplicaSet } from '../../src/placement/placement.ts'
import { OwnShares } from '../../src/placement/shares.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { testReader } from '../../src/replica/driver-members.ts'
import { Replica } from '../../src/replica/replica.ts'
import type { Effect } from '../../src/replication/effect.ts'
import type { Standing } from '../../src/replication/log.ts'
import { emptyState } from '../../src/replication/state.ts'

const [own, ...others] = ['n1', 'n2', 'n3', 'n4'].map((name) => nodeId(name))
const group = groupOfBytes(Buffer.from('g'))

/** One node of four, whose part in the epoch the test sets. */
class Node {
  standing: Standing = 'voting'
  set: ReplicaSet
  readonly replica: Replica
  readonly #placement = staticPlacement([node(), ...others])

  constructor() {
    this.set = this.#placement.replicasOf(group)
    const [limits, trace, incarnation] = [defaultLimits, silentTrace, 1]
    const { nodes } = this.#placement
    this.replica = new Replica({
      ...{ node: node(), incarnation, limits, trace, placement: this.#placement },
      leases: new Leases({ node: node(), nodes, incarnation, limits, startedMs: 0 }),
      source: {
        load: () => ({
          ...{ state: emptyState(), records: new Map(), decisions: new Map(), isPart: false },
        }),
        isSettled: () => true,
      },
      epochs: {
        setOf: () => this.set,
        standingOf: () => this.standing,
        shares: new OwnShares(),
      },
      fetchPatienceMs: () => 0,
    })
  }

  read(read: number): readonly Effect[] {
    const may = { mayPropose: true, isAdmitted: true, isRestored: true }
    return this.replica.step(group, { kind: 'read', read }, { wall: 1, now: 1, stamp: 1, ...may })
  }
}

function node(): NodeId {
  if (own === undefined) throw new Error('no node')
  return own
}

function readBy(voters: readonly NodeId[], epoch: number, readers: readonly NodeId[]): ReplicaSet {
  const [firstFull] = voters
  if (firstFull === undefined) throw new Error('no voters')
  return { epoch, voters, firstFull, readers }
}

/** The epochs and the nodes of the questions that leave. */
function asked(effects: readonly Effect[]): readonly (readonly [NodeId, number])[] {
  return effects.flatMap((effect) =>
    effect.kind === 'send' && effect.message.kind === 'query'
      ? [[effect.to, effect.message.epoch] as const]
      : [],
  )
}

test('RDR-1: a group follows its node: it becomes a reader, goes over to a later epoch, and becomes a voter', () => {
  const at = new Node()
  at.read(1)
  at.standing = 'reading'
  at.set = readBy(others, 2, [node()])
  // Its read round began in the first epoch, and begins anew with the read.
  expect(asked(at.read(2))).toEqual(others.map((voter) => [voter, 2]))
  at.set = readBy(others, 3, [node()])
  expect(asked(at.read(3))).toEqual(others.map((voter) => [voter, 3]))
  at.standing = 'before-gate'
  at.set = readBy([node(), ...others], 4, [])
  expect(asked(at.read(4))).toEqual(others.map((voter) => [voter, 4]))
  at.standing = 'voting'
  at.read(5)
  expect(at.replica.leaderInMemory(group)).toBe(node())
})

test('RDR-1: a group that is opened at a reader reads, and one that its node leaves asks nothing', () => {
  const at = new Node()
  at.standing = 'reading'
  at.set = readBy(others, 2, [node()])
  expect(asked(at.read(1))).toEqual(others.map((voter) => [voter, 2]))
  at.standing = 'sealed'
  at.set = readBy(others, 3, [])
  expect(at.read(2).filter(({ kind }) => kind === 'send')).toEqual([])
})

test('MOVE-2: a node that is removed before its gate ends its read round, and asks nothing more', () => {
  const at = new Node()
  at.set = { ...at.set, epoch: 2 }
  at.standing = 'before-gate'
  expect(asked(at.read(1)).length).toBe(3)
  at.standing = 'sealed'
  at.set = readBy(others, 3, [])
  expect(at.read(2).filter(({ kind }) => kind === 'send')).toEqual([])
  at.set = readBy([node(), ...others], 4, [])
  at.standing = 'before-gate'
  expect(asked(at.read(3))).toEqual(others.map((voter) => [voter, 4]))
})

test('RDR-1: other readers in the same epoch end nothing at a voter', () => {
  const at = new Node()
  const voters = [node(), ...others]
  at.set = readBy(voters, 1, [])
  expect(asked(at.read(1)).length).toBe(3)
  at.set = readBy(voters, 1, [nodeId('n5')])
  // The round goes on: the second read waits for the next one.
  expect(asked(at.read(2))).toEqual([])
  at.set = readBy(others, 1, [])
  expect(() => at.read(3)).toThrow('MOVE-1')
})

test('MOVE-1: a node in doubt of its epoch asks the voters anew that peers have told it of', () => {
  const at = new Node()
  at.set = { ...at.set, epoch: 3 }
  at.standing = 'before-gate'
  expect(asked(at.read(1)).length).toBe(3)
  const [first, second] = others
  const told = [node(), ...(first && second ? [first, second] : [])]
  at.set = readBy(told, 3, [])
  expect(asked(at.read(2))).toEqual(told.slice(1).map((voter) => [voter, 3]))
})

test('RDR-1: a voter of the epoch is no reader of a group that its node opens', () => {
  const at = new Node()
  at.standing = 'reading'
  expect(() => at.read(1)).toThrow('RDR-1')
})

test('RDR-1: a node takes itself for a reader by its part, and another by the set', () => {
  const placement = staticPlacement([node(), ...others])
  let standing: Standing = 'voting'
  const epochs = {
    setOf: (set: ReplicaSet) => ({ ...set, readers: others.slice(0, 1) }),
    standingOf: () => standing,
  }
  const isReader = testReader({ placement, node: node() }, epochs)
  expect([node(), ...others].map(isReader)).toEqual([false, true, false, false])
  standing = 'reading'
  expect(isReader(node())).toBe(true)
})
