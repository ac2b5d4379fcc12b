/** A set that comes later: the checks before it is added, and the looks by which a node learns of it. */
import { expect, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import { StoreError } from '../../src/base/errors.ts'
import { problem } from '../../src/base/problem.ts'
import type { Relay } from '../../src/client/relay.ts'
import type { LaterSetsPort } from '../../src/members/later-set-requests.ts'
import { encodeLaterSets, type LaterSetsRow } from '../../src/members/later-sets-row.ts'
import { setGroupOf } from '../../src/members/set-group.ts'
import { addLaterSet, type AskedSet } from '../../src/node/adding-sets.ts'
import { LaterSets } from '../../src/node/later-sets.ts'
import { placementOver, type LaterSet, type Placement } from '../../src/placement/placement.ts'
import type { GroupAnswer, GroupOperation } from '../../src/txn/group-operation.ts'

function ids(names: string): readonly NodeId[] {
  return names.split(' ').map(nodeId)
}

function place(): Placement {
  const sites = [{ name: 'east' }, { name: 'west' }]
  return placementOver([ids('a b c'), ids('d e f')], [], sites)
}

function set(name: string, names: string): LaterSet {
  const nodes = ids(names).map((node) => ({ node, url: `http://${node}:1` }))
  return { name, nodes, version: 2 }
}

const third = set('third', 'g h')

class Adding {
  readonly placement: Placement
  readonly added: string[] = []
  readonly asked: string[] = []
  own = 0
  isAllowed = true
  answer: GroupAnswer = { kind: 'admit-group' }

  constructor(placement = place()) {
    this.placement = placement
  }

  add(asked: AskedSet): Promise<void> {
    const { placement, own } = this
    const sets: LaterSetsPort = {
      isAllowed: this.isAllowed,
      checkVersion: () => {
        if (!this.isAllowed) throw new StoreError('unavailable', 'finalize first')
      },
      add: async ({ name }) => void this.added.push(name),
    }
    const execute = async (operation: GroupOperation): Promise<GroupAnswer> => {
      this.asked.push(operation.kind === 'admit-group' ? `${operation.from} ${operation.kind}` : '')
      return this.answer
    }
    const relay = (): Pick<Relay, 'groups'> => ({ groups: { execute } })
    const nodes = (): readonly NodeId[] => [...placement.nodes, nodeId('joined')]
    return addLaterSet({ placement, own, sets, nodes, relay, look: async () => undefined }, asked)
  }
}

test('MOVE-16: a set is added once each other set has said that it knows of later ones', async () => {
  const adding = new Adding()
  await adding.add(third)
  expect([adding.asked, adding.added]).toEqual([['east admit-group'], ['third']])
})

test('a set that is there is added again without a question to the others', async () => {
  const adding = new Adding()
  adding.placement.takeLater([third])
  await adding.add(third)
  expect([adding.asked, adding.added]).toEqual([[], ['third']])
})

test.each([
  ['the name of a first set', set('west', 'g'), 'There is a replica set west already.'],
  ['a node of a first set', set('third', 'g e'), 'e is a node of this cluster already.'],
  ['a node that joined', set('third', 'joined'), 'joined is a node of this cluster already.'],
])('%s is refused', async (_, asked, said) => {
  const adding = new Adding()
  await expect(adding.add(asked)).rejects.toThrow(said)
  expect(adding.added).toEqual([])
})

test('a node of another set, an earlier version and one set alone are refused', async () => {
  const [other, early] = [new Adding(), new Adding()]
  other.own = 1
  early.isAllowed = false
  const alone = new Adding(placementOver([ids('a b c')]))
  await expect(other.add(third)).rejects.toThrow('A node of replica set east adds sets')
  await expect(early.add(third)).rejects.toThrow('finalize first')
  await expect(alone.add(third)).rejects.toThrow('began with one replica set')
  expect([other, early, alone].flatMap(({ added }) => added)).toEqual([])
})

test('a set without a majority keeps the others from adding one', async () => {
  const adding = new Adding()
  adding.answer = { kind: 'problem', problem: problem('unavailable', 'no majority of west') }
  await expect(adding.add(third)).rejects.toThrow('no majority of west')
  adding.answer = { kind: 'open-buckets' }
  await expect(adding.add(third)).rejects.toThrow(StoreError)
  expect(adding.added).toEqual([])
})

class Looking {
  readonly placement = place()
  readonly events: string[] = []
  isAllowed = true
  row: LaterSetsRow | undefined = []
  keeps: () => Promise<void> = async () => undefined

  look(): Promise<void> {
    const { placement, isAllowed } = this
    const sets = new LaterSets({
      ...{ placement, sets: { isAllowed } },
      clock: { setTimer: () => ({ cancel: () => undefined }) },
      execute: async (operation) => this.#answer(operation),
      keep: async (row) => {
        await this.keeps()
        this.events.push(`keeps ${row.length}`)
      },
      onSets: (row) => {
        this.events.push(`takes ${row.length}`)
        placement.takeLater(row)
      },
      onFailed: () => undefined,
    })
    return sets.look()
  }

  #answer(operation: GroupOperation): GroupAnswer {
    const isOfRow =
      operation.kind === 'read-group' && operation.group === setGroupOf(this.placement, 0)
    if (!isOfRow || this.row === undefined) {
      return { kind: 'problem', problem: problem('unavailable', 'no answer') }
    }
    const view = { position: 1, asOf: undefined }
    const rows = [{ key: new Uint8Array(), value: encodeLaterSets(this.row), timestamp: 1 }]
    return { kind: 'read-group', view, rows: this.row.length === 0 ? [undefined] : rows }
  }
}

test('MOVE-16: a node writes the sets down before it goes by them, each once', async () => {
  const looking = new Looking()
  const fourth = set('fourth', 'i')
  for (const row of [[], [third], [third], undefined, [third, fourth], [third]]) {
    looking.row = row
    await looking.look()
  }
  expect(looking.events).toEqual(['keeps 1', 'takes 1', 'keeps 2', 'takes 2'])
})

test('sets that cannot be written down are not taken, and come with a later look', async () => {
  const looking = new Looking()
  looking.row = [third]
  looking.keeps = () => Promise.reject(new StoreError('unavailable', 'the disk is full'))
  await expect(looking.look()).rejects.toThrow('the disk is full')
  expect([looking.events, looking.placement.setCount]).toEqual([[], 2])
  looking.keeps = async () => undefined
  await looking.look()
  expect(looking.placement.setCount).toBe(3)
})

test('under an earlier cluster version a node asks for no sets', async () => {
  const looking = new Looking()
  looking.row = [third]
  looking.isAllowed = false
  await looking.look()
  expect(looking.events).toEqual([])
})
