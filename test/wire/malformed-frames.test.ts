/** Peer frames with one field that is not what it should be: the decoder refuses each, and says which field it is. */
import { expect, test } from 'vitest'
import { entryBytesMax } from '../../src/base/limits.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import { epochMax } from '../../src/paxos/ballot.ts'
import { framed, reasonOf } from './framed.ts'

const ballotOf = (round: Packable, name: Packable = 'a', incarnation: Packable = 1): Packable => [
  ...[round, name, incarnation],
]

const acceptedWith = (holders: Packable): Packable[] => [4, 'g', 1, 1, ballotOf(1), holders]

/** A message about leases with one field that is not what it should be. */
const wrongLeaseFields: readonly (readonly [string, readonly Packable[], string])[] = [
  ['holders that are a node', acceptedWith('a'), 'holders is no list'],
  ['a holder that is a node alone', acceptedWith(['a']), 'holder is no list'],
  ['a holder of three fields', acceptedWith([['a', 1, 1]]), 'holder has another length'],
  ['a holder of no node', acceptedWith([['A!', 1]]), 'node is no node id'],
  ['a holder of incarnation zero', acceptedWith([['a', 0]]), 'incarnation is no number from 1'],
  [
    'accepted without the field of holders',
    [4, 'g', 1, 1, ballotOf(1)],
    'message of kind accepted has another length',
  ],
  ['a query that says 1', [10, 'g', 1, 1, 1], 'may register is neither true nor false'],
  ['a query that says nothing', [10, 'g', 1, 1, null], 'may register is neither true nor false'],
  ['highest with half a term', [11, 'g', 1, 1, 1, [1]], 'term has another length'],
  ['highest with a number as term', [11, 'g', 1, 1, 1, 1], 'term is no list'],
  ['an invalidation at zero', [16, 'g', 1, 0], 'position is no number from 1'],
  ['invalidated at zero', [17, 'g', 1, 0, 1], 'position is no number from 1'],
  ['invalidated by incarnation zero', [17, 'g', 1, 1, 0], 'incarnation is no number from 1'],
  ['a revocation at zero', [18, 'g', 1, 0, 'a'], 'position is no number from 1'],
  ['a revocation of no node', [18, 'g', 1, 1, 'A!'], 'node is no node id'],
  ['revoked at zero', [19, 'g', 1, 0, 'a'], 'position is no number from 1'],
  ['revoked of no node', [19, 'g', 1, 1, null], 'node is no node id'],
  ['a release of a negative attempt', [20, 'g', 1, -1], 'attempt is no number from 0'],
  ['a release of no group', [20, '', 1, 1], 'group is no group id'],
  ['a renewal of incarnation zero', [21, [0, 1, 1], 0, 0, null], 'incarnation is no number from 1'],
  ['a renewal sent before time', [21, [1, -1, 1], 0, 0, null], 'sent at is no number from 0'],
  ['a renewal with half a wall', [21, [1, 1, 0.5], 0, 0, null], 'sent wall is no number from 0'],
  ['a renewal without a wall', [21, [1, 1], 0, 0, null], 'asked has another length'],
  ['a renewal of a negative grantor', [21, [1, 1, 1], -1, 0, null], 'grantor is no number from 0'],
  ['a renewal of a negative serial', [21, [1, 1, 1], 0, -1, null], 'serial is no number from 0'],
  [
    'a renewal without the field of the term',
    [21, [1, 1, 1], 0, 0],
    'message of kind renew has another length',
  ],
  ['a renewal of a term of none', [21, [1, 1, 1], 0, 0, [0, 1]], 'incarnation is no number from 1'],
  ['renewed and never asked', [22, null, 9, [1, 1], 0, []], 'asked is no list'],
  [
    'renewed for less than no time',
    [22, [1, 1, 1], -9, [1, 1], 0, []],
    'lease is no number from 0',
  ],
  ['renewed without a term', [22, [1, 1, 1], 9, null, 0, []], 'term is no list'],
  [
    'renewed at a fractional serial',
    [22, [1, 1, 1], 9, [1, 1], 0.5, []],
    'serial is no number from 0',
  ],
  ['renewed with nothing revoked', [22, [1, 1, 1], 9, [1, 1], 0, null], 'revoked is no list'],
  [
    'renewed with a revoked number',
    [22, [1, 1, 1], 9, [1, 1], 0, ['g', 1]],
    'group is no group id',
  ],
  ['a term handed back that is zero', [23, [1, 0]], 'term is no number from 1'],
  ['no term handed back', [23, null], 'term is no list'],
  ['a slow holder of no node', [24, ''], 'node is no node id'],
  ['a kind beyond the last', [25, 'a'], 'message is of no known kind'],
]

