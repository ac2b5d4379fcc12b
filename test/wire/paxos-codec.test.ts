/** Messages written by hand: decoding gives them back, and each wrong number has its reason. */
import { expect, test } from 'vitest'
import { transactionBytesMax } from '../../src/base/limits.ts'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import type { Message, PeerFrame } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'
import { CoreCluster } from '../replication/core-cluster.ts'

const oneBallot: Ballot = { epoch: 1, round: 1, node: nodeId('a'), incarnation: 1 }
const about = { group: groupOfBytes(Buffer.from('g')), epoch: 1, position: 1, ballot: oneBallot }
/** Format, the flush, how many messages. */
const headBytes = 1 + 1 + 1
/** 2^56, by 7 bits a byte. */
const tooMuch = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]
const unknownKind = 'message is of no known kind'

function reasonOf(input: Uint8Array): string {
  const decoded = decodePeerFrame(input)
  if (decoded.ok) throw new Error(`taken for a frame: ${JSON.stringify(decoded.frame)}`)
  return decoded.reason
}

function checkRoundTrip(one: PeerFrame): void {
  expect(decodePeerFrame(encodePeerFrame(one))).toEqual({ ok: true, frame: one })
}

test('a frame of the messages of a commit names each ballot once', () => {
  const frameOf = (count: number): Uint8Array => {
    const accepted: Message = { kind: 'accepted', ...about, holders: [] }
    return encodePeerFrame({
      durableFlush: 7,
      messages: Array.from({ length: count }, () => accepted),
    })
  }
  const [one, two, three] = [frameOf(1).length, frameOf(2).length, frameOf(3).length]
  expect(three - two).toBe(two - one)
  // The head, and one ballot of four bytes.
  expect(one - (two - one)).toBe(headBytes + 4)
})

test('many ballots of one frame all come back', () => {
  const messages = Array.from({ length: 100 }, (_, i): Message => {
    const ballot = { ...oneBallot, round: i % 40 }
    const previous = { ...oneBallot, incarnation: 1 + (i % 25) }
    return { kind: 'accept', ...about, ballot, value: Buffer.from(`${i}`), previous }
  })
  checkRoundTrip({ durableFlush: 1, messages })
})

test('the largest transactions that wait together make a well-formed proposal', () => {
  const cluster = new CoreCluster()
  const leader = cluster.at(0)
  leader.isHeld = true
  cluster.submit(0, { key: 'before' })
  // The rest of such a transaction takes this much.
  const value = 'v'.repeat(transactionBytesMax - 24)
  const requests = ['k1', 'k2'].map((key) => cluster.submit(0, { key, value }))
  leader.isHeld = false
  leader.flush()
  cluster.settle(({ message }) => {
    if (message.kind !== 'accept') return true
    return decodePeerFrame(encodePeerFrame({ durableFlush: 1, messages: [message] })).ok
  })
  for (const request of requests)
    expect(leader.verdicts.get(request)).toMatchObject({ kind: 'committed' })
})

function write(bytes: Buffer, at: number, size: number, number: bigint): void {
  for (let i = 0; i < size; i++) {
    bytes[at + i] = Number((number >> BigInt(8 * (size - 1 - i))) & 0xffn)
  }
}

/** A message of a commit with one field that is not what it should be: [its place, what stands there]. */
const wrongNumbers: readonly (readonly [string, number, readonly number[], string])[] = [
  ['an unknown kind', 0, [9], unknownKind],
  ['an empty group', 1, [0], 'group is no group id'],
  ['a group beyond the message', 1, [9], 'the bytes are cut'],
  ['epoch zero', 2, [0], 'epoch is no number from 1'],
  ['an epoch above 2^53', 2, tooMuch, 'a number is cut'],
  ['a number written longer than it is', 2, [0x81, 0], 'a number is cut'],
  ['position zero', 3, [0], 'position is no number from 1'],
  ['a position above 2^53', 3, tooMuch, 'a number is cut'],
  ['a ballot that is not listed', 4, [1], 'ballot is not listed'],
  ['a round above 2^53', 5, tooMuch, 'a number is cut'],
  ['incarnation zero', 6, [0], 'incarnation is no number from 1'],
  ['a ballot whose node is beyond the frame', 7, [20], 'the bytes are cut'],
  ['a ballot of no node', 8, [65], 'node is no node id'],
  ['an unlisted ballot before', 9, [3], 'ballot is not listed'],
  ['a value beyond the message', 10, [4], 'the bytes are cut'],
  ['a value that is shorter than what follows', 10, [2], 'the frame goes on beyond its messages'],
]

test.each(wrongNumbers)('an accept with %s is refused with its reason', (_, at, wrong, reason) => {
  const value = Buffer.of(1, 2, 3)
  const accept: Message = { kind: 'accept', ...about, value, previous: oneBallot }
  const good = Buffer.from(encodePeerFrame({ durableFlush: 7, messages: [accept] }))
  expect(good.length).toBe(headBytes + 15)
  const place = headBytes + at
  const bytes = Buffer.concat([
    good.subarray(0, place),
    Buffer.from(wrong),
    good.subarray(place + 1),
  ])
  expect(reasonOf(bytes)).toBe(reason)
})

const groups: readonly (readonly [GroupId, number])[] = [[about.group, 3]]
const digest: Message = { kind: 'digest', after: 1, through: 2, asked: 3, isWhole: true, groups }
const wrongDigests: readonly (readonly [string, number, 2 | 4 | 8, bigint, string])[] = [
  ['that begins beyond 2^53', 1, 8, 2n ** 53n, 'a number is too large'],
  ['that ends beyond 2^53', 9, 8, 2n ** 53n, 'a number is too large'],
  ['of a question beyond 2^53', 17, 8, 2n ** 53n, 'a number is too large'],
  ['of more groups than it names', 25, 4, 2n, 'the bytes are cut'],
  ['of fewer groups than it names', 25, 4, 0n, 'the frame goes on beyond its messages'],
  ['of an empty group', 29, 2, 0n, 'group is no group id'],
  ['of a group beyond the frame', 29, 2, 2n, 'the bytes are cut'],
  ['of position zero', 31, 8, 0n, 'position is no number from 1'],
]

test.each(wrongDigests)('a digest %s is refused with its reason', (_, at, size, number, reason) => {
  const messages = [digest, { ...digest, groups: [] }, { ...digest, isWhole: false }]
  const bytes = Buffer.from(encodePeerFrame({ durableFlush: 7, messages: messages.slice(0, 1) }))
  write(bytes, headBytes + at, size, number)
  expect(reasonOf(bytes)).toBe(reason)
  checkRoundTrip({ durableFlush: 7, messages })
})

test('the kind of a digest says whether it is whole, so that an older node refuses a partial one', () => {
  const kindOf = (isWhole: boolean): number | undefined =>
    encodePeerFrame({ durableFlush: 7, messages: [{ ...digest, isWhole }] })[headBytes]
  expect([kindOf(true), kindOf(false)]).toEqual([15, 25])
})
