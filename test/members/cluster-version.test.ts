/** The cluster version in the row of a set: its rise, changes that keep it, and a node whose build does not support it. */
import { expect, test } from 'vitest'
import type { Versions } from '../../src/base/cluster-version.ts'
import { StoreError } from '../../src/base/errors.ts'
import { nodeId, storeId, type NodeId } from '../../src/base/ids.ts'
import {
  beginAdd,
  beginRenew,
  beginReplace,
  firstRow,
  giveUp,
  raiseVersion,
  recordRecovery,
  versionOf,
  type SetRow,
} from '../../src/members/change.ts'
import { checkSupported, raised, type RaisingParts } from '../../src/members/raising.ts'
import { decodeRow, encodeRow } from '../../src/members/row-codec.ts'
import { SetVersion, UnsupportedVersion } from '../../src/members/set-version.ts'
import { VersionGate } from '../../src/members/version-gate.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'
import { SetNodes } from '../../src/placement/set-nodes.ts'
import type { EpochMessage } from '../../src/replication/message.ts'
import { RecordedTrace } from './epochs-kit.ts'

const [n1, n2, n3, r] = [nodeId('n1'), nodeId('n2'), nodeId('n3'), nodeId('r')]
const store = storeId('a1f0c7de-9a52-4c0b-8f43-0d3c5d0a9a11')
const both: Versions = { min: 1, max: 2 }
const old: Versions = { min: 1, max: 1 }
const second = raiseVersion(firstRow, 2)

test('UPG-2: a version rises by one, and all that changes a row keeps it', () => {
  expect([versionOf(firstRow), versionOf(second)]).toEqual([1, 2])
  for (const to of [1, 2, 4]) expect(() => raiseVersion(second, to)).toThrow('UPG-2')
  const copying = beginReplace(second, n2, 4_100, 1)
  const recovered = recordRecovery(second, { epoch: 1_002, voters: [n1], lastSeat: 0 }, 1)
  const rows = [copying, beginRenew(second, 1), giveUp(copying, 2), recovered]
  expect(rows.map(versionOf)).toEqual([2, 2, 2, 2])
})

test('UPG-3: a row of the first version has the bytes of before; of a later one no build of before reads it', () => {
  expect(encodeRow(firstRow)[1]).toBe(1)
  expect(encodeRow({ ...firstRow, readers: new Map([[r, { store, seat: 0 }]]) })[1]).toBe(2)
  const bytes = encodeRow(second)
  expect(bytes[1]).toBe(3)
  expect(decodeRow(bytes)).toEqual(second)
  expect(decodeRow(bytes, old)).toBe(undefined)
  expect(decodeRow(encodeRow(firstRow), old)).toEqual(firstRow)
  const withReader = { ...second, readers: new Map([[r, { store, seat: 7 }]]) }
  expect(decodeRow(encodeRow(withReader))).toEqual(withReader)
})

test('UPG-3: a feature is used only once its version is in force', () => {
  const gate = new VersionGate(both)
  expect([gate.inForce, gate.allows('told-version')]).toEqual([1, false])
  expect(() => gate.use('told-version')).toThrow('UPG-3')
  gate.apply(2)
  gate.use('told-version')
  expect(gate.inForce).toBe(2)
  expect(() => gate.apply(3)).toThrow('UPG-1')
  expect([new VersionGate(old).knowsVersions, gate.knowsVersions]).toEqual([false, true])
})

class Bench implements RaisingParts {
  readonly node = n1
  readonly supports: Versions
  row: SetRow = firstRow
  readonly links = new Map<NodeId, Versions>([
    [n2, both],
    [n3, both],
  ])
  readonly silent = new Set<NodeId>()
  readonly sent: (readonly [NodeId, EpochMessage])[] = []
  readonly trace = new RecordedTrace()
  readonly version: SetVersion
  checks = 0

  constructor(supports: Versions = both) {
    this.supports = supports
    this.version = new SetVersion({
      ...{ gate: new VersionGate(supports), trace: this.trace },
      nodes: new SetNodes(n1, [n1, n2, n3]),
      peers: () => ({ checkVersions: () => (this.checks += 1) }),
      send: (...sent) => this.sent.push(sent),
    })
  }

  readonly votersOf = ({ voters = [n1, n2, n3] }: SetRow): readonly NodeId[] => voters
  readonly linkOf = (peer: NodeId): LinkInfo | undefined => {
    const supports = this.links.get(peer)
    // A build of the first version tells of none.
    return supports && (supports.max === 1 ? {} : { supports })
  }
  readonly isHeardOf = (peer: NodeId): boolean => !this.silent.has(peer)
  readonly versionAt = (peer: NodeId): number | undefined => this.version.at(peer)

