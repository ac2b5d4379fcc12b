/** `trilithon nodes` against nodes that answer as a test says: what it shows, which node it asks, and its ends. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { eventually, patienceMs, runProgram, type Program } from '../cluster/harness.ts'
import {
  bound,
  copying,
  done,
  FakeCluster,
  first,
  firstStore,
  lost,
  renewing,
  sealing,
  since,
  third,
  unanswered,
  voter,
} from './fake-members.ts'

const open: FakeCluster[] = []
afterAll(() => {
  for (const cluster of open) cluster.close()
})

/** Without n2, whose disk is lost. */
async function listening(): Promise<FakeCluster> {
  const cluster = await new FakeCluster().listen()
  open.push(cluster)
  cluster.kill('n2')
  return cluster
}

/** `replace n2 --wait` that has begun to wait. */
async function waiting(cluster: FakeCluster): Promise<Program> {
  let program = cluster.start('replace', 'n2', '--wait')
  await eventually('it waits', async () => {
    if (program.stderr().includes(unanswered)) program = cluster.start('replace', 'n2', '--wait')
    return program.stderr().includes('copying, waits for n2') || undefined
  })
  return program
}

const startLine =
  'Start n2 with an empty data folder and --seat 4097: trilithon node --config … --seat 4097\n'

test('list shows the voters, the epoch, how many more may be lost, and the change under way', async () => {
  const cluster = await listening()
  const calm = await cluster.run('list')
  expect([calm.code, calm.stderr]).toEqual([0, ''])
  expect(calm.stdout).toBe(
    [
      'epoch 1: can lose 0 more voters',
      'node  standing  epoch  alive  store',
      `n1    voting    1      yes    ${firstStore}`,
      'n2    unknown   -      no     -',
      'n3    voting    1      yes    -\n',
    ].join('\n'),
  )
  cluster.steps = [copying]
  const busy = await cluster.run('list')
  const line = `change 1: n2 gets an empty store, seat 4097; copying since ${since}\n`
  expect(busy).toMatchObject({ code: 0, stdout: calm.stdout + line + startLine })
  const { stdout, code } = await cluster.run('list', '--json')
  expect([code, JSON.parse(stdout)]).toEqual([0, { ...cluster.report, change: copying }])
  expect(new Set(cluster.asked)).toEqual(new Set(['n1 GET /members']))
})

test('list ends with 4 where no majority votes, and says so', async () => {
  const cluster = await listening()
  cluster.report = { epoch: 1, canLose: -1, members: [first, lost, { ...third, isAlive: false }] }
  const { code, stdout, stderr } = await cluster.run('list')
  expect([code, stderr]).toEqual([4, 'error: 1 of 3 voters are alive and vote; 2 are needed\n'])
  expect(stdout).toMatch(/^epoch 1: there is no majority\n/)
})

test('the command asks a node that votes rather than one that does not', async () => {
  const cluster = await listening()
  const members = [{ ...first, standing: 'before-gate' }, lost, third]
  cluster.report = { epoch: 2, canLose: 0, members }
  cluster.reply = [202, { change: { ...copying, phase: 'given-up' } }]
  const { code, stdout } = await cluster.run('cancel')
  expect([code, stdout]).toEqual([0, 'change 1 is given up: the voters are as before\n'])
  expect(cluster.posts).toEqual(['n3 POST /members/cancel'])
})

test('replace asks another node than the lost one, and prints the seat and the next command', async () => {
  const cluster = await listening()
  const { code, stdout, stderr } = await cluster.run('replace', 'n2')
  expect([code, stderr]).toEqual([0, 'see trilithon nodes list\n'])
  expect(stdout).toBe(`change 1 has begun: n2 gets an empty store, seat 4097\n${startLine}`)
  expect(cluster.posts).toEqual(['n1 POST /members/replace?node=n2'])
  const json = await cluster.run('replace', 'n2', '--json')
  expect(JSON.parse(json.stdout)).toEqual({ change: copying })
  expect(json.stderr).toBe(`${startLine}see trilithon nodes list\n`)
})

test('replace --wait follows each step to the end of the change', async () => {
  const cluster = await listening()
  cluster.steps = [
    { ...copying, number: 0, phase: 'done' },
    copying,
    bound,
    bound,
    sealing,
    bound,
    done,
  ]
  const { code, stdout, stderr } = await cluster.run('replace', 'n2', '--wait')
  expect(stderr.split('\n')).toEqual([
    'change 1: copying, waits for n2 with an empty data folder and --seat 4097',
    'change 1: copying, n2 takes up what the others hold',
    'change 1: sealing, its epoch has begun; not voting yet: n2',
    '',
  ])
  expect([code, stdout]).toEqual([
    0,
    `change 1 has begun: n2 gets an empty store, seat 4097\n${startLine}change 1 is done: can lose 0 more voters\n`,
  ])
  expect(cluster.asked.some((one) => one.startsWith('n2'))).toBe(false)
})

