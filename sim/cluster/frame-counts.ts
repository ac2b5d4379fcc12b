/** The messages in frames of peers, by what a run counts them for. */
import type { Message, PeerFrame } from '../../src/replication/message.ts'

/** Messages of no group, whose number does not depend on the load. */
const betweenNodes: ReadonlySet<Message['kind']> = new Set<Message['kind']>([
  ...(['digest-request', 'digest', 'clock', 'renew', 'renewed', 'slow'] as const),
  ...(['durable-mark', 'directory-request', 'directory'] as const),
  ...(['sums-request', 'sums', 'marks-request', 'marks'] as const),
  ...(['standing', 'seal-request', 'seal-page', 'version'] as const),
  ...(['reach-request', 'reach'] as const),
])

export function countGroupMessages({ messages }: PeerFrame): number {
  let count = 0
  for (const { kind } of messages) if (!betweenNodes.has(kind)) count += 1
  return count
}

export function renewalsIn({ messages }: PeerFrame): number {
  let count = 0
  for (const { kind } of messages) if (kind === 'renew') count += 1
  return count
}
