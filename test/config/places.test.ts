/** Regions and zones of nodes: how they are written, which region a set is in, and which sets lose a majority with a zone. */
import { expect, test } from 'vitest'
import { buildConfig, type ConfigResult } from '../../src/config/config.ts'
import { buildKeptSets } from '../../src/config/replica-sets.ts'
import { parseYaml } from '../../src/config/source.ts'
import { findWarnings } from '../../src/config/warnings.ts'

function build(nodes: readonly string[], text?: string): ConfigResult {
  const listed = nodes.map((fields, i) => `{ url: "http://h:${i + 1}", ${fields} }`)
  const yaml = `cluster: trips\nnode: a\ninsecure: true\ndata: ./data\nnodes: [${listed.join(', ')}]\n`
  const parsed = parseYaml(yaml, 'a.yaml')
  if (!parsed.ok) return parsed
  const flags = new Map(text === undefined ? [] : [['nodes', text]])
  const file = { path: 'a.yaml', root: parsed.root }
  return buildConfig({ file, environment: {}, flags, workingFolder: '/here' })
}

function warnings(nodes: readonly string[]): readonly string[] {
  const built = build(nodes)
  if (!built.ok) return built.problems.map(({ text }) => text)
  return findWarnings(built.config)
    .map(({ text }) => text)
    .filter((text) => /zone|region/.test(text))
}

test('a node has a region and a zone, in the file and in the list of a flag', () => {
  const text = 'a+region:eu+zone:x=http://h:1,b@west+zone:y=http://h:2,c+region:eu+joins=http://h:3'
  const expected = [
    { id: 'a', url: 'http://h:1', set: 'main', region: 'eu', zone: 'x' },
    { id: 'b', url: 'http://h:2', set: 'west', zone: 'y' },
    { id: 'c', url: 'http://h:3', set: 'main', region: 'eu', joins: true },
  ]
  const file = [
    'id: a, region: eu, zone: x',
    'id: b, set: west, zone: y',
    'id: c, region: eu, joins: true',
  ]
  const builds = [build(file), build(['id: a'], text)]
  for (const built of builds) {
    expect(built.ok && built.config.nodes).toEqual(expected)
    expect(built.ok && built.settings.find(({ name }) => name === 'nodes')?.value).toBe(text)
  }
})

test.each(['region: EU', 'zone: "a b"', 'region: 5', 'zone: ""'])(
  '%s is refused where it stands',
  (field) => {
    const built = build([`id: a, ${field}`])
    expect(built.ok).toBe(false)
    expect(!built.ok && built.problems.map(({ where }) => where)).toEqual([
      expect.stringMatching(/^a\.yaml:5:/),
    ])
  },
)

test('a set is in the region of a majority of its first nodes, else in none', () => {
  const built = build([
    'id: a, region: eu',
    'id: b, region: us',
    'id: c, region: eu',
    'id: d, set: two, region: us',
    'id: e, set: two',
    'id: f, set: two, region: us, joins: true',
  ])
  expect(built.ok && buildKeptSets(built.config.nodes)).toEqual([
    { name: 'main', region: 'eu', nodes: ['a', 'b', 'c'] },
    { name: 'two', nodes: ['d', 'e'] },
  ])
})

test('the configuration warns of a set that has no majority without one zone, and not of one that spans zones', () => {
  expect(warnings(['id: a, zone: x', 'id: b, zone: x', 'id: c, zone: y'])).toEqual([
    'set main has 2 of its 3 nodes in zone x: without that zone it has no majority; spread them over zones so that each has at most 1',
  ])
  expect(warnings(['id: a, zone: x', 'id: b, zone: y', 'id: c, zone: z'])).toEqual([])
  expect(warnings(['id: a, zone: x', 'id: b', 'id: c'])).toEqual([])
  expect(warnings(['id: a', 'id: b', 'id: c'])).toEqual([])
})

test('zones of one name in two regions are two zones', () => {
  expect(
    warnings(['id: a, region: eu, zone: x', 'id: b, region: us, zone: x', 'id: c, region: eu']),
  ).toEqual([])
  expect(
    warnings(['id: a, region: eu, zone: x', 'id: b, region: eu, zone: x', 'id: c, region: eu']),
  ).toEqual([expect.stringMatching(/^set main has 2 of its 3 nodes in zone x of region eu: /)])
})

test('the configuration warns of a set whose nodes are in regions without a majority in one', () => {
  expect(warnings(['id: a, region: eu', 'id: b, region: us', 'id: c, region: asia'])).toEqual([
    'set main is in no region, since no region has a majority of its nodes: PLACEMENT of a region does not choose it',
  ])
})

test('the configuration gives no warning of a set that nodes join: its nodes of now are not in the list', () => {
  expect(warnings(['id: a, zone: x', 'id: b, zone: x', 'id: c, zone: x, joins: true'])).toEqual([])
})