test('replace goes on where another run of it was interrupted, though the new store votes by now', async () => {
  const cluster = await new FakeCluster().listen()
  open.push(cluster)
  cluster.report = { epoch: 2, canLose: 1, members: [first, { node: 'n2', ...voter }, third] }
  cluster.steps = [sealing, sealing, done]
  cluster.reply = [202, { change: sealing }]
  const { code, stdout } = await cluster.run('replace', 'n2', '--wait', '--json')
  expect([code, JSON.parse(stdout)]).toEqual([0, { change: done }])
  expect(cluster.asked.every((one) => one.startsWith('n1'))).toBe(true)
})

test('Ctrl-C ends the command, and no change', async () => {
  const cluster = await listening()
  cluster.steps = [copying]
  const program = await waiting(cluster)
  program.child.kill('SIGINT')
  expect(await program.exited()).toMatchObject({ code: 1 })
  expect(program.stdout()).toContain('change 1 is under way: n2 gets an empty store')
  expect(program.stderr()).toContain(
    'SIGINT: change 1 goes on; run the same command again to follow it',
  )
  expect(cluster.posts).toHaveLength(1)
})

test('a change that is given up ends --wait with 1, and one that another has followed with 5', async () => {
  const cluster = await listening()
  cluster.steps = [copying, { ...copying, phase: 'given-up' }]
  const given = await cluster.run('replace', 'n2', '--wait')
  expect([given.code, given.stderr]).toEqual([
    1,
    'error: change 1 was given up: the voters are as before\n',
  ])
  cluster.steps = [copying, renewing]
  const passed = await cluster.run('replace', 'n2', '--wait')
  expect([passed.code, passed.stderr]).toEqual([
    5,
    'error: change 2 has followed change 1: see trilithon nodes list\n',
  ])
})

// Others go on beside it.
test.concurrent(
  'nodes that answer no more end --wait with 4 after ten seconds',
  { timeout: patienceMs },
  async () => {
    const cluster = await listening()
    cluster.steps = [copying]
    const program = await waiting(cluster)
    cluster.kill('n1', 'n3')
    expect(await program.exited()).toMatchObject({ code: 4 })
    expect(program.stderr()).toMatch(
      /error: no node beside n2 tells of the voters: n1: .*; n3: .*; change 1 goes on when they do: run the same command again\n$/,
    )
  },
)

test.concurrent(
  'replace refuses an unknown node and one that runs, before it asks for anything',
  async () => {
    const cluster = await listening()
    const unknown = await cluster.run('replace', 'n9')
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      'error: there is no node "n9", only n1, n2, n3\n',
    ])
    const advice = 'stop it first, and wait until trilithon nodes list shows that it is not alive'
    const living = await cluster.run('replace', 'n3')
    expect([living.code, living.stderr]).toEqual([1, `error: n3 is alive and votes: ${advice}\n`])
    cluster.report.members = [first, { ...lost, isAlive: true, standing: 'before-gate' }, third]
    cluster.steps = [done]
    const replaced = await cluster.run('replace', 'n2', '--dry-run')
    expect([replaced.code, replaced.stderr]).toEqual([
      1,
      `error: n2 is alive: ${advice}; change 1, which replaced its store, is done\n`,
    ])
    expect(cluster.posts).toEqual([])
  },
)

