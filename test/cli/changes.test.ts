/** `trilithon changes` against nodes that answer as a test says. */
import { expect, onTestFinished, test } from 'vitest'
import { copying, done, FakeCluster, since } from './fake-members.ts'

async function listening(): Promise<FakeCluster> {
  const cluster = await new FakeCluster().listen()
  onTestFinished(() => cluster.close())
  return cluster
}

const words = 'change 1: n2 gets an empty store, seat 4097'

test('list shows the change under way, or says that there was none', async () => {
  const cluster = await listening()
  const calm = await cluster.runVerb('changes', 'list')
  expect(calm).toMatchObject({ code: 0, stdout: '' })
  expect(calm.stderr).toContain('have not changed yet')
  expect((await cluster.runVerb('changes', 'list', '--json')).stdout).toBe('[]\n')
  cluster.steps = [copying]
  const busy = await cluster.runVerb('changes', 'list')
  expect(busy).toMatchObject({ code: 0, stdout: `${words}; copying since ${since}\n` })
  const { stdout } = await cluster.runVerb('changes', 'list', '--json')
  expect(JSON.parse(stdout)).toEqual([copying])
})

test('show says how to go on with a change, and refuses a number that there is not', async () => {
  const cluster = await listening()
  cluster.steps = [copying]
  const shown = await cluster.runVerb('changes', 'show', '1')
  expect(shown).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Start n2 with an empty'),
  })
  const { stdout } = await cluster.runVerb('changes', 'show', '1', '--json')
  expect(JSON.parse(stdout)).toEqual(copying)
  const other = await cluster.runVerb('changes', 'show', '2')
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('knows no change 2') })
  expect((await cluster.runVerb('changes', 'show', 'x')).code).toBe(2)
})

test('cancel gives up the change of this number, and no other', async () => {
  const cluster = await listening()
  cluster.steps = [copying]
  cluster.reply = [202, { change: { ...copying, phase: 'given-up' } }]
  const other = await cluster.runVerb('changes', 'cancel', '2')
  expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining('its last one, 1') })
  expect(cluster.posts).toEqual([])
  const given = await cluster.runVerb('changes', 'cancel', '1')
  expect(given).toMatchObject({ code: 0, stdout: expect.stringContaining('change 1 is given up') })
  expect(cluster.posts).toEqual(['n1 POST /members/cancel'])
  cluster.reply = [202, { change: { ...copying, number: 2, phase: 'given-up' } }]
  const late = await cluster.runVerb('changes', 'cancel', '1')
  expect(late).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('change 1 ended meanwhile'),
  })
  // Where the version in force allows it, the node gets the number, and gives no other one up.
  cluster.report = { ...cluster.report, version: 2 }
  cluster.reply = [202, { change: { ...copying, phase: 'given-up' } }]
  expect((await cluster.runVerb('changes', 'cancel', '1')).code).toBe(0)
  expect(cluster.posts.at(-1)).toBe('n1 POST /members/cancel?number=1')
  cluster.steps = [done]
  const ended = await cluster.runVerb('changes', 'cancel', '1')
  expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining('is not under way') })
})
