/** The requests of a node for the buckets of its set, and its word on groups that the set may have begun. */
import { expect, test } from 'vitest'
import type { GroupId } from '../../src/base/ids.ts'
import { ownVersions } from '../../src/base/cluster-version.ts'
import { tablesPrefix } from '../../src/base/placed-group.ts'
import { encodeShares } from '../../src/members/shares-row.ts'
import { ShareRequests, type ShareRequestsParts } from '../../src/members/share-requests.ts'
import type { GroupLook } from '../../src/members/seal-pages.ts'
import { VersionGate } from '../../src/members/version-gate.ts'
import type { Share, SharePhase } from '../../src/placement/shares.ts'
import type { GroupEvent } from '../../src/replication/group.ts'
import { acceptance } from './gate-kit.ts'
import { groupNamed, Member, n1, renewedTo } from './epochs-kit.ts'

const group = groupNamed(`${tablesPrefix}a`)
const nothing: GroupLook = { applied: 0, open: [], damaged: [] }

function shareIn(phase: SharePhase, rest: Partial<Share> = {}): Share {
  const buckets = Array.from({ length: 4096 }, (_, bucket) => bucket)
  return { phase, set: 'west', term: 1, buckets, epoch: 2, began: [], ...rest }
}

/** A voter of epoch 2, in which its set has closed all buckets. */
class Node {
  readonly member: Member = new Member()
  readonly waking: GroupEvent[] = []
  look: GroupLook = nothing
  isRestored = true
  share: Share
  readonly shares: ShareRequests

  constructor(phase: SharePhase, isPastGate = true) {
    this.share = shareIn(phase)
    const { epochs } = this.member
    epochs.enter(renewedTo(2), () => undefined)
    this.member.keep()
    if (isPastGate) epochs.pass([], () => undefined)
    this.member.keep()
    const notAsked = (): Promise<never> => Promise.reject(new Error('not asked'))
    const parts: ShareRequestsParts = {
      ...{
        node: n1,
        group: groupNamed('set'),
        run: 'run',
        epochs,
        gate: new VersionGate(ownVersions),
      },
      get: () => encodeShares([this.share]),
      log: { heldGroups: (): Iterable<GroupId> => [group], sync: () => Promise.resolve() },
      mover: { request: notAsked },
      ...{ readCurrent: notAsked, submit: notAsked, stamp: () => 1 },
      applied: () => this.look.applied,
      look: () => this.look,
      isRestored: () => this.isRestored,
      stepWaiting: (event) => this.waking.push(event),
      isOfName: () => true,
    }
    this.shares = new ShareRequests(parts)
    this.shares.follow(2)
  }

  get isVoid(): boolean {
    return this.shares.isVoid(group, this.share)
  }
}

test('transactions that wait for a group of a bucket go on when another row of the buckets is applied', () => {
  const node = new Node('closed')
  expect(node.waking).toEqual([{ kind: 'wake' }])
  node.shares.follow(2)
  expect(node.waking, 'the same row').toHaveLength(1)
  node.share = shareIn('settled')
  node.shares.follow(2)
  expect(node.waking).toHaveLength(2)
})

test('MOVE-15: the set has begun nothing of a group of which a voter behind the gate has nothing, where the list lacks it', () => {
  expect(new Node('settled').isVoid).toBe(true)
  expect(new Node('settled', false).isVoid, 'before its gate').toBe(false)
  for (const phase of ['leaving', 'closed', 'gone', 'here'] as const) {
    expect(new Node(phase).isVoid, phase).toBe(false)
  }
  const node = new Node('settled')
  node.share = shareIn('settled', { began: [group] })
  expect(node.isVoid, 'listed').toBe(false)
})

test.each([
  ['has applied an entry of the group', { ...nothing, applied: 1 }, true],
  ['has accepted an entry', { ...nothing, open: [acceptance(1)] }, true],
  ['cannot read what it has accepted', { ...nothing, damaged: [1] }, true],
  ['has lost its data store', nothing, false],
])(
  'MOVE-15: a voter that %s does not say that the set has begun nothing of it',
  (_, look, isRestored) => {
    const node = new Node('settled')
    node.look = look
    node.isRestored = isRestored
    expect(node.isVoid).toBe(false)
  },
)

test('MOVE-15: a node that has lost its data store sweeps no groups, and tells no list of those that may have begun', async () => {
  const node = new Node('closed')
  expect(node.shares.isBehindGate(2)).toBe(true)
  node.isRestored = false
  expect(node.shares.isBehindGate(2)).toBe(false)
  await expect(node.shares.settle()).rejects.toThrow('takes up what it has lost')
})
