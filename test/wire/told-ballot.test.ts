/** A ballot that a peer tells: a round that leaves none above it would end the node that proposes after it. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { roundToldMax, type Ballot } from '../../src/paxos/ballot.ts'
import type { Message } from '../../src/replication/message.ts'
import { decodePeerFrame, encodePeerFrame } from '../../src/wire/peer/peer-codec.ts'

const at = { group: groupOfBytes(Buffer.from('g')), epoch: 1, position: 1 } as const

function told(message: Message): unknown {
  const decoded = decodePeerFrame(encodePeerFrame({ durableFlush: 0, messages: [message] }))
  return decoded.ok ? decoded.frame.messages : decoded.reason
}

test.each(['prepare', 'committed'] as const)(
  'a round that no proposer can have come to is malformed in a %s',
  (kind) => {
    const highest: Ballot = { epoch: 9, round: roundToldMax, node: nodeId('a'), incarnation: 1 }
    expect(told({ kind, ...at, ballot: highest })).toEqual([{ kind, ...at, ballot: highest }])
    const beyond = { ...highest, round: roundToldMax + 1 }
    expect(told({ kind, ...at, ballot: beyond })).toBe('round is too high')
  },
)
