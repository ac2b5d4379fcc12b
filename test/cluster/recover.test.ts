/** Real processes: two of three nodes are lost for good, and the third goes on alone, by an operator's word. */
import { readFileSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { eventually, patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'
import { contentsAt, writeUntil, type Ledger } from './ledger.ts'

const page = readFileSync(new URL('../../src/docs/operating.md', import.meta.url), 'utf8')
const testTimeoutMs: number = 6 * patienceMs

interface View {
  readonly epoch: number
  readonly canLose: number
  readonly members: readonly { readonly node: string; readonly standing: string }[]
  readonly change?: { readonly kind: string; readonly phase: string }
}

function isView(value: unknown): value is View {
  return typeof value === 'object' && value !== null && 'epoch' in value && 'members' in value
}

async function viewAt(cluster: TestCluster, at: string): Promise<View> {
  const view: unknown = await (await fetch(`${cluster.node(at).url}/members`)).json()
  if (!isView(view)) throw new Error(`no view of the voters: ${JSON.stringify(view)}`)
  return view
}

function voting({ members }: View): readonly string[] {
  return members.filter(({ standing }) => standing === 'voting').map(({ node }) => node)
}

async function expectAll(
  cluster: TestCluster,
  at: string,
  { acknowledged }: Ledger,
): Promise<void> {
  await eventually(`${at} has all`, async () => {
    const { bodies } = await contentsAt(cluster.node(at).url, { rows: acknowledged })
    return acknowledged.every(({ rowKey }) => bodies.has(`${rowKey}/BASE/0`)) || undefined
  })
}

test(
  'MOVE-6: one node of three is left, goes on alone by trilithon recover, and two others join it',
  { timeout: testTimeoutMs },
  async () => {
    const cluster = await startCluster()
    const { dataFolder, url } = cluster.node('a')
    const recover = (...words: string[]): ReturnType<typeof runProgram> =>
      runProgram(['recover', dataFolder, ...words])
    try {
      const first = await writeUntil(
        cluster.urls,
        ({ acknowledged }) => acknowledged.length > 100,
        8,
      )
      await expectAll(cluster, 'a', first)
      expect(await recover()).toMatchObject({
        code: 4,
        stderr: expect.stringMatching(/in use by process/),
      })
      for (const id of ['b', 'c']) await cluster.node(id).stop('SIGKILL')
      await cluster.node('a').stop()
      await rm(cluster.node('b').dataFolder, { recursive: true })

      expect(await recover('--with', 'b', '--accept-loss')).toMatchObject({
        ...{
          code: 2,
          stderr: expect.stringMatching(
            /a and b are a majority of a, b, c: start them, and nothing is lost/,
          ),
        },
      })
      expect(await recover('--with', 'z')).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/of b, c, and not "z"/),
      })
      expect(await recover('--epoch', '7')).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/2000 at least/),
      })
      const plan = await recover()
      expect([plan.code, plan.stderr]).toEqual([0, ''])
      expect(page).toContain(`$ trilithon recover data-a\n${plan.stdout}`)
      const done = await recover('--accept-loss', '--json')
      expect(done.code, done.stderr).toBe(0)
      expect(JSON.parse(done.stdout)).toMatchObject({
        ...{ accepted: true, node: 'a', from: 1, voters: ['a', 'b', 'c'], epoch: 2_000 },
        ...{ left: ['a'], lost: ['b', 'c'] },
      })

      await cluster.node('a').start()
      const view = await eventually('the row says so', async () => {
        const found = await viewAt(cluster, 'a')
        return found.change?.kind === 'recover' ? found : undefined
      })
      expect(view).toMatchObject({ epoch: 2_000, canLose: 0, change: { phase: 'done' } })
      expect(voting(view)).toEqual(['a'])
      await expectAll(cluster, 'a', first)

      // A node that was not lost after all meets the others, and ends.
      cluster.node('c').spawn()
      const exit = await cluster.node('c').exited()
      expect([exit.code, cluster.node('c').log()]).toEqual([
        1,
        expect.stringMatching(
          /c has no vote since epoch 2000; store \S+ had one before; move its data folder away/,
        ),
      ])

      for (const id of ['b', 'c']) await join(cluster, id, url)
      const last = await writeUntil(cluster.urls, ({ acknowledged }) => acknowledged.length > 50, 8)
      expect([...last.failures]).toEqual([])
      for (const id of ['a', 'b', 'c']) {
        await expectAll(cluster, id, first)
        await expectAll(cluster, id, last)
        expect(voting(await viewAt(cluster, id)).toSorted()).toEqual(['a', 'b', 'c'])
      }
      await cluster.node('a').stop()
      await cluster.node('a').start()
      expect((await viewAt(cluster, 'a')).epoch).toBe(2_002)
    } finally {
      await cluster.close()
    }
  },
)

/** With an empty folder. */
async function join(cluster: TestCluster, id: string, at: string): Promise<void> {
  const node = cluster.node(id)
  await rm(node.dataFolder, { recursive: true, force: true })
  await mkdir(node.dataFolder)
  const add = ['nodes', 'add', id, '--at', node.url, '--url', at]
  const said = await runProgram(add)
  const [, seat = ''] = /--seat (\d+)/.exec(said.stdout) ?? []
  expect(Number(seat), `${said.stdout}${said.stderr}`).toBeGreaterThan(0)
  node.spawn({ environment: { TRILITHON_SEAT: seat } })
  const waited = await runProgram([...add, '--wait'], { timeoutMs: 2 * patienceMs })
  expect(waited.code, `${waited.stdout}${waited.stderr}\n${node.log()}`).toBe(0)
  await node.ready()
}
