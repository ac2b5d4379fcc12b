/** The disk of one of three real processes is lost under load: an empty one takes its place, and the writes go on. */
import { rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runProgram, startCluster, type TestCluster } from './harness.ts'
import { settleUnknown, writeUntil } from './ledger.ts'
import { untilChanged, untilHasAll } from './members.ts'

async function command(cluster: TestCluster, ...words: readonly string[]): Promise<string> {
  const environment = { XDG_STATE_HOME: cluster.folder }
  const asked = [...words, '--url', cluster.node('a').url]
  const { code, stdout, stderr } = await runProgram(asked, { environment })
  expect(code, stderr).toBe(0)
  return stdout
}

test('MOVE-6: an empty store takes the place of a lost one under load, and nothing acknowledged is lost', async () => {
  const cluster = await startCluster()
  try {
    const [a, b, lost] = [cluster.node('a'), cluster.node('b'), cluster.node('c')]
    let isOver = false
    const writing = writeUntil(cluster.urls, () => isOver)
    await command(cluster, 'nodes', 'renew')
    await untilChanged(a, 1)
    await lost.stop('SIGKILL')
    await rm(lost.dataFolder, { recursive: true, force: true })
    const said = await command(cluster, 'nodes', 'replace', 'c')
    const seat = /--seat (\d+)/.exec(said)?.[1] ?? expect.fail(said)
    lost.spawn({ environment: { TRILITHON_SEAT: seat } })
    await lost.ready()
    await untilChanged(a, 2)
    isOver = true
    const ledger = await writing
    await settleUnknown(cluster.urls, ledger)
    expect(ledger.acknowledged.length).toBeGreaterThan(0)
    // The other two are no majority of three without it.
    await b.stop('SIGKILL')
    await untilHasAll(lost, ledger)
  } catch (error) {
    for (const { id, log } of cluster.nodes) console.error(id, log().slice(-3000))
    throw error
  } finally {
    await cluster.close()
  }
})
