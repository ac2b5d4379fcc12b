/** The disk of one of three real processes is lost under load: an empty one takes its place, and the writes go on. */
import { rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { eventually, patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'
import { contentsAt, writeUntil } from './ledger.ts'

interface Told {
  readonly epoch: number
  readonly canLose: number
  readonly change?: { readonly phase: string; readonly seat?: number }
}

async function membersAt(url: string): Promise<Told> {
  const text = await (await fetch(`${url}/members`)).text()
  const told: Told = JSON.parse(text)
  return told
}

async function command(cluster: TestCluster, ...words: readonly string[]): Promise<string> {
  const [first] = cluster.nodes
  const environment = { XDG_STATE_HOME: cluster.folder }
  const { code, stdout, stderr } = await runProgram([...words, '--url', first?.url ?? ''], {
    environment,
  })
  expect(code, stderr).toBe(0)
  return stdout
}

async function untilDone(url: string, epoch: number): Promise<void> {
  await eventually('the change is done', async () => {
    const told = await membersAt(url)
    const isDone = told.epoch === epoch && told.change?.phase === 'done' && told.canLose === 1
    return isDone || undefined
  })
}

test('MOVE-6: an empty store takes the place of a lost one under load, and nothing acknowledged is lost', async () => {
  const cluster = await startCluster()
  try {
    const lost = cluster.node('c')
    const others = cluster.nodes.slice(0, 2).map(({ url }) => url)
    const [asked = ''] = others
    let isOver = false
    const writing = writeUntil(cluster.urls, () => isOver)
    await command(cluster, 'nodes', 'renew')
    await untilDone(asked, 2)
    await lost.stop('SIGKILL')
    await rm(lost.dataFolder, { recursive: true, force: true })
    const said = await command(cluster, 'nodes', 'replace', 'c')
    const seat = /--seat (\d+)/.exec(said)?.[1] ?? expect.fail(said)
    lost.spawn({ environment: { TRILITHON_SEAT: seat } })
    await lost.ready()
    await untilDone(asked, 3)
    isOver = true
    const ledger = await writing
    expect([...ledger.failures]).toEqual([])
    // The other two are no majority of three without it.
    await cluster.node('b').stop('SIGKILL')
    await eventually('it has all', async () => {
      const { bodies } = await contentsAt(lost.url, { rows: ledger.acknowledged })
      return ledger.acknowledged.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
    })
    expect(patienceMs).toBeGreaterThan(0)
  } catch (error) {
    for (const { id, log } of cluster.nodes) console.error(id, log().slice(-3000))
    throw error
  } finally {
    await cluster.close()
  }
})
