/** Peer frames as bytes: decoding gives frames back, and nothing but a frame gets through. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { entryBytesMax, frameBytesMax } from '../../src/base/limits.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import { epochMax, roundToldMax, type Ballot } from '../../src/paxos/ballot.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import type { Message, PeerFrame, SealedGroup } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import { framed, reasonOf } from './framed.ts'

const far = fc.constantFrom(2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1)
const count = fc.oneof(fc.nat({ max: 300 }), fc.maxSafeNat(), far)
const positive = count.map((number) => Math.max(1, number))
const bytes = fc.uint8Array({ maxLength: 40 }).map((some) => Buffer.from(some))
const node = fc.stringMatching(/^[a-z0-9-]{1,32}$/).map(nodeId)
const group = fc.uint8Array({ minLength: 1, maxLength: 1024 }).map(groupOfBytes)
const epoch = fc.integer({ min: 1, max: epochMax })
const round = fc.integer({ min: 0, max: roundToldMax })
const ballotFields = { epoch, round, node, incarnation: positive }
const ballot = fc.record(ballotFields)
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

const sealedEpoch = fc.integer({ min: 2, max: epochMax })

/** A seal tells of a group: how far it is applied, and an acceptance of an earlier epoch at a later position. */
function sealedBefore(epoch: number): fc.Arbitrary<SealedGroup> {
  const older = fc.record({ ...ballotFields, epoch: fc.integer({ min: 1, max: epoch - 1 }) })
  const position = fc.oneof(
    fc.constantFrom(301, Number.MAX_SAFE_INTEGER),
    fc.nat().map((more) => 301 + more),
  )
  const open = fc.array(fc.record({ position, ballot: older, value: bytes }), { maxLength: 3 })
  return fc.record({
    ...{ group, applied: fc.nat({ max: 300 }) },
    open: fc.option(open, { nil: undefined }),
  })
}

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
  'reach-request': fc.record({ kind: fc.constant('reach-request'), asked: count }),
  reach: fc.record({ kind: fc.constant('reach'), asked: count, epoch: count, through: count }),
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
  standing: fc
    .record({ kind: fc.constant('standing' as const), epoch, isRestored: fc.boolean() })
    .chain((one) => fc.nat({ max: one.epoch }).map((gated) => ({ ...one, gated }))),
  'seal-request': fc.record(
    { kind: fc.constant('seal-request'), epoch: sealedEpoch, after: group },
    { requiredKeys: ['kind', 'epoch'] },
  ),
  version: fc.record({
    kind: fc.constant('version'),
    inForce: fc.integer({ min: 1, max: 1_000_000 }),
  }),
  'seal-page': sealedEpoch.chain((ending) =>
    fc.record(
      {
        ...{ kind: fc.constant('seal-page'), epoch: fc.constant(ending) },
        ...{ through: count, after: group, next: group },
        groups: fc.array(sealedBefore(ending), { maxLength: 3 }),
      },
      { requiredKeys: ['kind', 'epoch', 'through', 'groups'] },
    ),
  ),
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
  .array(fc.tuple(fc.nat({ max: 40 }), fc.array(packable, { maxLength: 7 })), { maxLength: 3 })
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
