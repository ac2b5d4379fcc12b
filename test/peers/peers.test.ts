/** The memory that a node has of its peers over its starts. */
import { SetNodes } from '../../src/placement/set-nodes.ts'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { defaultLimits, frameBytesMax } from '../../src/base/limits.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { Transport } from '../../src/ports/transport.ts'
import { PeerMemory } from '../../src/log/peer-memory.ts'
import { Peers } from '../../src/peers/peers.ts'
import type { Digest, Message, PeerFrame } from '../../src/replication/message.ts'
import { encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import { whole } from '../log/whole.ts'

const [node, peer] = [nodeId('n1'), nodeId('n2')]
const stored = new Map<string, Uint8Array>()
/** Groups that the node's log has the first position of. */
const has = new Set<GroupId>()
/** One that other nodes hold. */

/** A start of the node, whose log is this one, and the flushes that it asks the peer's digest after. */
function start(
  storeId: string,
  durableFlush: number,
): {
  readonly peers: Peers
  readonly frames: readonly PeerFrame[]
  /** By digest, how far the peer's flushes were known after it. */
  readonly known: readonly number[]
  asked(): readonly number[]
} {
  const frames: PeerFrame[] = []
  const known: number[] = []
  const limits = { ...defaultLimits, digestGroupsMax: 4 }
  const transport: Transport<PeerFrame> = {
    start: () => undefined,
    send: (_, frame) => frames.push(frame) > 0,
    isUp: () => true,
    close: () => Promise.resolve(),
  }
  const memory = new PeerMemory([])
  const peers = new Peers({
    ...{ node, incarnation: 1, nodes: new SetNodes(node, [node, peer]), limits, storeId },
    ...{ clock: systemClock, trace: silentTrace, transport },
    log: { durableFlush, lastFlush: durableFlush, highest: (group) => (has.has(group) ? 1 : 0) },
    applied: { durableFlush: 1, lastFlush: 1, highest: (group) => (has.has(group) ? 1 : 0) },
    meta: {
      meta: (name) => stored.get(name),
      setMeta: (name, value) => void stored.set(name, value),
    },
    memory,
    remember: () => keep(memory),
    hearVoters: () => undefined,
    findNewcomer: () => undefined,
    lastSeat: () => 0,
    version: () => 1,
    knowsNodes: () => true,
    onJoined: () => undefined,
    onVoter: () => undefined,
    onSuspicion: () => undefined,
    onNamed: () => undefined,
    later: (_, { pieces }) => whole(pieces),
    onDigested: (_, { through }) => known.push(through),
  })
  peers.onLink(peer, 'up', { storeId: 'of n2', incarnation: 1, durableFlush: 12 })
  const asked = (): readonly number[] => {
    peers.flush()
    const sent = frames.flatMap(({ messages }) => messages)
    return sent.flatMap((one) => (one.kind === 'digest-request' ? [one.after] : []))
  }
  return { peers, frames, known, asked }
}

/** Its write is durable at once. */
function keep(memory: PeerMemory): void {
  if (memory.take() !== undefined) memory.onWritten()
}

test('LOG-9: a start asks for digests from where the last one knew everything, if it has the same log', () => {
  const first = start('a store', 5)
  expect(first.asked()).toEqual([0])
  first.peers.onDigest(peer, digest(0, 10, []))
  for (let turn = 0; turn < 2; turn++) first.peers.askDigests()
  first.peers.save()
  const second = start('a store', 5)
  expect(second.asked()).toEqual([10])
  // The mark is kept again, with what else is news of the peer.
  second.peers.onFrame(peer, { durableFlush: 13, messages: [] })
  second.peers.save()
  expect(start('another store', 5).asked()).toEqual([0])
  // A log that is shorter than it was has forgotten something, also once it is as long again.
  const shorter = start('a store', 4)
  expect(shorter.asked()).toEqual([0])
  shorter.peers.save()
  expect(start('a store', 5).asked()).toEqual([0])
})

function digest(after: number, through: number, groups: Digest['groups'], isWhole = true): Digest {
  return { kind: 'digest', after, through, isWhole, groups, asked: 1 }
}

/** Groups of this name, with a number each. */
function named(name: string, count: number): Digest['groups'] {
  return Array.from({ length: count }, (_, n) => [groupOfBytes(Buffer.from(`${name}${n}`)), 1])
}

test('LIVE-3: a node requests no more digests while it lacks as much as one digest names', () => {
  const { peers, asked } = start('a third store', 5)
  const tell = (after: number, groups: Digest['groups']): void =>
    peers.onDigest(peer, digest(after, after + 1, groups))
  expect(asked()).toEqual([0])
  tell(0, named('a', 3))
  expect(asked()).toEqual([0, 1])
  tell(1, named('b', 3))
  // Neither by itself, nor in time, nor for a client that lists groups.
  peers.askDigests()
  peers.beat()
  const question = peers.requestDigest(peer)
  expect(asked()).toEqual([0, 1])
  for (const [group] of named('a', 2)) has.add(group)
  peers.beat()
  expect(asked()).toEqual([0, 1])
  for (const [group] of named('b', 1)) has.add(group)
  peers.beat()
  expect(asked()).toEqual([0, 1, 2])
  expect(peers.requestDigest(peer)).toBeGreaterThan(question + 1)
  // The node asks it once.
  const before = asked().length
  peers.beat()
  expect(asked().length).toBe(before)
})

test('MOVE-3: a node on its way through a gate requests the next digest whatever it lacks', () => {
  const { peers, asked } = start('a sixth store', 5)
  peers.onDigest(peer, digest(0, 1, named('d', 9)))
  peers.requestDigest(peer)
  expect(asked()).toEqual([0])
  peers.requestDigest(peer, true)
  expect(asked()).toEqual([0, 1])
})

test('LOG-8, LOG-9: behind a flush that the peer could not read all is taken up, and nothing counts as known', () => {
  const { peers, known, asked } = start('a fifth store', 5)
  const groups = named('c', 1)
  for (const [group] of groups) has.add(group)
  peers.onDigest(peer, digest(0, 4, groups))
  peers.onDigest(peer, digest(4, 6, groups, false))
  peers.onDigest(peer, digest(6, 11, groups))
  expect(asked()).toEqual([0, 4, 6, 11])
  expect(known).toEqual([4, 4, 4])
  for (let turn = 0; turn < 4; turn++) peers.askDigests()
  peers.save()
  const again = start('a fifth store', 5)
  expect(again.asked()).toEqual([4])
  again.peers.onDigest(peer, digest(4, 6, groups))
  expect(again.known).toEqual([6])
})

const mebibyte = Buffer.alloc(1024 * 1024)
const ballot = { epoch: 1, round: 1, node: peer, incarnation: 1 }
const envelope = { group: groupOfBytes(Buffer.from('g')), epoch: 1 }
const longKeys = Array.from({ length: 512 }, () => mebibyte.subarray(0, 1024))

/** Of about a mebibyte each. */
const large: readonly Message[] = [
  {
    ...{ kind: 'entries', ...envelope, from: 1, committed: 1 },
    entries: [{ position: 1, ballot, value: mebibyte }],
  },
  {
    ...{ kind: 'promised', ...envelope, position: 1, ballot },
    accepted: { ballot, value: mebibyte },
  },
  { kind: 'accept', ...envelope, position: 1, ballot, value: mebibyte },
  {
    ...{ kind: 'forward', ...envelope, transaction: mebibyte, readPosition: 0, request: 1 },
    ...{ reads: [], ranges: [], incarnation: 1, hops: 1 },
  },
  {
    ...{ kind: 'forward', ...envelope, transaction: Buffer.alloc(1), readPosition: 0, request: 1 },
    reads: longKeys,
    ranges: longKeys.slice(256).map((key) => ({ gte: key, lt: key })),
    ...{ incarnation: 1, hops: 1 },
  },
  {
    ...{ kind: 'digest', after: 0, asked: 1, through: 1, isWhole: true },
    groups: longKeys.concat(longKeys).map((name) => [groupOfBytes(name), 1] as const),
  },
  {
    ...{ kind: 'seal-page', epoch: 2, through: 1 },
    groups: longKeys.slice(256).map((name) => ({
      ...{ group: groupOfBytes(name), applied: 0 },
      open: [{ position: 1, ballot, value: mebibyte.subarray(0, 3 * 1024) }],
    })),
  },
]

test.each(large.map((one) => [one.kind, one] as const))(
  'LIVE-3: what one turn has for a peer goes in frames that it takes, in order: %s',
  (_, message) => {
    const { peers, frames } = start('a store', 0)
    peers.flush()
    const before = frames.length
    const sent: Message[] = []
    for (let position = 1; position <= 20; position++) {
      const small = { kind: 'committed', ...envelope, position, ballot } as const
      for (const one of [message, small]) {
        peers.send(peer, one)
        sent.push(one)
      }
    }
    peers.flush()
    const made = frames.slice(before)
    for (const frame of made) expect(encodePeerFrame(frame).length).toBeLessThan(frameBytesMax)
    expect(made.flatMap(({ messages }) => messages)).toEqual(sent)
    // Nothing waits any more, and few frames were made of it.
    peers.flush()
    expect(frames.length - before).toBe(made.length)
    expect(made.length).toBeLessThan(5)
  },
)

const notice: Message = { kind: 'committed', ...envelope, position: 1, ballot }
const request: Message = { kind: 'prepare', ...envelope, position: 2, ballot }

test.each([
  ['after what the turn says to clients', [notice], ['answer', 'committed']],
  ['with what leaves for its peer before', [notice, request], ['committed prepare', 'answer']],
  ['in order behind what waits already', [request, notice], ['prepare committed', 'answer']],
] as const)('a notice leaves %s', async (_, messages, order) => {
  const { peers, frames } = start('a store', 0)
  // The message that the start has to send is on its way.
  await turns(1)
  const before = frames.length
  for (const message of messages) peers.send(peer, message)
  let sentBefore = 0
  systemClock.defer(() => (sentBefore = frames.length - before))
  await turns(3)
  const seen = frames.slice(before).map((frame) => frame.messages.map(({ kind }) => kind).join(' '))
  expect(seen.toSpliced(sentBefore, 0, 'answer')).toEqual(order)
})

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await new Promise<void>((resolve) => systemClock.defer(resolve))
  }
}
