/** Messages for one peer, by their weight. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { PeerOutbox } from '../../src/peers/peer-outbox.ts'
import type { Accept } from '../../src/replication/message.ts'

const envelope = { group: groupOfBytes(Buffer.from('g')), epoch: 1 }
const ballot = { epoch: 1, round: 1, node: nodeId('n1'), incarnation: 1 }
const mebibyte = 1024 * 1024

function accept(position: number, bytes: number): Accept {
  return { kind: 'accept', ...envelope, position, ballot, value: Buffer.alloc(bytes) }
}

test('an outbox cuts its messages into frames of 8 MiB of bodies, in order', () => {
  const outbox = new PeerOutbox()
  const messages = [1, 2, 3, 4, 5].map((position) => accept(position, 3 * mebibyte))
  for (const message of messages) outbox.add(message)
  expect(outbox.take()).toEqual([messages.slice(0, 2), messages.slice(2, 4), messages.slice(4)])
  expect(outbox.take()).toEqual([])
})

test('a peer is supplied with nothing more once a frame of bodies waits for it', () => {
  const outbox = new PeerOutbox()
  outbox.add(accept(1, 5 * mebibyte))
  expect(outbox.isFull).toBe(false)
  outbox.add(accept(2, 3 * mebibyte))
  expect(outbox.isFull).toBe(true)
  outbox.take()
  expect(outbox.isFull).toBe(false)
})
