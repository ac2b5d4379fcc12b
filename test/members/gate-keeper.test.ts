/** The gate of an epoch at one node: the seals that count, the acceptances that it carries, the groups that it blocks. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { firstEpochs } from '../../src/log/own-epochs.ts'
import { groupNamed, n1, n2, n3, renewedTo } from './epochs-kit.ts'
import { acceptance, AtGate, damaged, lateVoter, page, sealed } from './gate-kit.ts'

const [a, b, c] = [groupNamed('a'), groupNamed('b'), groupNamed('c')]
const [n4, n5] = [nodeId('n4'), nodeId('n5')]

test('MOVE-3: a voter whose own seal is sound needs one more of three, and tells of the gate once it is durable', async () => {
  const node = new AtGate()
  node.go()
  expect(node.asked()).toEqual([
    [n2, undefined],
    [n3, undefined],
  ])
  expect(node.syncing).toBe(0)
  node.tell(n2)
  expect([node.syncing, node.isThrough]).toEqual([1, false])
  await node.synced()
  expect([node.isThrough, node.passed]).toEqual([true, 0])
  expect(node.member.trace.marks).toContain('gate_passed')
  node.member.keep()
  expect([node.passed, node.keeper.isBusy]).toEqual([1, false])
})

test.each([
  ['of a node that had no vote', lateVoter, true],
  ['of a node that does not know where it has voted', {}, false],
])('MOVE-3: the own seal %s does not count', async (_, options, isSound) => {
  const node = new AtGate(options)
  node.isSound = isSound
  node.go()
  node.tell(n2)
  expect(node.syncing).toBe(0)
  node.tell(n3)
  expect(node.syncing).toBe(1)
  await node.synced()
  expect(node.isThrough).toBe(true)
})

test('MOVE-3: a node whose own seal is unsound needs the directories of the voters that it counts', async () => {
  const node = new AtGate(lateVoter)
  node.nameless = [n3]
  node.go()
  node.tell(n2)
  node.tell(n3)
  expect([[...node.required], node.syncing]).toEqual([[n2, n3], 0])
  node.nameless = []
  node.go()
  await node.synced()
  expect(node.isThrough).toBe(true)
  const sound = new AtGate()
  sound.nameless = [n2, n3]
  sound.go()
  sound.tell(n2)
  await sound.synced()
  expect([sound.required.size, sound.isThrough]).toEqual([0, true])
})

test('MOVE-3: of five voters three seals count, whichever they are', async () => {
  const node = new AtGate(lateVoter, [n2, n3, n4, n5])
  node.go()
  for (const peer of [n5, n3]) {
    node.here.set(peer, 10)
    node.tell(peer)
    node.tell(peer)
  }
  expect(node.syncing).toBe(0)
  node.tell(n2)
  await node.synced()
  expect(node.isThrough).toBe(true)
})

test('MOVE-3: open acceptances are carried, and the gate waits until the log has them', async () => {
  const node = new AtGate()
  node.looks.set(b, { applied: 3, open: [acceptance(4, 2)], damaged: [] })
  node.isCarrying = false
  node.go()
  node.tell(n2, sealed(a, 0, acceptance(1), acceptance(3)), sealed(b, 3, acceptance(4, 1)))
  const carried = node.stepped.map(([group, event]) => [group, event])
  expect(carried).toContainEqual([
    a,
    { kind: 'carry', acceptances: [acceptance(1), acceptance(3)] },
  ])
  expect(node.syncing).toBe(0)
  node.isCarrying = true
  node.go()
  expect(node.looks.get(a)?.open).toEqual([acceptance(1), acceptance(3)])
  node.go()
  expect(node.syncing).toBe(1)
  await node.synced()
  expect(node.isThrough).toBe(true)
  expect(node.looks.get(b)?.open, 'of a higher ballot').toEqual([acceptance(4, 2)])
})

test('MOVE-3: the gate waits for the batch of the data store that was under way', async () => {
  const node = new AtGate()
  node.data.lastBatch = 3
  node.data.durableBatch = 2
  node.go()
  node.tell(n2)
  expect(node.syncing).toBe(0)
  // Later batches bring what no seal told of.
  node.data.lastBatch = 4
  node.data.durableBatch = 3
  node.go()
  await node.synced()
  expect(node.isThrough).toBe(true)
})

test('MOVE-3: an acceptance of a lower ballot does not stand for the one that a seal tells of', () => {
  const node = new AtGate()
  node.looks.set(a, { applied: 0, open: [acceptance(1, 1)], damaged: [] })
  node.isCarrying = false
  node.go()
  node.tell(n2, sealed(a, 0, acceptance(1, 2)))
  node.go()
  expect(node.syncing).toBe(0)
  node.looks.set(a, { applied: 0, open: [acceptance(1, 2)], damaged: [] })
  node.go()
  expect(node.syncing).toBe(1)
})

test('MOVE-3: the gate waits for what a seal tells as applied; a position that is applied needs no acceptance', () => {
  const node = new AtGate()
  node.isCarrying = false
  node.looks.set(a, { applied: 4, open: [], damaged: [] })
  node.go()
  node.tell(n2, sealed(a, 5, acceptance(6)), sealed(b, 3))
  expect(node.syncing).toBe(0)
  node.looks.set(a, { applied: 5, open: [], damaged: [] })
  node.looks.set(b, { applied: 3, open: [], damaged: [] })
  node.go()
  expect(node.syncing).toBe(0)
  node.looks.set(b, { applied: 2, open: [], damaged: [] })
  node.looks.set(a, { applied: 6, open: [], damaged: [] })
  node.go()
  expect(node.syncing).toBe(0)
  node.looks.set(b, { applied: 3, open: [], damaged: [] })
  node.looks.set(a, { applied: 6, open: [], damaged: [] })
  node.go()
  expect(node.syncing).toBe(1)
})

test('MOVE-3: the gate waits until all is here that the flushes through the seal name', () => {
  const node = new AtGate()
  node.here.set(n2, 9)
  node.go()
  node.tell(n2)
  expect(node.digests).toEqual([n2])
  expect(node.syncing).toBe(0)
  node.go()
  expect(node.digests, 'asked for again').toEqual([n2, n2])
  node.here.set(n2, 10)
  node.go()
  expect(node.syncing).toBe(1)
})

test('MOVE-3: a position that a flush names is here when it is applied, or its group stands in the seal', () => {
  const node = new AtGate()
  node.looks.set(a, { applied: 1, open: [], damaged: [] })
  node.lacking = [
    [a, 2],
    [b, 7],
  ]
  node.go()
  node.tell(n2, sealed(b, 0, acceptance(7)))
  node.go()
  expect(node.syncing).toBe(0)
  node.looks.set(a, { applied: 2, open: [], damaged: [] })
  node.go()
  expect(node.syncing).toBe(1)
})

test('MOVE-3: a seal counts with its last page, and its flushes go as far as its highest page says', () => {
  const node = new AtGate()
  node.go()
  node.asked()
  node.keeper.onPage(n2, page([sealed(a, 0, acceptance(1))], { through: 12, next: a }))
  expect(node.asked()).toEqual([[n2, a]])
  expect(node.digests).toEqual([])
  node.keeper.onPage(n2, page([], { after: a, through: 11 }))
  expect(node.syncing).toBe(0)
  node.here.set(n2, 11)
  node.go()
  expect(node.syncing).toBe(0)
  node.here.set(n2, 12)
  node.go()
  expect(node.syncing).toBe(1)
})

test('MOVE-3: a page that is not the next one is dropped', () => {
  const node = new AtGate()
  node.keeper.onPage(n2, page([]))
  expect(node.digests, 'before a question').toEqual([])
  node.go()
  const first = page([sealed(a, 0, acceptance(1))], { next: a, through: 99 })
  node.keeper.onPage(n2, page([], { after: b }))
  node.keeper.onPage(n2, first)
  node.keeper.onPage(n2, first)
  node.keeper.onPage(n2, page([]))
  expect([node.digests, node.stepped.length]).toEqual([[], 1])
  node.keeper.onPage(n2, page([], { after: a }))
  expect(node.digests).toEqual([n2])
})

test('MOVE-3: a voter that votes on past its gate keeps no other one outside by its later acceptances', async () => {
  const node = new AtGate()
  node.lacking = [[b, 9]]
  node.go()
  node.keeper.onPage(n2, page([]))
  node.go(200)
  expect(node.syncing, 'a digest names what no page tells of').toBe(0)
  // Its acceptance is of this epoch: the page leaves that out, and tells how far the group is applied.
  node.keeper.onPage(n2, page([sealed(b, 0)]))
  node.go()
  await node.synced()
  expect(node.isThrough).toBe(true)
})

test('MOVE-3: a group that others write on, faster than this node takes it up, keeps it outside for no longer than the seal says', () => {
  const node = new AtGate()
  node.lacking = [[a, 5]]
  node.go()
  node.tell(n2, sealed(b, 4))
  node.looks.set(a, { applied: 4, open: [], damaged: [] })
  node.looks.set(b, { applied: 3, open: [], damaged: [] })
  node.go()
  expect(node.syncing).toBe(0)
  // A digest and a page of later: the voter has gone on.
  node.lacking = [[a, 9]]
  node.tell(n2, sealed(b, 8))
  node.looks.set(a, { applied: 5, open: [], damaged: [] })
  node.go()
  expect(node.syncing, 'what the seal told of b is lacking').toBe(0)
  node.looks.set(b, { applied: 4, open: [], damaged: [] })
  node.go()
  expect(node.syncing).toBe(1)
})

test('MOVE-3: the node goes after what a seal tells as applied, at the voter that tells it', () => {
  const node = new AtGate()
  node.looks.set(a, { applied: 4, open: [], damaged: [] })
  node.aside = [c]
  node.go()
  node.tell(n2, sealed(a, 4), sealed(b, 3), sealed(c, 3))
  expect(node.stepped).toEqual([[b, { kind: 'exists', position: 3, informer: n2 }]])
  node.go()
  expect(node.stepped, 'once for each page').toHaveLength(1)
})

test('MOVE-3: the node goes after what the flushes of a voter that leaves name, at that voter', () => {
  const at = new AtGate()
  const row = { ...renewedTo(3), voters: [n1, n3], before: [n1, n2, n3] }
  at.member.epochs.enter(row, () => undefined)
  at.member.keep()
  at.lacking = [
    [a, 5],
    [b, 2],
  ]
  at.looks.set(b, { applied: 2, open: [], damaged: [] })
  at.go()
  for (const voter of [n2, n3]) at.keeper.onPage(voter, page([], { epoch: 3 }))
  at.stepped.splice(0)
  at.go()
  // Its group asks the other voters for it.
  expect(at.stepped).toEqual([[a, { kind: 'exists', position: 5, informer: n2 }]])
  at.looks.set(a, { applied: 5, open: [], damaged: [] })
  at.stepped.splice(0)
  at.go()
  expect(at.stepped).toEqual([])
})

test('the node asks again for a seal that does not come, from where its pages end, and no sooner', () => {
  const node = new AtGate()
  node.go()
  expect(node.asked()).toHaveLength(2)
  node.go(199)
  expect(node.asked()).toEqual([])
  node.keeper.onPage(n3, page([sealed(a, 0)], { next: a }))
  expect(node.asked()).toEqual([[n3, a]])
  node.go(1)
  expect(node.asked()).toEqual([[n2, undefined]])
  node.go(199)
  expect(node.asked()).toEqual([[n3, a]])
})

test('the node asks a voter that seals at once for the rest of its seal', () => {
  const node = new AtGate()
  node.go()
  node.keeper.onPage(n3, page([sealed(a, 0)], { next: a }))
  node.asked()
  node.keeper.onSealed(n2)
  node.keeper.onSealed(n3)
  expect(node.asked()).toEqual([
    [n2, undefined],
    [n3, a],
  ])
  node.here.set(n2, 0)
  node.tell(n2)
  node.keeper.onSealed(n2)
  expect([node.asked(), node.digests], 'of a whole seal').toEqual([[], [n2]])
})

test('MOVE-2: a page with acceptances of its own epoch is not taken up', () => {
  const node = new AtGate()
  node.go()
  node.tell(n2, sealed(a, 0, acceptance(1)), sealed(b, 0, acceptance(1, 1, 2)))
  expect(node.member.trace.marks).toContain('seal_with_acceptances_of_its_epoch')
  expect([node.stepped, node.syncing, node.digests]).toEqual([[], 0, []])
  node.tell(n2, sealed(a, 0, acceptance(1)))
  expect(node.syncing).toBe(1)
})

test('MOVE-2: pages of another epoch are dropped', () => {
  const node = new AtGate()
  node.go()
  for (const epoch of [1, 3]) node.keeper.onPage(n2, page([], { epoch }))
  expect([node.syncing, node.digests]).toEqual([0, []])
})

test('MOVE-2: seals of one epoch count for nothing in the next', async () => {
  const node = new AtGate()
  node.here.set(n2, 9)
  node.go()
  node.tell(n2)
  node.member.epochs.enter(renewedTo(3), () => undefined)
  node.member.keep()
  node.here.set(n2, 10)
  node.asked()
  node.go()
  expect(node.asked()).toEqual([
    [n2, undefined],
    [n3, undefined],
  ])
  expect(node.syncing).toBe(0)
})

test('MOVE-2: a gate that was found open in one epoch is not passed in the next', async () => {
  const node = new AtGate()
  node.go()
  node.tell(n2)
  expect(node.syncing).toBe(1)
  node.member.epochs.enter(renewedTo(3), () => undefined)
  node.member.keep()
  await node.synced()
  expect(node.member.epochs.own).toMatchObject({ epoch: 3, gated: 1 })
})

test('MOVE-2: a node that has yet to make its own seal durable asks for none', () => {
  const node = new AtGate()
  node.member.epochs.enter(renewedTo(3), () => undefined)
  node.go()
  expect([node.keeper.isBusy, node.asked()]).toEqual([false, []])
  node.member.keep()
  node.go()
  expect(node.asked()).toHaveLength(2)
})

test('MOVE-3: a disk that refuses leaves the gate shut, and the owner hears of it', async () => {
  const node = new AtGate()
  node.go()
  node.tell(n2)
  const failure = new Error('disk')
  await node.synced(failure)
  expect([node.isThrough, node.failures]).toEqual([false, [failure]])
})

test('MOVE-3: a group with too few sound seals stays outside alone, until a further seal comes', async () => {
  const node = new AtGate()
  node.go()
  node.tell(n2, damaged(a), sealed(b, 0, acceptance(1)))
  await node.synced()
  node.member.keep()
  const { epochs, trace } = node.member
  expect(epochs.own.blocked).toEqual([a])
  expect([a, b].map((group) => epochs.standingOf(group))).toEqual(['before-gate', 'voting'])
  expect(trace.marks).toContain('gate_passed_with_blocked_groups')
  expect(node.keeper.isBusy).toBe(true)
  node.go()
  expect(node.syncing, 'the same seals').toBe(0)
  node.tell(n3, sealed(a, 0, acceptance(2)), sealed(b, 0, acceptance(9)))
  expect(node.stepped.at(-1)).toEqual([a, { kind: 'carry', acceptances: [acceptance(2)] }])
  expect(
    node.stepped.filter(([group]) => group === b),
    'of a group that votes',
  ).toHaveLength(1)
  node.looks.set(b, { applied: 9, open: [], damaged: [] })
  node.go()
  await node.synced()
  node.member.keep()
  expect([epochs.own.blocked, node.passed, node.keeper.isBusy]).toEqual([[], 2, false])
})

test('MOVE-3: damage in the own log, and groups outside of the last gate, make the own seal count for less', async () => {
  const node = new AtGate({ own: { ...firstEpochs, blocked: [b] } })
  node.looks.set(a, { applied: 0, open: [], damaged: [1] })
  node.go()
  node.tell(n2, sealed(a, 0, acceptance(1)), damaged(c))
  await node.synced()
  expect([...node.member.epochs.own.blocked].sort()).toEqual([a, b, c])
})

test('MOVE-3: after a restart the node asks for the seals anew, for the groups that are blocked', async () => {
  const own = { ...firstEpochs, epoch: 2, gated: 2, soundFor: 2, blocked: [a] }
  const node = new AtGate({ own })
  node.go()
  node.tell(n2, sealed(a, 0, acceptance(1)))
  await node.synced()
  node.member.keep()
  expect([node.member.epochs.own.blocked, node.passed]).toEqual([[], 1])
})

test('MOVE-3: a group that is past the gate goes back behind it for no damage that is found later', async () => {
  const own = { ...firstEpochs, epoch: 2, gated: 2, soundFor: 2, blocked: [a, b] }
  const node = new AtGate({ own })
  node.go()
  node.tell(n2, damaged(c))
  await node.synced()
  expect(node.member.epochs.standingOf(c)).toBe('voting')
  expect(node.member.epochs.own.blocked).toEqual([])
})

test('MOVE-3: a group of a seal that is aside is carried later', () => {
  const node = new AtGate()
  node.aside = [b]
  node.go()
  node.tell(n2, sealed(b, 0, acceptance(1)))
  expect([node.stepped, node.syncing]).toEqual([[], 0])
  node.aside = []
  node.go()
  node.go()
  expect(node.stepped.map(([group]) => group)).toEqual([b])
  expect(node.syncing).toBe(1)
})
