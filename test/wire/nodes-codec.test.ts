/** Lists of nodes with something that no cluster has: the decoder refuses each, and says why. */
import { expect, test } from 'vitest'
import { pack, type Packable } from '../../src/base/pack.ts'
import { decodeClientFrame } from '../../src/wire/client/client-codec.ts'

const a: Packable = ['a', 'http://a:1', false]

function many(count: number, make: (nth: number) => Packable): Packable[] {
  return Array.from({ length: count }, (_, nth) => make(nth))
}

test.each<readonly [string, readonly Packable[], string]>([
  ['a set that is text', ['a'], 'list of nodes is no list'],
  ['a list of two fields', [[0, 1]], 'list of nodes has another length'],
  ['a set below zero', [[-1, 1, [a]]], 'set is no number from 0'],
  ['a set beyond those that there may be', [[64, 1, [a]]], 'there is no set of this number'],
  ['epoch zero', [[0, 0, [a]]], 'epoch is no number from 1'],
  ['a set without nodes', [[0, 1, []]], 'a set has 1 to 15 nodes'],
  [
    'thousands of nodes',
    [[0, 1, many(5_000, (nth) => [`n${nth}`, 'http://a:1', false])]],
    'a set has 1 to 15 nodes',
  ],
  ['thousands of sets', many(5_000, (nth) => [nth, 1, [a]]), 'too many sets are listed'],
  [
    'a set twice',
    [
      [0, 1, [a]],
      [0, 2, [a]],
    ],
    'a set is listed twice',
  ],
  ['a node twice', [[0, 1, [a, a]]], 'a set lists a node twice'],
  ['a node of no id', [[0, 1, [['A!', 'http://a:1', false]]]], 'node is no node id'],
  ['an address that is a number', [[0, 1, [['a', 7, false]]]], 'address of a node is no text'],
  [
    'an address too long',
    [[0, 1, [['a', `http://${'a'.repeat(300)}`, false]]]],
    'address of a node is too long',
  ],
  ['a word that is text', [[0, 1, [['a', '', 'own']]]], 'own word is neither true nor false'],
])('%s is refused', (_, lists, reason) => {
  expect(decodeClientFrame(pack([1, 3, lists]))).toEqual({ ok: false, reason })
})

test('a build that knows no lists of nodes ends its link over one: so it is sent none', () => {
  expect(decodeClientFrame(pack([1, 4, []]))).toEqual({
    ...{ ok: false, reason: 'the frame is of no known kind' },
  })
})
