/** Peer frames as bytes: decoding gives frames back, and nothing but a frame gets through. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { entryBytesMax, frameBytesMax } from '../../src/base/limits.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import { epochMax, roundToldMax, type Ballot } from '../../src/paxos/ballot.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import type { Message, PeerFrame } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'

const far = fc.constantFrom(2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1)
const count = fc.oneof(fc.nat({ max: 300 }), fc.maxSafeNat(), far)
const positive = count.map((number) => Math.max(1, number))
const bytes = fc.uint8Array({ maxLength: 40 }).map((some) => Buffer.from(some))
const node = fc.stringMatching(/^[a-z0-9-]{1,32}$/).map(nodeId)
const group = fc.uint8Array({ minLength: 1, maxLength: 1024 }).map(groupOfBytes)
const epoch = fc.integer({ min: 1, max: epochMax })
const round = fc.integer({ min: 0, max: roundToldMax })
const ballot = fc.record({ epoch, round, node, incarnation: positive })
const ballotValue = fc.record({ ballot, value: bytes })
const chosen = fc.record({ position: positive, ballot, value: bytes })

const term = fc.record({ incarnation: positive, number: positive })
const asked = fc.record({ incarnation: positive, sentAt: count, sentWall: count })
const holders = fc.array(fc.record({ node, incarnation: positive }), { maxLength: 3 })

const verdict: fc.Arbitrary<Verdict> = fc.oneof(
  fc.record({
    kind: fc.constant('committed' as const),
    position: positive,
    timestamp: positive,
    attempt: count,
    sequences: fc.array(count, { maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('conflict' as const), position: count }),
  fc.record({
    ...{ kind: fc.constant('conflict' as const), position: count, key: bytes },
    by: fc.record({ session: fc.string({ maxLength: 9 }), sequence: count }),
  }),
  fc.record({ kind: fc.constantFrom('expired' as const, 'overloaded' as const) }),
)

const envelope = { group, epoch: positive }

const marks = fc.array(fc.tuple(group, count, fc.constantFrom(Buffer.of(), Buffer.alloc(16, 7))))
/** One arbitrary a kind: a kind without one does not compile. */
const messageByKind: {
  readonly [Kind in Message['kind']]: fc.Arbitrary<Message & { kind: Kind }>
} = {
  prepare: fc.record({
    ...{ kind: fc.constant('prepare'), ...envelope },
    ...{ position: positive, ballot },
  }),
  promised: fc.record(
    {
      ...{ kind: fc.constant('promised'), ...envelope },
      ...{ position: positive, ballot, accepted: ballotValue },
    },
    { requiredKeys: ['kind', 'group', 'epoch', 'position', 'ballot'] },
  ),
  accept: fc.record(
    {
      ...{ kind: fc.constant('accept'), ...envelope },
      ...{ position: positive, ballot, value: bytes, previous: ballot },
    },
    { requiredKeys: ['kind', 'group', 'epoch', 'position', 'ballot', 'value'] },
  ),
  accepted: fc.record({
    ...{ kind: fc.constant('accepted'), ...envelope },
    ...{ position: positive, ballot, holders },
  }),
  refused: fc.record({
    ...{ kind: fc.constant('refused'), ...envelope },
    ...{ position: positive, ballot, promised: ballot },
  }),
  faulty: fc.record({
    ...{ kind: fc.constant('faulty'), ...envelope },
    ...{ position: positive, ballot },
  }),
  committed: fc.record({
    ...{ kind: fc.constant('committed'), ...envelope },
    ...{ position: positive, ballot },
  }),
  fetch: fc.record({
    ...{ kind: fc.constant('fetch'), ...envelope },
    ...{ from: positive, through: count, isAwaited: fc.boolean() },
  }),
  entries: fc.record(
    {
      ...{ kind: fc.constant('entries'), ...envelope },
      ...{ from: positive, entries: fc.array(chosen, { maxLength: 3 }), committed: count },
      snapshot: positive,
    },
    { requiredKeys: ['kind', 'group', 'epoch', 'from', 'entries', 'committed'] },
  ),
  'snapshot-request': fc.record({
    ...{ kind: fc.constant('snapshot-request'), ...envelope },
    ...{ transfer: count, part: count, above: count },
  }),
  'snapshot-part': fc.record(
    {
      ...{ kind: fc.constant('snapshot-part'), ...envelope },
      ...{ transfer: count, part: count, position: positive, state: bytes, crc: count },
      rows: fc.array(
        fc.record({
          subspace: fc.integer({ min: 1, max: 2 }),
          key: bytes,
          stamp: count,
          payload: bytes,
        }),
        { maxLength: 3 },
      ),
    },
    { requiredKeys: ['kind', 'group', 'epoch', 'transfer', 'part', 'position', 'rows', 'state'] },
  ),
  'snapshot-refused': fc.record({
    ...{ kind: fc.constant('snapshot-refused'), ...envelope },
    transfer: count,
  }),
  query: fc.record({
    ...{ kind: fc.constant('query'), ...envelope },
    ...{ read: count, mayRegister: fc.boolean() },
  }),
  highest: fc.record(
    {
      ...{ kind: fc.constant('highest'), ...envelope },
      ...{ read: count, position: count, term },
    },
    { requiredKeys: ['kind', 'group', 'epoch', 'read', 'position'] },
  ),
  invalidate: fc.record({ kind: fc.constant('invalidate'), ...envelope, position: positive }),
  invalidated: fc.record({
    ...{ kind: fc.constant('invalidated'), ...envelope },
    ...{ position: positive, incarnation: positive },
  }),
  revoke: fc.record({
    ...{ kind: fc.constant('revoke'), ...envelope },
    ...{ position: positive, holder: node },
  }),
  revoked: fc.record({
    ...{ kind: fc.constant('revoked'), ...envelope },
    ...{ position: positive, holder: node },
  }),
  release: fc.record({ kind: fc.constant('release'), ...envelope, attempt: count }),
  forward: fc.record({
    ...{ kind: fc.constant('forward'), ...envelope },
    ...{ readPosition: count, reads: fc.array(bytes, { maxLength: 3 }), transaction: bytes },
    ranges: fc.array(fc.record({ gte: bytes, lt: bytes }), { maxLength: 3 }),
    ...{ request: count, incarnation: fc.integer({ min: 1, max: 2 ** 40 }), hops: count },
  }),
  'forward-reply': fc.record({
    ...{ kind: fc.constant('forward-reply'), ...envelope },
    ...{ request: count, verdict },
  }),
  'digest-request': fc.record({
    ...{ kind: fc.constant('digest-request'), after: count, asked: count },
  }),
  digest: fc.record({
    ...{ kind: fc.constant('digest'), after: count, asked: count, through: count },
    isWhole: fc.boolean(),
    groups: fc.array(fc.tuple(group, positive), { maxLength: 4 }),
  }),
  'durable-mark': fc.record({ kind: fc.constant('durable-mark'), through: count }),
  'directory-request': fc.record(
    { kind: fc.constant('directory-request'), asked: count, through: count, after: group },
    { requiredKeys: ['kind', 'asked', 'through'] },
  ),
  directory: fc.record(
    {
      ...{
        kind: fc.constant('directory'),
        asked: count,
        through: count,
        after: group,
        next: group,
      },
      groups: fc.array(fc.tuple(group, positive), { maxLength: 4 }),
    },
    { requiredKeys: ['kind', 'asked', 'through', 'groups'] },
  ),
  'sums-request': fc.record({ kind: fc.constant('sums-request'), asked: count }),
  sums: fc.record({ kind: fc.constant('sums'), asked: count, sums: bytes }),
  'marks-request': fc.record({ kind: fc.constant('marks-request'), asked: count, marks }),
  marks: fc.record({ kind: fc.constant('marks'), asked: count, marks }),
  renew: fc.record(
    {
      ...{ kind: fc.constant('renew'), asked },
      ...{ grantor: count, serial: count, term },
    },
    { requiredKeys: ['kind', 'asked', 'grantor', 'serial'] },
  ),
  renewed: fc.record({
    ...{ kind: fc.constant('renewed'), asked, leaseMs: count },
    ...{ term, serial: count },
    revoked: fc.array(group, { maxLength: 3 }),
  }),
  'hand-back': fc.record({ kind: fc.constant('hand-back'), term }),
  slow: fc.record({ kind: fc.constant('slow'), holder: node }),
  clock: fc.record({ kind: fc.constant('clock'), wall: count, asked: count, answers: count }),
}

