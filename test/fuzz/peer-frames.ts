/**
 * Frames of a node that has the peers' secret and talks nonsense: messages that no node asked for, of groups
 * that no node has, with numbers that cannot be, and frames with bytes turned over. It does not vote falsely:
 * accepted values and commits are left out, since Paxos bears silence and crashes, and no lies.
 */
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { unpackBallot } from '../../src/paxos/ballot.ts'
import type { Message } from '../../src/replication/message.ts'
import { encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import type { SeededRandom } from '../../sim/world/random.ts'

const counts = [0, 1, 2, 3, 1_000, 2 ** 31, 2 ** 40, 2 ** 53 - 2, 2 ** 53 - 1]

function messageOf(random: SeededRandom): Message {
  const count = (): number => random.pick(counts)
  const name = (): GroupId => groupOfBytes(random.bytes(random.int(1, 4)))
  const bytes = (): Uint8Array => random.bytes(random.int(0, 30))
  const node = (): ReturnType<typeof nodeId> =>
    nodeId(random.pick(['a', 'b', 'c', 'd', 'x'.repeat(32)]))
  const of = { group: name(), epoch: random.pick([0, 0, 0, 1, 7]) }
  const ballot = unpackBallot(count(), node(), count())
  const at = { ...of, position: count(), ballot }
  const asked = { incarnation: count(), sentAt: count(), sentWall: count() }
  const term = { incarnation: count(), number: count() }
  const messages: readonly (() => Message)[] = [
    () => ({
      kind: 'prepare',
      ...of,
      position: random.int(1, 3),
      ballot: { ...ballot, epoch: 1, round: random.int(0, 9) },
    }),
    () => ({ kind: 'promised', ...at }),
    () => ({ kind: 'promised', ...at, accepted: { ballot, value: bytes() } }),
    () => ({ kind: 'accepted', ...at, holders: [{ node: node(), incarnation: count() }] }),
    () => ({ kind: 'refused', ...at, promised: ballot }),
    () => ({ kind: 'faulty', ...at }),
    () => ({
      kind: 'fetch',
      ...of,
      from: count(),
      through: count(),
      isAwaited: random.chance(500_000),
    }),
    () => ({ kind: 'entries', ...of, from: count(), committed: count(), entries: [] }),
    () => ({ kind: 'query', ...of, read: count(), mayRegister: random.chance(500_000) }),
    () => ({ kind: 'highest', ...of, read: count(), position: count(), term }),
    () => ({ kind: 'invalidate', ...of, position: count() }),
    () => ({ kind: 'invalidated', ...of, position: count(), incarnation: count() }),
    () => ({ kind: 'revoke', ...of, position: count(), holder: node() }),
    () => ({ kind: 'revoked', ...of, position: count(), holder: node() }),
    () => ({ kind: 'release', ...of, attempt: count() }),
    () => ({
      ...{ kind: 'forward', ...of, request: count(), incarnation: count(), hops: count() },
      ...{ readPosition: count(), reads: [bytes()], ranges: [{ gte: bytes(), lt: bytes() }] },
      transaction: bytes(),
    }),
    () => ({ kind: 'forward-reply', ...of, request: count(), verdict: { kind: 'expired' } }),
    () => ({ kind: 'digest-request', after: count(), asked: count() }),
    () => ({
      ...{ kind: 'digest', after: count(), asked: count(), through: count() },
      ...{ isWhole: random.chance(500_000), groups: [[name(), count()]] },
    }),
    () => ({ kind: 'durable-mark', through: count() }),
    () => ({ kind: 'reach-request', asked: count() }),
    () => ({ kind: 'reach', asked: count(), epoch: count(), through: count() }),
    () => ({ kind: 'directory-request', asked: count(), through: count(), after: name() }),
    () => ({
      ...{ kind: 'directory', asked: count(), through: count(), after: name(), next: name() },
      groups: [[name(), count()]],
    }),
    () => ({
      ...{ kind: 'standing', epoch: random.pick([1, 2, 7]), gated: random.int(0, 2) },
      isRestored: random.chance(500_000),
    }),
    () => ({ kind: 'version', inForce: random.pick([1, 2, 9, 0]) }),
    () => ({ kind: 'seal-request', epoch: random.pick([2, 2, 7, 0]), after: name() }),
    () => ({
      ...{ kind: 'seal-page', epoch: random.pick([2, 2, 7, 0]), through: count() },
      ...{ after: name(), next: name() },
      groups: [{ group: name(), applied: count(), open: random.chance(500_000) ? [] : undefined }],
    }),
    () => ({ kind: 'clock', wall: count(), asked: count(), answers: count() }),
    () => ({ kind: 'renew', asked, grantor: count(), serial: count(), term }),
    () => ({ kind: 'renewed', asked, leaseMs: count(), term, serial: count(), revoked: [name()] }),
    () => ({ kind: 'hand-back', term }),
    () => ({ kind: 'slow', holder: node() }),
  ]
  return random.pick(messages)()
}

/** Whole, for the most part: a frame with a byte turned over mostly ends its link. */
export function drawPeerFrame(random: SeededRandom): Uint8Array {
  const messages = Array.from({ length: random.int(1, 10) }, () => messageOf(random))
  const bytes = Buffer.from(encodePeerFrame({ durableFlush: 0, messages }))
  if (random.chance(30_000)) return bytes.subarray(0, random.int(0, bytes.length))
  return bytes
}

/** Cut, or with other bytes in it. */
export function damagedPeerFrame(random: SeededRandom): Uint8Array {
  const bytes = Buffer.from(drawPeerFrame(random))
  for (let times = random.int(1, 4); times > 0 && bytes.length > 0; times--) {
    bytes[random.int(0, Math.min(2, bytes.length - 1))] = random.int(0, 255)
  }
  return bytes
}
