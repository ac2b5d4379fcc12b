/** The lists of nodes that a client keeps: which of two counts, and which addresses it would dial. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { KnownNodes } from '../../src/client/known-nodes.ts'
import type { SetList } from '../../src/wire/client/client-message.ts'

function list(epoch: number, names: string, set = 0): SetList {
  const nodes = names.split(' ').map((name) => ({ node: nodeId(name), url: `http://${name}:1` }))
  return { set, epoch, nodes }
}

function namesOf(known: KnownNodes): string {
  return known.lists.map(({ nodes }) => nodes.map(({ node }) => node).join(' ')).join(', ')
}

test('MAP-1: whichever order the lists come in, the one of the latest epoch stays', () => {
  const all = [list(1, 'a b c'), list(2, 'a b c d'), list(3, 'b c d'), list(1, 'x y', 1)]
  fc.assert(
    fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (told) => {
      const known = new KnownNodes([])
      for (const one of told) known.take('b', [one])
      expect(namesOf(known)).toBe('b c d, x y')
    }),
  )
})

test('MAP-1: of one epoch the first list stays, but an address that is its node’s own word counts', () => {
  const known = new KnownNodes([])
  const at = (url: string, isOwnWord?: true): SetList => ({
    ...{ set: 0, epoch: 1 },
    nodes: [{ node: nodeId('a'), url, ...(isOwnWord && { isOwnWord }) }],
  })
  const urlAfter = (told: SetList): string | undefined => {
    known.take('a', [told])
    return known.lists[0]?.nodes[0]?.url
  }
  expect(urlAfter(at('http://0.0.0.0:1'))).toBe('http://0.0.0.0:1')
  // The first one that can be dialled.
  expect(urlAfter(at('http://10.0.0.1:1'))).toBe('http://10.0.0.1:1')
  expect(urlAfter(at('http://10.0.0.2:1'))).toBe('http://10.0.0.1:1')
  expect(urlAfter(at('https://a.example', true))).toBe('https://a.example')
  expect(urlAfter(at('http://10.0.0.1:1'))).toBe('https://a.example')
})

test('a list that tells nothing new changes nothing, and one of another set may be passed over', () => {
  const known = new KnownNodes([], 1)
  expect(known.take('x', [list(1, 'x y', 1), list(9, 'a b')])).toBe(true)
  expect(known.take('x', [list(1, 'x y', 1), list(10, 'a c')])).toBe(false)
  expect(namesOf(known)).toBe('x y')
  expect(known.take('x', [])).toBe(false)
})

test('a node that told of its set is removed once the list of that set lacks it; a gateway never is', () => {
  const known = new KnownNodes([])
  known.take('a', [list(1, 'a b')])
  expect(['a', 'b', 'gateway'].map((one) => known.isRemoved(one))).toEqual([false, false, false])
  known.take('b', [list(2, 'b c')])
  expect(['a', 'b', 'gateway'].map((one) => known.isRemoved(one))).toEqual([true, false, false])
})

test('MAP-4: a node that no list has named is a read-only member, and is not taken for a removed one', () => {
  const known = new KnownNodes([])
  known.take('reader', [list(1, 'a b c')])
  expect(known.isRemoved('reader')).toBe(false)
  known.take('a', [list(2, 'a b')])
  expect(['c', 'reader'].map((one) => known.isRemoved(one))).toEqual([false, false])
  // Node c slept through its removal, and tells the list of its epoch.
  known.take('c', [list(1, 'a b c')])
  expect(['c', 'reader'].map((one) => known.isRemoved(one))).toEqual([true, false])
})

test('after a time without links the next list counts, whichever epoch it is of', () => {
  const known = new KnownNodes([])
  known.take('a', [list(7, 'a b')])
  expect(known.isEmpty).toBe(false)
  known.onAlone()
  expect([known.isEmpty, namesOf(known)]).toEqual([true, 'a b'])
  expect(known.take('n', [list(1, 'n m')])).toBe(true)
  expect(namesOf(known)).toBe('n m')
})

test.each([
  ['http://127.0.0.1:4700', true, false],
  ['https://node.example', true, true],
  ['https://[::1]:4700', true, true],
  ['http://0.0.0.0:4700', false, false],
  ['https://[::]:4700', false, false],
  ['https://node.example:0', false, false],
  ['https://node.example/', false, false],
  ['https://node.example/path', false, false],
  ['https://user:word@node.example', false, false],
  ['ws://node.example:4700', false, false],
  ['ftp://node.example', false, false],
  ['javascript:alert(1)', false, false],
  ['file:///etc/passwd', false, false],
  ['', false, false],
])(
  'MAP-2: of %j: dialled beside plain addresses %s, beside one over TLS %s',
  (url, plain, safe) => {
    expect(new KnownNodes(['http://127.0.0.1:1']).mayDial(url)).toBe(plain)
    expect(new KnownNodes(['http://127.0.0.1:1', 'https://a.example']).mayDial(url)).toBe(safe)
  },
)

test('addresses that are not dialled are counted, and their nodes stay members', () => {
  const known = new KnownNodes(['https://a:1'])
  known.take('a', [list(1, 'a b c')])
  expect([known.refused, known.isRemoved('a')]).toEqual([3, false])
  known.take('a', [list(1, 'a b c')])
  expect(known.refused).toBe(3)
})