const message: fc.Arbitrary<Message> = fc.oneof(...Object.values(messageByKind))
const frame: fc.Arbitrary<PeerFrame> = fc.record({
  durableFlush: count,
  messages: fc.array(message, { maxLength: 5 }),
})

/** 7 bits a byte, the lowest first; no bound. */
function varOf(number: number | bigint): Buffer {
  const [rest, low] = [BigInt(number) / 128n, Number(BigInt(number) % 128n)]
  return rest === 0n ? Buffer.of(low) : Buffer.concat([Buffer.of(low + 128), varOf(rest)])
}

/**
 * A frame by hand: messages as they are packed, or bytes that stand for one; `tail`: the bytes behind them.
 */
function framed(
  parts: readonly (Packable[] | Buffer)[],
  { flush = 7, count = parts.length, tail = Buffer.of() } = {},
): Buffer {
  const head = Buffer.concat([Buffer.of(2), varOf(flush), varOf(count)])
  const bodies = parts.map((part) => {
    if (part instanceof Uint8Array) return part
    const packed = pack(part)
    return Buffer.concat([Buffer.of(0), varOf(packed.length), packed])
  })
  return Buffer.concat([head, ...bodies, tail])
}

/** The reason of a refusal; fails when the bytes were taken for a frame. */
function reasonOf(input: Uint8Array): string {
  const decoded = decodePeerFrame(input)
  if (decoded.ok) throw new Error(`taken for a frame: ${JSON.stringify(decoded.frame)}`)
  return decoded.reason
}

