/** `trilithon nodes add` and `remove` against nodes that answer as a test says: plans, refusals, and the words for the next step. */
import { afterEach, expect, test } from 'vitest'
import { FakeCluster, first, lost, since, third, voter } from './fake-members.ts'

const open: FakeCluster[] = []
afterEach(() => {
  for (const cluster of open.splice(0)) cluster.close()
})

const second = { node: 'n2', ...voter }
const adding = { number: 1, kind: 'add', phase: 'copying', node: 'n4', seat: 4096, since }
const removing = { number: 1, kind: 'remove', phase: 'sealing', node: 'n3', since }
const url = 'http://10.0.0.4:4700'
const add = ['add', 'n4', '--at', url]
const start = `Start n4 with an empty data folder and --seat 4096: trilithon node --config … --seat 4096
The configuration of n4: the nodes of another node's configuration, in their order, and n4 with its url and joins: true
`
const gone =
  'The process of n3 ends by itself once it hears of this. Its data folder serves no node any more\n'

async function listening(...members: readonly (typeof first)[]): Promise<FakeCluster> {
  const cluster = await new FakeCluster().listen()
  open.push(cluster)
  cluster.report = { epoch: 1, canLose: 1, members }
  return cluster
}

test('add says the seat, how the node is started, and what its configuration needs', async () => {
  const cluster = await listening(first, second, third)
  cluster.reply = [202, { change: adding }]
  const { code, stdout, stderr } = await cluster.run(...add)
  expect([code, stderr]).toEqual([0, 'see trilithon nodes list\n'])
  expect(stdout).toBe(`change 1 has begun: n4 joins with an empty store, seat 4096\n${start}`)
  const query = new URLSearchParams({ node: 'n4', url }).toString()
  expect(cluster.posts).toEqual([`n1 POST /members/add?${query}`])
  const json = await cluster.run(...add, '--json')
  expect([JSON.parse(json.stdout), json.stderr]).toEqual([
    { change: adding },
    `${start}see trilithon nodes list\n`,
  ])
})

test('add --wait follows the change to its end; the new node is no voter before its epoch', async () => {
  const cluster = await listening(first, second, third, { ...lost, node: 'n4' })
  cluster.reply = [202, { change: adding }]
  const store = 'a1f0c7de-9a52-4c0b-8f43-0d3c5d0a9a11'
  const bound = { ...adding, store }
  cluster.steps = [
    adding,
    adding,
    bound,
    { ...bound, phase: 'sealing' },
    { ...bound, phase: 'done' },
  ]
  const { code, stdout, stderr } = await cluster.run(...add, '--wait')
  expect(stderr.split('\n')).toEqual([
    'change 1: copying, waits for n4 with an empty data folder and --seat 4096',
    'change 1: copying, n4 takes up what the others hold',
    'change 1: sealing, its epoch has begun; not voting yet: n4',
    '',
  ])
  expect([code, stdout]).toEqual([
    0,
    `change 1 is under way: n4 joins with an empty store, seat 4096\n${start}change 1 is done: can lose 1 more voter\n`,
  ])
  cluster.steps = [adding]
  const plan = await cluster.run(...add, '--dry-run')
  expect(plan.stdout).toBe(
    'change 1 is under way, and would go on\nneeds 2 of 3 voters from its beginning to its end; alive and voting: n1, n2, n3\n',
  )
})

test('--dry-run says the majority, and how many voters may fail before and after', async () => {
  const cluster = await listening(first, second, third)
  const needs = 'needs 2 of 3 voters from its beginning to its end; alive and voting: n1, n2, n3\n'
  const grown = await cluster.run(...add, '--dry-run')
  expect([grown.code, grown.stderr, grown.stdout]).toEqual([
    ...[0, ''],
    `would begin change 1: n4 joins at ${url} with an empty store, which votes from epoch 2 on\n${needs}while all are well, 1 of 3 voters may fail now, and 1 of 4 voters afterwards\n`,
  ])
  const json = await cluster.run('remove', 'n3', '--dry-run', '--json')
  expect(JSON.parse(json.stdout)).toEqual({
    ...{ dryRun: true, kind: 'remove', node: 'n3', change: 1, isJoining: false, voters: 3 },
    ...{ needed: 2, voting: ['n1', 'n2', 'n3'], canLose: 1, votersAfter: 2, canLoseAfter: 0 },
  })
  expect(json.stderr).toBe(
    'warning: of two voters none may fail: where one is down, writes and up-to-date reads wait\n',
  )
  expect(cluster.posts).toEqual([])
})

test('remove asks another node than the one that leaves', async () => {
  const cluster = await listening(first, second, third)
  cluster.reply = [202, { change: { ...removing, node: 'n1' } }]
  await cluster.run('remove', 'n1')
  expect(cluster.posts).toEqual(['n2 POST /members/remove?node=n1'])
  cluster.reply = [202, { change: removing }]
  const { code, stdout } = await cluster.run('remove', 'n3')
  expect([code, stdout]).toEqual([0, `change 1 has begun: n3 leaves for good\n${gone}`])
})

test('remove refuses what would leave too few, and the last node, before it asks for anything', async () => {
  const cluster = await listening(first, lost, third)
  const few = await cluster.run('remove', 'n3')
  expect([few.code, few.stderr]).toEqual([
    4,
    'error: without n3, 2 of 2 voters are needed, and alive and voting are only: n1; start the others first\n',
  ])
  cluster.report.members = [third]
  const last = await cluster.run('remove', 'n3')
  expect([last.code, last.stderr]).toEqual([1, 'error: n3 is the last node: it stays\n'])
  cluster.report.members = [second, third]
  const warned = await cluster.run('remove', 'n3', '--dry-run')
  expect([warned.code, warned.stderr]).toEqual([
    0,
    'warning: one voter keeps the only copy of all data: where its disk is lost, so is the data\n',
  ])
  expect(cluster.posts).toEqual([])
})

test('slips are refused in words', async () => {
  const cluster = await listening(first, second, third)
  const form = 'wants a URL such as http://127.0.0.1:4700, not'
  for (const [words, code, said] of [
    [['add', 'N4', '--at', url], 2, '"N4" names no node: a name is 1 to 32 of a-z, 0-9 and -'],
    [['add', 'n4', '--at', 'ten'], 2, `--at: ${form} "ten"`],
    [
      ['add', 'n4', '--at', 'http://0.0.0.0:1'],
      2,
      '--at: http://0.0.0.0:1 is an address to listen on: the others would reach themselves by it',
    ],
    [['add', 'n4'], 2, "required option '--at <URL>' not specified"],
    [['add', 'n2', '--at', url], 1, 'n2 is a node of this replica set already'],
    [['remove', 'n9'], 2, 'there is no node "n9", only n1, n2, n3'],
  ] as const) {
    const refused = await cluster.run(...words)
    expect([refused.code, refused.stdout, refused.stderr.split('\n')[0]]).toEqual([
      ...[code, ''],
      `error: ${said}`,
    ])
  }
  cluster.steps = [adding]
  const other = await cluster.run('remove', 'n3')
  expect(other.stderr).toBe(
    `error: change 1 is under way (copying since ${since}): wait until it is done, or give it up: trilithon nodes cancel\n`,
  )
  expect(cluster.posts).toEqual([])
})
