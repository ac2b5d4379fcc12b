/** Nodes that come to a set later than its first ones: how they are written, and that they change nothing of the first. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { buildConfig, type ConfigResult } from '../../src/config/config.ts'
import { buildJoining, buildReplicaSets } from '../../src/config/replica-sets.ts'
import { parseYaml } from '../../src/config/source.ts'
import { buildGatewayConfig } from '../../src/gateway/gateway-config.ts'
import { checkJoiningSeat } from '../../src/node/joining.ts'

const first = ['{ id: a, url: "http://h:1" }', '{ id: b, url: "http://h:2" }']
const west = '{ id: w, url: "http://h:9", set: west }'
const joining = '{ id: d, url: "http://h:4", joins: true }'

function build(nodes: readonly string[], node = 'a', text?: string): ConfigResult {
  const yaml = `cluster: trips\nnode: ${node}\npeer_secret_file: p\ndata: ./data\nnodes: [${nodes.join(', ')}]\n`
  const parsed = parseYaml(yaml, 'a.yaml')
  if (!parsed.ok) return parsed
  const flags = new Map(text === undefined ? [] : [['nodes', text]])
  const file = { path: 'a.yaml', root: parsed.root }
  return buildConfig({ file, environment: {}, flags, workingFolder: '/here' })
}

function problems(result: ConfigResult): readonly string[] {
  return result.ok ? [] : result.problems.map(({ text }) => text)
}

test('a node that joins changes nothing of the sets, wherever it stands in the list', () => {
  const lists = [
    [...first, west],
    [...first, west, joining],
    ['{ id: v, url: "http://h:8", set: west, joins: true }', joining, ...first, west],
  ]
  for (const list of lists) {
    const built = build(list)
    expect(problems(built)).toEqual([])
    if (!built.ok) return
    expect(buildReplicaSets(built.config.nodes)).toEqual([['a', 'b'], ['w']])
  }
  const built = build(lists[2] ?? [])
  expect(built.ok && buildJoining(built.config.nodes)).toEqual([
    { node: 'v', set: 1 },
    { node: 'd', set: 0 },
  ])
})

test('flags and the environment write it as ID+joins=URL, and so does the list in force', () => {
  const text = 'a=http://h:1,w@west=http://h:9,d+joins=http://h:4,v@west+joins=http://h:8'
  const built = build(first, 'a', text)
  expect(problems(built)).toEqual([])
  if (!built.ok) return
  expect(built.config.nodes).toEqual([
    { id: 'a', url: 'http://h:1', set: 'main' },
    { id: 'w', url: 'http://h:9', set: 'west' },
    { id: 'd', url: 'http://h:4', set: 'main', joins: true },
    { id: 'v', url: 'http://h:8', set: 'west', joins: true },
  ])
  expect(built.settings.find(({ name }) => name === 'nodes')?.value).toBe(text)
  const gateway = (nodes: string): unknown => {
    const result = buildGatewayConfig({
      ...{ environment: { TRILITHON_NODES: nodes }, flags: new Map(), workingFolder: '/' },
    })
    return result.ok && result.config.nodes
  }
  expect(gateway('a=http://h:1,d+joins=http://h:4')).toEqual(['http://h:1', 'http://h:4'])
})

test.each([
  [
    'a mark that is none',
    'a=http://h:1,d+join=http://h:4',
    'nodes: wants true or false, not "join"',
  ],
  [
    'a list of nodes that all join',
    'a+joins=http://h:1,d@west+joins=http://h:4',
    'all nodes join (a, d): name the nodes that the cluster began with too, each without joins',
  ],
])('%s is refused', (_, text, said) => {
  expect(problems(build(first, 'a', text))).toEqual([said])
})

test('joins: false is as good as none, and text is refused', () => {
  const plain = build([...first, '{ id: d, url: "http://h:4", joins: false }'])
  expect(plain.ok && plain.config.nodes.at(-1)).toEqual({ id: 'd', url: 'http://h:4', set: 'main' })
  expect(problems(build([...first, '{ id: d, url: "http://h:4", joins: later }']))).toEqual([
    'nodes: wants true or false, not "later"',
  ])
})

test('a list with nodes that join says nothing about how many may fail', () => {
  const built = build([...first, joining])
  expect(built.ok && built.warnings.filter(({ text }) => text.startsWith('set '))).toEqual([])
})

test('an empty folder of a node that joins wants a seat, and one with a store does not', async () => {
  const data = await mkdtemp(join(tmpdir(), 'trilithon-joining-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const nodes = [
    { id: nodeId('a'), url: 'http://h:1', set: 'main' },
    { id: nodeId('d'), url: 'http://h:4', set: 'main', joins: true },
  ] as const
  const check = (node: 'a' | 'd', seat?: number): Promise<void> =>
    checkJoiningSeat({ node: nodeId(node), nodes, data }, seat)
  await expect(check('d')).rejects.toMatchObject({
    code: 'invalid',
    message: `d joins its replica set, and the data folder ${data} has no store as yet: make d a member first (trilithon nodes add d --at http://h:4 --url http://h:1), then start it with the seat that this prints (--seat N)`,
  })
  await check('a')
  await check('d', 4097)
  await mkdir(join(data, 'log'))
  await check('d')
})