/** A message about a change of the voters with one field that is not what it should be. */
const sealed = (open: Packable, applied: Packable = 4): Packable[] => [
  ...[39, 2, 0, null, null],
  [['g', applied, open]],
]
const wrongEpochFields: readonly (readonly [string, readonly Packable[], string])[] = [
  ['a standing in epoch zero', [37, 0, 0, true], 'epoch is no number from 1'],
  ['a standing in an epoch too high', [37, epochMax + 1, 0, true], 'epoch is too high'],
  ['a gate below zero', [37, 1, -1, true], 'gated is no number from 0'],
  ['a gate of a later epoch', [37, 1, 2, true], 'gated is above the epoch'],
  ['a standing that says 1', [37, 1, 1, 1], 'is restored is neither true nor false'],
  ['a standing of two fields', [37, 1, 1], 'message of kind standing has another length'],
  ['a request for a seal of epoch zero', [38, 1, null], 'epoch is no number from 2'],
  ['a request in an epoch too high', [38, epochMax + 1, null], 'epoch is too high'],
  ['a request behind an empty group', [38, 2, ''], 'group is no group id'],
  ['a request without a group', [38, 2], 'message of kind seal-request has another length'],
  ['a seal of epoch zero', [39, 1, 0, null, null, []], 'epoch is no number from 2'],
  ['a seal of an epoch too high', [39, epochMax + 1, 0, null, null, []], 'epoch is too high'],
  ['a seal through half a flush', [39, 2, 0.5, null, null, []], 'through is no number from 0'],
  ['a page behind a number', [39, 2, 0, 1, null, []], 'group is no group id'],
  ['a page before a number', [39, 2, 0, null, 1, []], 'group is no group id'],
  ['a page of no groups', [39, 2, 0, null, null, null], 'groups is no list'],
  ['a page of a name', [39, 2, 0, null, null, ['g']], 'sealed group is no list'],
  [
    'a sealed group without acceptances',
    [39, 2, 0, null, null, [['g', 1]]],
    'sealed group has another length',
  ],
  [
    'a sealed group without a name',
    [39, 2, 0, null, null, [[null, 1, []]]],
    'group is no group id',
  ],
  ['a sealed group applied below zero', sealed([], -1), 'applied is no number from 0'],
  ['acceptances that are a flag', sealed(true), 'open is no list'],
  ['an acceptance of a position', sealed([5]), 'open acceptance is no list'],
  [
    'an acceptance without a value',
    sealed([[5, ballotOf(1)]]),
    'open acceptance has another length',
  ],
  [
    'an acceptance at zero',
    sealed([[0, ballotOf(1), Buffer.of()]]),
    'position is no number from 1',
  ],
  [
    'an acceptance where the voter has applied',
    sealed([[4, ballotOf(1), Buffer.of()]]),
    'position is not above applied',
  ],
  ['an acceptance at no ballot', sealed([[5, null, Buffer.of()]]), 'ballot is no list'],
  [
    'an acceptance of the epoch that the seal opens',
    sealed([[5, ballotOf(2 ** 32), Buffer.of()]]),
    'ballot is not of an earlier epoch',
  ],
  ['an acceptance of a text', sealed([[5, ballotOf(1), 'v']]), 'value is not bytes'],
  [
    'an acceptance of a value too long',
    sealed([[5, ballotOf(1), Buffer.alloc(entryBytesMax + 1)]]),
    'value is too long',
  ],
]

const unknownKind = 'message is of no known kind'

