/** The seal of a node, as it tells it page by page. */
import { expect, test } from 'vitest'
import type { GroupId, NodeId, Position } from '../../src/base/ids.ts'
import { firstEpochs } from '../../src/log/own-epochs.ts'
import { SealPages, type GroupLook } from '../../src/members/seal-pages.ts'
import type { Work } from '../../src/peers/slices.ts'
import type { OpenAcceptance, SealPage, SealRequest } from '../../src/replication/message.ts'
import { whole } from '../log/whole.ts'
import { groupNamed, Member, n2, n3, renewedTo, type MemberOptions } from './epochs-kit.ts'

const names = ['a', 'b', 'c', 'd'] as const
const [a, b, c, d] = [groupNamed('a'), groupNamed('b'), groupNamed('c'), groupNamed('d')]

function acceptance(position: Position, epoch = 1, bytes = 10): OpenAcceptance {
  const ballot = { epoch, round: 1, node: n2, incarnation: 1 }
  return { position, ballot, value: Buffer.alloc(bytes, position) }
}

/** A node that has sealed epoch 1, and answers questions. */
class Sealed {
  readonly member: Member
  readonly looks = new Map<GroupId, GroupLook>()
  readonly sent: (readonly [NodeId, SealPage])[] = []
  readonly works: (readonly [lane: string, work: Work])[] = []
  readonly log = { durableFlush: 20, heldGroups: (): Iterable<GroupId> => this.looks.keys() }
  isSound = true
  readonly #pages: SealPages

  constructor(bytesMax = 10_000, options: MemberOptions = {}) {
    this.member = new Member(options)
    const { epochs, trace } = this.member
    this.#pages = new SealPages({
      ...{ epochs, trace, limits: { catchUpBytesMax: bytesMax }, log: this.log },
      isSound: () => this.isSound,
      look: (group) => this.looks.get(group) ?? { applied: 0, open: [], damaged: [] },
      later: (lane, work) => this.works.push([lane, work]),
      send: (to, page) => this.sent.push([to, page]),
    })
  }

  seal(): this {
    this.member.epochs.enter(renewedTo(2), () => undefined)
    this.member.keep()
    return this
  }

  hold(group: GroupId, applied: Position, ...open: readonly OpenAcceptance[]): this {
    this.looks.set(group, { applied, open, damaged: [] })
    return this
  }

  ask(request: Partial<SealRequest> = {}): void {
    this.#pages.ask(n3, { kind: 'seal-request', epoch: 2, ...request })
  }

  /** The answer to a question; undefined: there is none. */
  answer(request: Partial<SealRequest> = {}): SealPage | undefined {
    this.sent.length = 0
    this.ask(request)
    for (const [, { pieces }] of this.works.splice(0)) whole(pieces)
    return this.sent.at(0)?.[1]
  }
}

test('MOVE-2: a seal tells how far the flushes go, and all open acceptances of the epoch before', () => {
  const node = new Sealed().hold(b, 4, acceptance(5), acceptance(7)).hold(a, 9, acceptance(10))
  node.hold(c, 3).seal()
  expect(node.answer()).toEqual({
    ...{ kind: 'seal-page', epoch: 2, through: 20 },
    groups: [
      { group: a, applied: 9, open: [acceptance(10)] },
      { group: b, applied: 4, open: [acceptance(5), acceptance(7)] },
    ],
  })
  expect(node.sent.map(([to]) => to)).toEqual([n3])
})

test('MOVE-2: a seal leaves out what the node has accepted in the present epoch', () => {
  const node = new Sealed().hold(a, 4, acceptance(5, 2), acceptance(6, 1), acceptance(7, 2)).seal()
  node.hold(b, 4, acceptance(5, 2))
  expect(node.answer()?.groups).toEqual([
    { group: a, applied: 4, open: [acceptance(6, 1)] },
    { group: b, applied: 4, open: [] },
  ])
})

test('MOVE-2: acceptances of all earlier epochs stand in a seal', () => {
  const node = new Sealed().hold(a, 4, acceptance(5, 1), acceptance(6, 2)).seal()
  node.member.epochs.pass([], () => undefined)
  node.member.epochs.enter(renewedTo(3), () => undefined)
  node.member.keep()
  expect(node.answer({ epoch: 3 })?.groups).toEqual([
    { group: a, applied: 4, open: [acceptance(5, 1), acceptance(6, 2)] },
  ])
})

test('MOVE-3: a seal counts for nothing in a group with a damaged record, or outside of the last gate', () => {
  const node = new Sealed().hold(c, 1, acceptance(2))
  node.member.epochs.enter(renewedTo(2), () => undefined)
  // The log holds nothing of d, which the gate had left out.
  node.member.epochs.pass([c, d], () => undefined)
  node.member.epochs.enter(renewedTo(3), () => undefined)
  node.member.keep()
  node.looks.set(a, { applied: 8, open: [acceptance(9)], damaged: [10] })
  node.hold(b, 1, acceptance(2))
  expect(node.answer({ epoch: 3 })?.groups).toEqual([
    { group: a, applied: 8, open: undefined },
    { group: b, applied: 1, open: [acceptance(2)] },
    { group: c, applied: 1, open: undefined },
    { group: d, applied: 0, open: undefined },
  ])
})