function checkRoundTrip(one: PeerFrame): void {
  expect(decodePeerFrame(encodePeerFrame(one))).toEqual({ ok: true, frame: one })
}

test.each(Object.entries(messageByKind))('%s comes back as it was sent', (kind, arbitrary) => {
  fc.assert(
    fc.property(
      count,
      fc.array<Message>(arbitrary, { minLength: 1, maxLength: 3 }),
      (flush, all) => {
        expect(new Set(all.map((one) => one.kind))).toEqual(new Set([kind]))
        checkRoundTrip({ durableFlush: flush, messages: all })
      },
    ),
    { numRuns: 100 },
  )
})

test('a frame of messages of all kinds comes back in its order, and an empty one is a heartbeat', () => {
  fc.assert(fc.property(frame, checkRoundTrip), { numRuns: 300 })
  checkRoundTrip({ durableFlush: 0, messages: [] })
})

const oneBallot: Ballot = { epoch: 1, round: 1, node: nodeId('a'), incarnation: 1 }
const about = { group: groupOfBytes(Buffer.from('g')), epoch: 1, position: 1, ballot: oneBallot }

test('accepted with an empty list of lease holders reads as with none', () => {
  const accepted: Message = { kind: 'accepted', ...about, holders: [] }
  const one = { durableFlush: 7, messages: [accepted] }
  const packed = framed([[4, 'g', 1, 1, [1, 'a', 1], []]])
  expect(decodePeerFrame(packed)).toEqual({ ok: true, frame: one })
})

test('a value of the largest size passes, one byte more is refused', () => {
  const of = (length: number): Uint8Array => {
    const accept: Message = { kind: 'accept', ...about, value: Buffer.alloc(length, 1) }
    return encodePeerFrame({ durableFlush: 7, messages: [accept] })
  }
  expect(decodePeerFrame(of(entryBytesMax)).ok).toBe(true)
  expect(reasonOf(of(entryBytesMax + 1))).toBe('value is too long')
})

test('a frame above its bound is refused unread', () => {
  expect(reasonOf(Buffer.alloc(frameBytesMax + 1))).toBe('the frame is too long')
})

/** A whole encoding with one bit turned, its end cut off, or bytes after its end. */
const damaged = frame.map(encodePeerFrame).chain((good) =>
  fc.oneof(
    fc.nat({ max: good.length * 8 - 1 }).map((bit) => {
      const bad = Buffer.from(good)
      bad[bit >> 3] = (bad[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      return bad
    }),
    fc.nat({ max: good.length - 1 }).map((length) => good.subarray(0, length)),
    bytes.map((tail) => Buffer.concat([good, tail])),
  ),
)

const packable: fc.Arbitrary<Packable> = fc.letrec<{ value: Packable }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, -1, 0, 1, 1.5, Number.NaN, 2 ** 60),
    fc.string({ maxLength: 5 }),
    fc.uint8Array({ maxLength: 10 }),
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(fc.string({ maxLength: 3 }), tie('value'), { maxKeys: 2 }),
  ),
})).value
/** Close to a frame: only the messages are anything at all. */
const almost = fc
  .array(fc.tuple(fc.nat({ max: 26 }), fc.array(packable, { maxLength: 7 })), { maxLength: 3 })
  .map((messages) => framed(messages.map(([kind, fields]) => [kind, ...fields])))
const garbage = fc.oneof(bytes, packable.map(pack), almost)

test('damage and garbage give a reason, or a frame that is whole and can be sent on', () => {
  let refused = 0
  fc.assert(
    fc.property(fc.oneof(damaged, garbage), (input) => {
      const decoded = decodePeerFrame(input)
      if (decoded.ok) return checkRoundTrip(decoded.frame)
      refused += 1
      expect(decoded.reason).toMatch(/^[a-z -]+( \d+)?$/)
    }),
    { numRuns: 3000 },
  )
  expect(refused).toBeGreaterThan(500)
})

test('a cut frame is never taken for a shorter one', () => {
  fc.assert(
    fc.property(
      frame,
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (one, share) => {
        const whole = encodePeerFrame(one)
        reasonOf(whole.subarray(0, Math.floor(whole.length * share)))
      },
    ),
    { numRuns: 300 },
  )
})

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
