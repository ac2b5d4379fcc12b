/** Messages that are written by hand: what was encoded comes back, and each wrong number has its reason. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import type { Ballot } from '../../src/paxos/ballot.ts'
import type { Message, PeerFrame } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer-codec.ts'

const oneBallot: Ballot = { round: 1, node: nodeId('a'), incarnation: 1 }
const about = { group: groupOfBytes(Buffer.from('g')), epoch: 1, position: 1, ballot: oneBallot }
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
  expect(one - (two - one)).toBe(21 + 18)
})

test('many ballots of one frame all come back', () => {
  const messages = Array.from({ length: 100 }, (_, i): Message => {
    const ballot = { ...oneBallot, round: i % 40 }
    const previous = { ...oneBallot, incarnation: 1 + (i % 25) }
    return { kind: 'accept', ...about, ballot, value: Buffer.from(`${i}`), previous }
  })
  checkRoundTrip({ durableFlush: 1, messages })
})

function write(bytes: Buffer, at: number, size: number, number: bigint): void {
  for (let i = 0; i < size; i++) {
    bytes[at + i] = Number((number >> BigInt(8 * (size - 1 - i))) & 0xffn)
  }
}

/** A message of a commit with one number that is not what it should be: [its place, its bytes, the number]. */
const wrongNumbers: readonly (readonly [string, number, 1 | 2 | 4 | 8, bigint, string])[] = [
  ['an unknown kind', 0, 1, 9n, unknownKind],
  ['an empty group', 1, 2, 0n, 'group is no group id'],
  ['a group beyond the message', 1, 2, 9n, 'the frame is cut'],
  ['epoch zero', 3, 8, 0n, 'epoch is no number from 1'],
  ['an epoch above 2^53', 3, 8, 2n ** 60n, 'epoch is no number from 1'],
  ['position zero', 11, 8, 0n, 'position is no number from 1'],
  ['a position above 2^53', 11, 8, 2n ** 53n, 'position is no number from 1'],
  ['a ballot that is not listed', 19, 4, 1n, 'ballot is not listed'],
  ['no ballot', 19, 4, 0xffffffffn, 'ballot is not listed'],
  ['an unlisted ballot before', 23, 4, 1n, 'ballot is not listed'],
  ['a value beyond the message', 27, 4, 4n, 'the frame is cut'],
  ['a value that is shorter than what follows', 27, 4, 2n, 'the frame goes on beyond its messages'],
  ['a round above 2^53', 35, 8, 2n ** 53n, 'round is no number from 0'],
  ['incarnation zero', 43, 8, 0n, 'incarnation is no number from 1'],
  ['a ballot of no node', 52, 1, 65n, 'node is no node id'],
  ['a ballot whose node is beyond the frame', 51, 1, 2n, 'the frame is cut'],
]

test.each(wrongNumbers)(
  'an accept with %s is refused with its reason',
  (_, at, size, number, reason) => {
    const accept: Message = {
      kind: 'accept',
      ...about,
      value: Buffer.of(1, 2, 3),
      previous: oneBallot,
    }
    const bytes = Buffer.from(encodePeerFrame({ durableFlush: 7, messages: [accept] }))
    expect(bytes.length).toBe(21 + 53)
    for (let i = 0; i < size; i++) {
      bytes[21 + at + i] = Number((number >> BigInt(8 * (size - 1 - i))) & 0xffn)
    }
    expect(reasonOf(bytes)).toBe(reason)
  },
)

const groups: readonly (readonly [GroupId, number])[] = [[about.group, 3]]
const digest: Message = { kind: 'digest', after: 1, through: 2, asked: 3, groups }
const wrongDigests: readonly (readonly [string, number, 2 | 4 | 8, bigint, string])[] = [
  ['that begins beyond 2^53', 1, 8, 2n ** 53n, 'after is no number from 0'],
  ['that ends beyond 2^53', 9, 8, 2n ** 53n, 'through is no number from 0'],
  ['of a question beyond 2^53', 17, 8, 2n ** 53n, 'asked is no number from 0'],
  ['of more groups than it names', 25, 4, 2n, 'the frame is cut'],
  ['of fewer groups than it names', 25, 4, 0n, 'the frame goes on beyond its messages'],
  ['of an empty group', 29, 2, 0n, 'group is no group id'],
  ['of a group beyond the frame', 29, 2, 2n, 'the frame is cut'],
  ['of position zero', 31, 8, 0n, 'position is no number from 1'],
]

test.each(wrongDigests)('a digest %s is refused with its reason', (_, at, size, number, reason) => {
  const messages = [digest, { ...digest, groups: [] }]
  const bytes = Buffer.from(encodePeerFrame({ durableFlush: 7, messages: messages.slice(0, 1) }))
  write(bytes, 21 + at, size, number)
  expect(reasonOf(bytes)).toBe(reason)
  checkRoundTrip({ durableFlush: 7, messages })
})
