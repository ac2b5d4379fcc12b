/** A node of three real processes that was away under load comes back: the others' writes go on. */
import { expect, test } from 'vitest'
import { eventually, startCluster } from './harness.ts'
import { contentsAt, writeUntil } from './ledger.ts'

/** Far more than any turn takes, and far less than clients wait: the machine may be busy. */
const gapMsMax = 3_000

test('LIVE-6: a node that comes back takes up what it missed, and no client hears of it', async () => {
  const cluster = await startCluster()
  try {
    const away = cluster.nodes[2] ?? expect.fail('there are three nodes')
    const others = cluster.nodes.slice(0, 2).map(({ url }) => url)
    await away.stop('SIGKILL')
    let isOver = false
    let acknowledged = 0
    const writing = writeUntil(others, (ledger) => {
      acknowledged = ledger.acknowledged.length
      return isOver
    })
    await pause(4_000)
    await away.start()
    let worstMs = 0
    let before = 0
    let since = performance.now()
    const watch = setInterval(() => {
      if (acknowledged > before) since = performance.now()
      worstMs = Math.max(worstMs, performance.now() - since)
      before = acknowledged
    }, 20)
    await pause(3_000)
    clearInterval(watch)
    isOver = true
    const ledger = await writing
    expect([...ledger.failures]).toEqual([])
    expect(worstMs).toBeLessThan(gapMsMax)
    await eventually('it has all', async () => {
      const { bodies } = await contentsAt(away.url, { rows: ledger.acknowledged })
      return ledger.acknowledged.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
    })
    const status = await (await fetch(`${away.url}/status`)).text()
    expect(status).toContain('"lackingGroups":0')
  } finally {
    await cluster.close()
  }
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
