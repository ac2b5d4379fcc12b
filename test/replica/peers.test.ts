/** What a node remembers of its peers over its starts. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { nodeId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { Transport } from '../../src/ports/transport.ts'
import { Peers } from '../../src/replica/peers.ts'
import type { Message, PeerFrame } from '../../src/replication/message.ts'

const [node, peer] = [nodeId('n1'), nodeId('n2')]
const stored = new Map<string, Uint8Array>()

/** A start of the node, whose log is this one, and the flushes that it asks the peer's digest after. */
function start(
  storeId: string,
  durableFlush: number,
): { peers: Peers; asked(): readonly number[] } {
  const sent: Message[] = []
  const transport: Transport<PeerFrame> = {
    start: () => undefined,
    send: (_, { messages }) => sent.push(...messages) > 0,
    isUp: () => true,
    close: () => Promise.resolve(),
  }
  const peers = new Peers({
    ...{ node, incarnation: 1, nodes: [node, peer], limits: defaultLimits, storeId },
    ...{ clock: systemClock, trace: silentTrace, transport },
    log: { durableFlush, lastFlush: durableFlush, highest: () => 0 },
    meta: {
      meta: (name) => stored.get(name),
      setMeta: (name, value) => void stored.set(name, value),
    },
    onSuspicion: () => undefined,
    onExists: () => undefined,
    onDigested: () => undefined,
  })
  peers.onLink(peer, 'up', { storeId: 'of n2', incarnation: 1, durableFlush: 12 })
  const asked = (): readonly number[] => {
    peers.flush()
    return sent.flatMap((one) => (one.kind === 'digest-request' ? [one.after] : []))
  }
  return { peers, asked }
}

test('LOG-9: a start asks for digests from where the last one knew everything, if it has the same log', () => {
  const first = start('a store', 5)
  expect(first.asked()).toEqual([0])
  first.peers.onDigest(peer, { kind: 'digest', after: 0, through: 10, groups: [], asked: 1 })
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