test('a page ends with the group that fills it, and the next one goes on behind that', () => {
  const node = new Sealed(150)
  for (const name of names.toReversed()) node.hold(groupNamed(name), 0, acceptance(1))
  node.seal()
  const first = node.answer()
  expect(first?.groups.map(({ group }) => group)).toEqual([a, b])
  expect([first?.after, first?.next]).toEqual([undefined, b])
  const second = node.answer({ after: b })
  expect(second?.groups.map(({ group }) => group)).toEqual([c, d])
  expect([second?.after, second?.next]).toEqual([b, undefined])
  expect(second).not.toHaveProperty('next')
  expect(node.answer({ after: d })).toMatchObject({ after: d, groups: [] })
})

test('a page is as long as its values, and has one group at least', () => {
  const node = new Sealed(150)
    .hold(a, 0, acceptance(1, 1, 9_000))
    .hold(b, 0, acceptance(1))
    .seal()
  const first = node.answer()
  expect([first?.groups.map(({ group }) => group), first?.next]).toEqual([[a], a])
  expect(node.answer({ after: a })?.groups.map(({ group }) => group)).toEqual([b])
})

test('groups with nothing to tell fill no page, and end none', () => {
  const node = new Sealed(70).hold(a, 0, acceptance(1)).hold(b, 3).hold(c, 3).seal()
  expect(node.answer()).toMatchObject({ groups: [{ group: a }], next: a })
  expect(node.answer({ after: a })).not.toHaveProperty('next')
  expect(new Sealed().seal().answer()).toMatchObject({ groups: [], through: 20 })
})

test('LIVE-6: each piece of the work yields the bytes that it took', () => {
  const node = new Sealed()
  for (const name of names) node.hold(groupNamed(name), 0, acceptance(1))
  node.seal().ask()
  const [[lane, work] = []] = node.works
  if (work === undefined) throw new Error('no work')
  const yielded: number[] = []
  for (let piece = work.pieces.next(); piece.done !== true; piece = work.pieces.next()) {
    yielded.push(piece.value)
  }
  expect(lane).toBe(`seal for ${n3}`)
  const ofOne = 64 + 64 + 10
  expect(yielded).toHaveLength(names.length)
  expect(Math.max(...yielded)).toBe(ofOne)
})

test('MOVE-2: a node gives no seal before it is durable', () => {
  const node = new Sealed().hold(a, 0, acceptance(1))
  expect(node.answer(), 'in the epoch before').toBe(undefined)
  node.member.epochs.enter(renewedTo(2), () => undefined)
  expect(node.answer()).toBe(undefined)
  expect(node.member.trace.marks).toContain('seal_asked_of_node_without_one')
  node.member.keep()
  expect(node.answer()).toBeDefined()
})

test('MOVE-2: a node that does not know where it has voted gives no seal', () => {
  const node = new Sealed().hold(a, 0, acceptance(1)).seal()
  node.isSound = false
  expect(node.answer()).toBe(undefined)
  node.isSound = true
  expect(node.answer()).toBeDefined()
})

test('MOVE-3: a node that had not passed the gate of the epoch before gives no seal', () => {
  const late = new Sealed(10_000, { own: { ...firstEpochs, epoch: 2, gated: 1 } })
  late.member.epochs.enter(renewedTo(3), () => undefined)
  late.member.keep()
  expect(late.answer({ epoch: 3 })).toBe(undefined)
})

test('MOVE-2: a question about another epoch gets no answer', () => {
  const node = new Sealed().seal()
  expect([1, 3].map((epoch) => node.answer({ epoch }))).toEqual([undefined, undefined])
})

test('MOVE-2: a seal that ends while its page is put together is not told', () => {
  const node = new Sealed().hold(a, 0, acceptance(1)).hold(b, 0, acceptance(1)).seal()
  node.ask()
  const [[, work] = []] = node.works
  work?.pieces.next()
  node.member.epochs.pass([], () => undefined)
  node.member.keep()
  node.member.epochs.enter(renewedTo(3), () => undefined)
  node.member.keep()
  if (work !== undefined) whole(work.pieces)
  expect(node.sent).toEqual([])
})

test('MOVE-2: a seal names the flushes that were durable before its groups were looked at', () => {
  const node = new Sealed().hold(a, 0, acceptance(1)).seal()
  node.ask()
  const [[, work] = []] = node.works
  work?.pieces.next()
  node.log.durableFlush = 30
  if (work !== undefined) whole(work.pieces)
  expect(node.sent.map(([, { through }]) => through)).toEqual([20])
})

test('MOVE-2: a node gives no seal before the flush is durable that holds what it accepted before', () => {
  const node = new Sealed().hold(a, 0, acceptance(1))
  node.member.flushes.last = 21
  node.seal()
  expect([node.member.epochs.isKept, node.answer()]).toEqual([true, undefined])
  node.member.flushes.durable = 21
  expect(node.answer()).toBeDefined()
})
