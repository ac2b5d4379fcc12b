/** Wake-ups: a group sets one timer for a long wait, however often it is woken meanwhile. */
import { expect, test } from 'vitest'
import { CoreCluster } from './core-cluster.ts'

test('a group sets one timer for a long wait, whatever it waits for meanwhile', () => {
  // One accept reaches a follower and nothing else: it looks after the position in a minute.
  const cluster = new CoreCluster({ limits: { sweepMs: 60_000, phaseTimeoutMs: 100 } })
  cluster.submit(0, { key: 'a' })
  cluster.deliver(({ message }) => message.kind === 'accept')
  const follower = cluster.at(1)
  expect(follower.wakes.length).toBe(1)
  // Reads that no peer answers, and that their caller gives up before it is time to ask again.
  let most = 0
  for (let read = 1; read <= 50; read++) {
    follower.step({ kind: 'read', read })
    cluster.deliver(() => false)
    follower.step({ kind: 'cancel-read', read })
    follower.wakeNext()
    most = Math.max(most, follower.wakes.length)
  }
  expect(cluster.now).toBeLessThan(30_000)
  expect(most).toBeLessThanOrEqual(2)
})