/** A message with one field that is not what it should be. */
const wrongFields: readonly (readonly [string, readonly Packable[], string])[] = [
  ['an unknown kind', [99], 'message is of no known kind'],
  ['kind zero', [0, 'g', 1, 1, ballotOf(1)], 'message is of no known kind'],
  [
    'one field too many',
    [1, 'g', 1, 1, ballotOf(1), 1],
    'message of kind prepare has another length',
  ],
  ['one field too few', [1, 'g', 1, 1], 'message of kind prepare has another length'],
  ['a verdict with more', [13, 'g', 1, 1, [2, 1]], 'verdict has another length'],
  ['a verdict with less', [13, 'g', 1, 1, [0, 1]], 'verdict has another length'],
  ['no kind', [], 'kind is no number from 0'],
  ['a kind that is text', ['prepare'], 'kind is no number from 0'],
  ['an empty group', [1, '', 1, 1, ballotOf(1)], 'group is no group id'],
  ['a group beyond latin1', [1, '\u{1f600}', 1, 1, ballotOf(1)], 'group is no group id'],
  ['a group too long', [1, 'x'.repeat(1025), 1, 1, ballotOf(1)], 'group is no group id'],
  ['epoch zero', [1, 'g', 0, 1, ballotOf(1)], 'epoch is no number from 1'],
  ['position zero', [1, 'g', 1, 0, ballotOf(1)], 'position is no number from 1'],
  ['a negative position', [1, 'g', 1, -5, ballotOf(1)], 'position is no number from 1'],
  ['a fractional position', [1, 'g', 1, 1.5, ballotOf(1)], 'position is no number from 1'],
  ['a position above 2^53', [1, 'g', 1, 2 ** 60, ballotOf(1)], 'position is no number from 1'],
  ['a round below zero', [1, 'g', 1, 1, ballotOf(-1)], 'round is no number from 0'],
  ['a ballot of no node', [1, 'g', 1, 1, ballotOf(1, 'A!')], 'node is no node id'],
  ['incarnation zero', [1, 'g', 1, 1, ballotOf(1, 'a', 0)], 'incarnation is no number from 1'],
  ['a ballot of two fields', [1, 'g', 1, 1, [1, 'a']], 'ballot has another length'],
  ['an accept that is packed', [3, 'g', 1, 1, ballotOf(1), Buffer.of(), null], unknownKind],
  ['a notice that is packed', [7, 'g', 1, 1, ballotOf(1)], unknownKind],
  [
    'accepted without a value',
    [2, 'g', 1, 1, ballotOf(1), [ballotOf(1)]],
    'accepted has another length',
  ],
  ['an unknown verdict', [13, 'g', 1, 1, [9]], 'verdict is of no known kind'],
  [
    'a key too long',
    [12, 'g', 1, 0, [Buffer.alloc(1025)], [], Buffer.of(), 1, 1, 0],
    'key is too long',
  ],
  [
    'a range with one end',
    [12, 'g', 1, 0, [], [[Buffer.of()]], Buffer.of(), 1, 1, 0],
    'range has another length',
  ],
  [
    'an end of a range too long',
    [12, 'g', 1, 0, [], [[Buffer.of(), Buffer.alloc(1026)]], Buffer.of(), 1, 1, 0],
    'end of a range is too long',
  ],
  [
    'a forward of incarnation zero',
    [12, 'g', 1, 0, [], [], Buffer.of(), 1, 0, 0],
    'incarnation is no number from 1',
  ],
  ['no ranges', [12, 'g', 1, 0, [], null, Buffer.of(), 1, 1, 0], 'ranges is no list'],
  [
    'a conflict with a key and no writer',
    [13, 'g', 1, 1, [1, 1, Buffer.of(), null, null]],
    'session is no text',
  ],
  [
    'a conflict with a writer and no key',
    [13, 'g', 1, 1, [1, 1, null, 's', 1]],
    'key is not bytes',
  ],
  [
    'a conflict with a session too long',
    [13, 'g', 1, 1, [1, 1, Buffer.of(), 'x'.repeat(257), 1]],
    'session is too long',
  ],
  ...wrongLeaseFields,
  ...wrongEpochFields,
]

test.each(wrongFields)('%s is refused with its reason', (_, fields, reason) => {
  expect(reasonOf(framed([[...fields]]))).toBe(reason)
})

test('a frame of another format or shape is refused with its reason', () => {
  expect(reasonOf(pack([1, 7, []]))).toBe('the frame is of no known format')
  expect(reasonOf(Buffer.of(2))).toBe('a number is cut')
  expect(reasonOf(framed([], { flush: 2 ** 60 }))).toBe('a number is cut')
  expect(reasonOf(framed([], { count: 1 }))).toBe('the bytes are cut')
  expect(reasonOf(framed([]).subarray(0, -1))).toBe('a number is cut')
  expect(reasonOf(framed([], { tail: Buffer.of(1) }))).toBe('the frame goes on beyond its messages')
  expect(reasonOf(framed([Buffer.of(0, 9)]))).toBe('the bytes are cut')
  expect(reasonOf(Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n'))).toBe(
    'the frame is of no known format',
  )
  expect(reasonOf(Buffer.of())).toBe('the bytes are cut')
})