test.concurrent(
  '--dry-run says what would be done and what it needs, and begins nothing',
  async () => {
    const cluster = await listening()
    const needs = 'needs 2 of 3 voters from its beginning to its end; alive and voting: n1, n3\n'
    const plan = await cluster.run('replace', 'n2', '--dry-run')
    expect(plan).toMatchObject({
      ...{ code: 0, stderr: '' },
      stdout: `would begin change 1: n2 gets an empty store, which votes from epoch 2 on\n${needs}`,
    })
    const json = await cluster.run('replace', 'n2', '--dry-run', '--json')
    expect(JSON.parse(json.stdout)).toEqual({
      ...{ dryRun: true, kind: 'replace', node: 'n2', change: 1, isJoining: false },
      ...{ voters: 3, needed: 2, voting: ['n1', 'n3'] },
    })
    const renewal = await cluster.run('renew', '--dry-run')
    expect(renewal.stdout).toBe(`would begin change 1: the same stores go on in epoch 2\n${needs}`)
    cluster.steps = [copying]
    const joining = await cluster.run('replace', 'n2', '--dry-run')
    expect(joining.stdout).toBe(`change 1 is under way, and would go on\n${needs}`)
    const other = await cluster.run('renew', '--dry-run')
    expect([other.code, other.stderr]).toEqual([
      1,
      `error: change 1 is under way (copying since ${since}): wait until it is done, or give it up: trilithon nodes cancel\n`,
    ])
    cluster.steps = []
    cluster.report.members = [first, lost, { ...third, isAlive: false }]
    const alone = await cluster.run('replace', 'n2', '--dry-run')
    expect([alone.code, alone.stderr]).toEqual([
      4,
      'error: 1 of 3 voters are alive and vote; 2 are needed\n',
    ])
    expect(alone.stdout).toContain('alive and voting: n1\n')
    expect(cluster.posts).toEqual([])
  },
)

test.concurrent('renew begins a new epoch once, and joins the one that is under way', async () => {
  const cluster = await listening()
  cluster.reply = [202, { change: renewing }]
  cluster.steps = [done, renewing, { ...renewing, phase: 'done' }]
  const { code, stdout, stderr } = await cluster.run('renew', '--wait')
  expect([code, stdout]).toEqual([
    0,
    'change 2 has begun: the same stores go on in a new epoch\nchange 2 is done: can lose 0 more voters\n',
  ])
  expect(stderr).toBe('change 2: sealing, its epoch has begun; not voting yet: n2\n')
  cluster.steps = [renewing]
  const joined = await cluster.run('renew')
  expect(joined.stdout).toBe('change 2 is under way: the same stores go on in a new epoch\n')
  expect(cluster.posts).toEqual(['n1 POST /members/renew'])
})

test.concurrent(
  'refusals keep their words: 1 where the node will not, 4 where no majority answers it',
  async () => {
    const cluster = await listening()
    const detail = 'Change 2 of this replica set is under way (sealing). Wait until it is done.'
    for (const [status, code, text] of [
      [400, 1, `error: refused by n1: ${detail}\n`],
      [401, 1, `error: refused by n1: ${detail}\n`],
      [503, 4, `error: n1: ${detail}; see trilithon nodes list, and run the same command again\n`],
    ] as const) {
      cluster.reply = [status, { code: 'x', detail }]
      for (const words of status === 400
        ? [['replace', 'n2'], ['renew'], ['cancel']]
        : [['renew']]) {
        const refused = await cluster.run(...words)
        expect([refused.code, refused.stdout, refused.stderr]).toEqual([code, '', text])
      }
    }
    cluster.report.members = [{ node: 'n1' }]
    const strange = await cluster.run('list')
    expect([strange.code, strange.stderr]).toEqual([
      4,
      expect.stringContaining(
        'n1: it is of another version, and its answer has another form; n3: ',
      ),
    ])
  },
)

test('requests for changes carry the secret that the flag names, and questions need none', async () => {
  const cluster = await listening()
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-secret-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'secret')
  await writeFile(file, 'a secret of sufficient length\n')
  for (const words of [['replace', 'n2'], ['renew'], ['cancel']]) {
    expect(await cluster.run(...words, '--secret-file', file)).toMatchObject({ code: 0 })
  }
  expect(cluster.secrets).toEqual(Array(3).fill('Bearer a secret of sufficient length'))
  expect(await cluster.run('cancel')).toMatchObject({ code: 0 })
  expect(cluster.secrets[3]).toBeUndefined()
})

test('node takes a seat, and refuses one in words', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-seat-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const config = join(folder, 'n2.yaml')
  await writeFile(
    config,
    'cluster: trips\nnode: n2\ndata: ./n2\nnodes: [{ id: n2, url: "http://127.0.0.1:4700" }]\n',
  )
  const refused = await runProgram(['node', '--config', config, '--seat', 'first'])
  expect([refused.code, refused.stderr]).toEqual([
    2,
    'error: the configuration has a problem:\n  --seat: seat: wants a whole number from 1 to 2147483647, not "first"\n',
  ])
  const printed = await runProgram(['config', 'print', '--config', config, '--seat', '4097'])
  expect([printed.code, printed.stdout]).toEqual([
    0,
    expect.stringMatching(/^seat: +4097 +# --seat$/m),
  ])
})
