/** The nodes that a status tells: those that the replica set has now, and not those of the configuration. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { describeMembers } from '../../src/node/members-figures.ts'
import { listSeenNodes, spareNodes, type SeenParts } from '../../src/node/status-nodes.ts'

type Members = NonNullable<SeenParts['replica']>['members']
type Standing = Members['members'][number]['standing']

const [a, b, c, d] = [nodeId('a'), nodeId('b'), nodeId('c'), nodeId('d')]
const adding = { number: 1, kind: 'add', node: d, seat: 4096, sinceMicros: 0 } as const
const nodes = [
  { id: a, url: 'http://h:1', set: 'main' },
  { id: b, url: 'http://h:2', set: 'main' },
  { id: c, url: 'http://h:3', set: 'main' },
  { id: nodeId('w'), url: 'http://h:9', set: 'west' },
]

/** As a sees them; all of `standings` but the unknown ones are up. */
function parts(
  standings: Readonly<Record<string, Standing>>,
  change?: Members['change'],
): SeenParts {
  const members = Object.entries(standings).map(([id, standing]) => {
    return { node: nodeId(id), standing, isAlive: standing !== 'unknown' }
  })
  const peers = members.flatMap(({ node, isAlive: isUp }) =>
    node === a ? [] : [{ node, isUp, isSuspected: !isUp }],
  )
  return {
    ...{ node: a, nodes, peerUrls: new Map([[d, 'http://h:4']]) },
    replica: {
      peers,
      members: {
        ...{ epoch: 1, standing: 'voting', blockedGroups: 0, members, canLose: 0 },
        ...(change !== undefined && { change }),
      },
    },
  }
}

test('before the stores are open, the nodes are those of the configuration that no set waits for', () => {
  const late = [...nodes, { id: d, url: 'http://h:4', set: 'main', joins: true as const }]
  const ids = (node: typeof a): readonly string[] =>
    listSeenNodes({ node, nodes: late, replica: undefined }).map(({ id }) => id)
  expect(ids(a)).toEqual(['a', 'b', 'c'])
  expect(ids(d)).toEqual(['a', 'b', 'c', 'd'])
})

test('a node that joins is seen at its address, and no majority is of it before its epoch', () => {
  const standings = { a: 'voting', b: 'voting', c: 'unknown', d: 'newcomer' } as const
  const copying = parts(standings, { ...adding, phase: 'copying' })
  const seen = listSeenNodes(copying)
  expect(seen.map(({ id, url }) => `${id} ${url}`)).toEqual([
    ...['a http://h:1', 'b http://h:2', 'c http://h:3', 'd http://h:4'],
  ])
  expect(seen.at(-1)).toMatchObject({ isUp: true, hasNoVote: true, isJoining: true })
  expect(spareNodes(seen)).toBe(0)
  const sealing = parts({ ...standings, d: 'before-gate' }, { ...adding, phase: 'sealing' })
  expect(spareNodes(listSeenNodes(sealing))).toBe(-1)
  expect(spareNodes(listSeenNodes(parts({ ...standings, d: 'voting' })))).toBe(0)
})

test('a node that was removed is seen no more, and one of an unknown address is', () => {
  const seen = listSeenNodes(parts({ a: 'voting', d: 'voting', e: 'voting' }))
  expect(seen.map(({ id, url }) => [id, url])).toEqual([
    ...[
      ['a', 'http://h:1'],
      ['d', 'http://h:4'],
      ['e', ''],
    ],
  ])
  expect(spareNodes(seen)).toBe(1)
})

test('the status says how a node that joins is to be started', () => {
  const { replica } = parts({ a: 'voting' }, { ...adding, phase: 'copying' })
  expect(replica && describeMembers(replica.members)).toEqual([
    'change 1: d joins with an empty store; start it with an empty data folder and --seat 4096, if it does not run (trilithon nodes list)',
  ])
})
