/** The row of the sets that came later: its bytes, and the sets that may be added to it. */
import { expect, test } from 'vitest'
import { pack } from '../../src/base/pack.ts'
import { nodeId } from '../../src/base/ids.ts'
import { setCountMax } from '../../src/base/limits.ts'
import {
  addSet,
  decodeLaterSets,
  encodeLaterSets,
  type LaterSetsRow,
} from '../../src/members/later-sets-row.ts'
import type { LaterSet } from '../../src/placement/placement.ts'

function set(name: string, ...ids: readonly string[]): LaterSet {
  const nodes = ids.map((id) => ({ node: nodeId(id), url: `http://${id}:4700` }))
  return { name, version: 2, nodes }
}

const third = set('third', 'g', 'h')
const row: LaterSetsRow = [third, set('fourth', 'i')]

test('a row comes back from its bytes', () => {
  for (const one of [[], [third], row]) expect(decodeLaterSets(encodeLaterSets(one))).toEqual(one)
})

test.each([
  ['another format', [2, ['third', 2, [['g', 'http://g:1']]]]],
  ['no name of a set', [1, ['Third!', 2, [['g', 'http://g:1']]]]],
  ['no version', [1, ['third', 0, [['g', 'http://g:1']]]]],
  ['no nodes', [1, ['third', 2, []]]],
  ['no name of a node', [1, ['third', 2, [['G', 'http://g:1']]]]],
  ['a long address', [1, ['third', 2, [['g', `http://${'g'.repeat(3_000)}`]]]]],
  ['a name twice', [1, ['third', 2, [['g', 'u']]], ['third', 2, [['h', 'u']]]]],
  ['a node twice', [1, ['third', 2, [['g', 'u']]], ['fourth', 2, [['g', 'u']]]]],
  ['a set that is none', [1, 'third']],
  ['no list', 'third'],
])('%s is no row', (_, value) => {
  expect(decodeLaterSets(pack(value))).toBe(undefined)
})

test('sets are added at the end, and one that is there stays', () => {
  expect(addSet([], third, 2)).toEqual([third])
  const added = addSet(row, set('fifth', 'j'), 2)
  expect(added.map(({ name }) => name)).toEqual(['third', 'fourth', 'fifth'])
  expect(addSet(row, { ...third, version: 3 }, 2)).toBe(row)
})

test.each([
  ['a name with other nodes', set('third', 'g'), 'There is a replica set third already'],
  ['the nodes in another order', set('third', 'h', 'g'), 'There is a replica set third already'],
  ['a node of another set', set('fifth', 'j', 'h'), 'h is a node of replica set third already'],
])('%s is refused', (_, added, said) => {
  expect(() => addSet(row, added, 2)).toThrow(said)
})

test('there are at most as many sets as a cluster may have', () => {
  expect(() => addSet(row, set('fifth', 'j'), setCountMax - 2)).toThrow('at most')
  expect(addSet(row, set('fifth', 'j'), setCountMax - 3)).toHaveLength(3)
})
