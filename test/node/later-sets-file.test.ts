/** The sets that came later: the file of a data folder, and the nodes of a configuration beside them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import {
  findLaterSet,
  keepLaterSets,
  laterSetsName,
  laterSetsText,
  readKeptLaterSets,
  readLaterSetsText,
  withLaterNodes,
} from '../../src/node/later-sets-file.ts'
import type { NodeAddress } from '../../src/config/values.ts'
import { buildPlacement } from '../../src/node/build-placement.ts'
import { checkJoiningSeat } from '../../src/node/joining.ts'
import type { LaterSet } from '../../src/placement/placement.ts'

const third: LaterSet = {
  ...{ name: 'third', version: 2 },
  nodes: ['g', 'h'].map((id) => ({ node: nodeId(id), url: `http://${id}:4700` })),
}
const fourth: LaterSet = {
  name: 'fourth',
  version: 3,
  nodes: [{ node: nodeId('i'), url: 'http://i:1' }],
}

function configured(id: string, set: string, more: Partial<NodeAddress> = {}): NodeAddress {
  return { id: nodeId(id), url: `http://${id}:1`, set, ...more }
}

const nodes = [
  configured('a', 'east'),
  configured('b', 'west'),
  configured('g', 'third', { joins: true, zone: 'z' }),
  configured('k', 'third', { joins: true }),
]

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-later-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

test('a folder keeps the sets, in their order', async () => {
  const folder = await makeFolder()
  expect(await readKeptLaterSets(folder)).toEqual([])
  for (const sets of [[third], [third, fourth]]) {
    await keepLaterSets(folder, sets)
    expect(await readKeptLaterSets(folder)).toEqual(sets)
  }
  expect(laterSetsText([third])).toBe('third 2: g=http://g:4700 h=http://h:4700\n')
})

test.each(['third: g=http://g:1', 'third 2:', 'third 2: g', 'third x: g=u', 'third 2: g=u g=u'])(
  'a file that no node wrote is refused in words: %s',
  async (text) => {
    const folder = await makeFolder()
    await writeFile(join(folder, laterSetsName), text)
    await expect(readKeptLaterSets(folder)).rejects.toThrow('remove it: the node asks the cluster')
  },
)

test('a file that cannot be written is no bug', async () => {
  const folder = join(await makeFolder(), 'gone')
  await expect(keepLaterSets(folder, [third])).rejects.toThrow('later-sets cannot be written')
})

test('an address may have any signs but a space', () => {
  const sets = [{ ...fourth, nodes: [{ node: nodeId('i'), url: 'http://[::1]:4700' }] }]
  expect(readLaterSetsText(laterSetsText(sets))).toEqual(sets)
})

test('a set is a later one where all its nodes join', () => {
  expect(['a', 'g', 'k', 'x'].map((id) => findLaterSet(nodes, id))).toEqual([
    undefined,
    'third',
    'third',
    undefined,
  ])
  const grown = [...nodes, configured('c', 'east', { joins: true })]
  expect(findLaterSet(grown, 'c')).toBe(undefined)
})

test('the nodes of later sets stand behind those of the configuration, which knows more of them', () => {
  const all = withLaterNodes(nodes, [third])
  expect(all.map(({ id, set, url, joins }) => [id, set, url, joins === true])).toEqual([
    ['a', 'east', 'http://a:1', false],
    ['b', 'west', 'http://b:1', false],
    ['k', 'third', 'http://k:1', true],
    ['g', 'third', 'http://g:1', false],
    ['h', 'third', 'http://h:4700', false],
  ])
  expect(all.find(({ id }) => id === 'g')?.zone).toBe('z')
})

test('MOVE-16: a node that joins a later set is of that set, and none of those that it began with', () => {
  const placement = buildPlacement(nodes, [third])
  expect(['a', 'b', 'g', 'h', 'k'].map((id) => placement.setOfNode(nodeId(id)))).toEqual([
    0, 1, 2, 2, 2,
  ])
  expect(placement.nodesOf(2)).toEqual(['g', 'h'])
  // Before the set is known no set has the node.
  expect(buildPlacement(nodes).setOfNode(nodeId('g'))).toBe(-1)
})

test('a node that a later set began with needs no seat, and one that joins it does', async () => {
  const data = await makeFolder()
  const check = (node: string): Promise<void> =>
    checkJoiningSeat({ node: nodeId(node), nodes, data }, undefined, [third])
  await check('g')
  await expect(check('k')).rejects.toThrow('k joins its replica set')
})