  raise(to: number): string | number {
    try {
      checkSupported(this, to)
      this.row = raised(this, this.row, to) ?? this.row
      return versionOf(this.row)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return `${error.code}: ${error.message}`
    }
  }
}

test('UPG-2: a version is raised once, and not before each member is heard of and supports it', () => {
  const bench = new Bench()
  bench.links.set(n3, old)
  const refused = 'unavailable: n3 runs a build that supports cluster version 1: upgrade it first.'
  expect(bench.raise(2)).toBe(refused)
  bench.links.delete(n3)
  const silent = /^unavailable: n3 does not answer here/
  expect(bench.raise(2)).toMatch(silent)
  bench.links.set(n3, both)
  bench.silent.add(n3)
  expect(bench.raise(2)).toMatch(silent)
  expect(versionOf(bench.row)).toBe(1)
  bench.silent.clear()
  expect([bench.raise(2), versionOf(bench.row)]).toEqual([2, 2])
  // Once more, though a node is away by now.
  bench.silent.add(n2)
  expect(bench.raise(2)).toBe(2)
  expect(bench.raise(3)).toMatch(/^invalid: This node supports cluster versions 1 to 2/)
})

test.each([
  ['a read-only member', { ...firstRow, readers: new Map([[r, { store, seat: 0 }]]) }],
  ['a newcomer', beginAdd(firstRow, { node: r, url: 'http://h:4', seat: 4_100 }, 1)],
])('UPG-2: the version waits for %s', (_, row) => {
  const bench = new Bench()
  bench.row = row
  expect(bench.raise(2)).toMatch(/^unavailable: r does not answer/)
  bench.links.set(r, old)
  expect(bench.raise(2)).toMatch(/^unavailable: r runs a build that supports/)
  bench.links.set(r, both)
  expect(bench.raise(2)).toBe(2)
})

test('UPG-2: a third version waits until all have put the second one in force, and passes over none', () => {
  const bench = new Bench({ min: 1, max: 3 })
  for (const node of [n2, n3]) bench.links.set(node, { min: 1, max: 3 })
  expect(bench.raise(3)).toMatch(/^invalid: Cluster version 1 is in force: version 2 comes/)
  expect(bench.raise(2)).toBe(2)
  bench.version.hear(n2, 2)
  expect(bench.raise(3)).toMatch(/^unavailable: n3 has not put cluster version 2 in force/)
  bench.version.hear(n3, 2)
  expect(bench.raise(3)).toBe(3)
})

test('UPG-3: a node tells its version once it is in force, and to each link that begins', () => {
  const bench = new Bench()
  bench.version.tellAll()
  bench.version.onJoined(n2)
  expect(bench.sent).toEqual([])
  bench.version.apply(2)
  const told = { kind: 'version', inForce: 2 }
  expect(bench.sent.splice(0)).toEqual([
    [n2, told],
    [n3, told],
  ])
  expect([bench.checks, bench.trace.marks]).toEqual([1, ['version_applied']])
  bench.version.apply(2)
  expect(bench.sent).toEqual([])
  bench.version.hear(n3, 2)
  expect(bench.version.at(n3)).toBe(2)
  bench.version.onJoined(n3)
  expect([bench.version.at(n3), bench.sent]).toEqual([undefined, [[n3, told]]])
})

test('UPG-1: a row of a version that the build does not support is refused in words', () => {
  const read = (supports: Versions, row: SetRow): string => {
    try {
      return String(versionOf(new Bench(supports).version.read(encodeRow(row))))
    } catch (error) {
      if (!(error instanceof UnsupportedVersion)) throw error
      return error.message
    }
  }
  expect([read(both, firstRow), read(both, second), read(old, firstRow)]).toEqual(['1', '2', '1'])
  expect(read(both, { ...firstRow, version: 3 })).toBe(
    'Cluster version 3 is in force in this replica set, and this build supports cluster versions 1 to 2: start the node with the build that ran it before.',
  )
  expect(read(old, second)).toMatch(/^A later cluster version is in force in this replica set/)
  expect(read({ min: 2, max: 3 }, firstRow)).toMatch(/^Cluster version 1 is in force/)
  const bench = new Bench(old)
  bench.version.hear(n2, 2)
  expect(bench.version.at(n2)).toBe(undefined)
})

test('a change is given up by its number, and no other one', () => {
  const copying = beginReplace(firstRow, n2, 4_100, 1)
  expect(giveUp(copying, 2, 1).change?.phase).toBe('given-up')
  expect(() => giveUp(copying, 2, 2)).toThrow('has no change 2 under way: its last one is 1')
  expect(() => giveUp(firstRow, 2, 1)).toThrow('has no change 1 under way: it has had none')
})
