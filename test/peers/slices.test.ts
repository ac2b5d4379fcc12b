/** How much background work one turn does, and how much a node asks of each peer at once. */
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { defaultLimits, type Limits } from '../../src/base/limits.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { Fetches } from '../../src/peers/fetches.ts'
import { Slices } from '../../src/peers/slices.ts'
import { CatchUpReplies } from '../../src/peers/replies.ts'
import type { Fetch } from '../../src/replication/message.ts'
import { HandClock } from '../ports/hand-clock.ts'

const [peer, other] = [nodeId('n2'), nodeId('n3')]

function slicesOf(limits: Partial<Limits>, foreground = () => 0): [Slices, HandClock] {
  const clock = new HandClock()
  const onFailed = (error: unknown): void => expect.fail(String(error))
  const all = { ...defaultLimits, ...limits }
  return [new Slices({ clock, trace: silentTrace, limits: all, foreground, onFailed }), clock]
}

/** A number of pieces of given sizes, each of which takes its time. */
function* pieces(
  done: string[],
  name: string,
  count: number,
  bytes = 0,
  takes = (): void => undefined,
): Generator<number, void> {
  for (let n = 0; n < count; n++) {
    takes()
    done.push(name)
    yield bytes
  }
}

test('LIVE-6: a turn ends with the piece that reaches its time, its number or its bytes', () => {
  for (const [limits, bytes, ms, most] of [
    [{ slicePiecesMax: 3 }, 0, 0, 3],
    [{ sliceBytesMax: 100 }, 40, 0, 3],
    [{ sliceMs: 5 }, 0, 2, 3],
  ] as const) {
    const [slices, clock] = slicesOf(limits)
    const done: string[] = []
    const takes = (): void => void (clock.nowMs += ms)
    slices.add('lane', { name: 'work', pieces: pieces(done, 'x', 7, bytes, takes) })
    const byTurn: number[] = []
    for (let before = 0; clock.turn(); before = done.length) byTurn.push(done.length - before)
    expect(Math.max(...byTurn)).toBe(most)
    expect(done.length).toBe(7)
  }
})

test('LIVE-6: lanes take turns, so that no peer waits for what another one asks', () => {
  const [slices, clock] = slicesOf({ slicePiecesMax: 4 })
  const done: string[] = []
  slices.add('a', { name: 'work', pieces: pieces(done, 'a', 100) })
  slices.add('b', { name: 'work', pieces: pieces(done, 'b', 2) })
  clock.turn()
  expect(done).toEqual(['a', 'b', 'a', 'b'])
})

test('LIVE-6: where others are at work the next slice waits, and else it does not', () => {
  let foreground = 0
  const [slices, clock] = slicesOf({ slicePiecesMax: 1, sliceRests: 2 }, () => foreground)
  const done: string[] = []
  const takes = (): void => void (clock.nowMs += 3)
  slices.add('a', { name: 'work', pieces: pieces(done, 'a', 3, 0, takes) })
  foreground += 1
  clock.turn()
  expect([done.length, clock.turn()]).toEqual([1, false])
  clock.pass(5)
  expect(done.length).toBe(1)
  clock.pass(1)
  expect(done.length).toBe(2)
  expect([clock.turn(), done.length]).toEqual([true, 3])
})

function fetchesOf(fetchesMax: number, hasRoom = () => true) {
  const awaited = { name: '' }
  const [slices, clock] = slicesOf({})
  const sent: string[] = []
  const fetches = new Fetches({
    ...{ limits: { ...defaultLimits, fetchesMax }, clock, trace: silentTrace, slices, hasRoom },
    send: (to, { group, from, isAwaited }) =>
      void sent.push(`${to} ${group} ${from}${isAwaited ? ' awaited' : ''}`),
    applied: (group) => (group === groupOf('done') ? 9 : undefined),
    isAwaited: (group) => group === groupOf(awaited.name),
    onTurn: (group, position, informer) =>
      fetches.ask(informer, { ...fetchOf(group), through: position }),
  })
  return { fetches, clock, sent, awaited }
}

function groupOf(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

function fetchOf(group: GroupId, isAwaited = false): Fetch {
  return { kind: 'fetch', group, epoch: 1, from: 1, through: 9, isAwaited }
}

test('LIVE-6: each answer lets the next fetch go, and a fetch that a client awaits goes at once', () => {
  const { fetches, sent, awaited } = fetchesOf(2)
  for (const name of ['a', 'b', 'c', 'd']) fetches.ask(peer, fetchOf(groupOf(name)))
  fetches.ask(peer, fetchOf(groupOf('urgent'), true))
  fetches.ask(other, fetchOf(groupOf('e')))
  expect(sent).toEqual(['n2 a 1', 'n2 b 1', 'n2 urgent 1 awaited', 'n3 e 1'])
  fetches.answered(peer, groupOf('b'))
  fetches.answered(peer, groupOf('b'))
  expect(sent.slice(4)).toEqual(['n2 c 1'])
  // A client begins to wait for what is in flight, and for what is not asked for yet.
  for (const name of ['a', 'd']) {
    awaited.name = name
    for (let step = 0; step < 2; step++) fetches.onStep(groupOf(name))
  }
  expect(sent.slice(5)).toEqual(['n2 a 1 awaited', 'n2 d 1'])
  fetches.answered(peer, groupOf('urgent'))
  expect(sent.slice(7)).toEqual(['n2 d 1 awaited'])
  // The node does not ask for a group that came another way.
  fetches.ask(other, fetchOf(groupOf('done')))
  expect(sent.length).toBe(8)
  expect(fetches.patienceMs(groupOf('done'))).toBe(0)
  expect(fetches.patienceMs(groupOf('d'))).toBeGreaterThan(0)
})

test('LIVE-6: a peer that answers nothing loses its questions, and one that is gone is not waited for', () => {
  const { fetches, sent, clock } = fetchesOf(1)
  fetches.ask(peer, fetchOf(groupOf('a')))
  fetches.ask(peer, fetchOf(groupOf('b')))
  expect(fetches.patienceMs(groupOf('a'))).toBe(defaultLimits.settleMs)
  clock.nowMs += defaultLimits.phaseTimeoutMs
  expect(fetches.patienceMs(groupOf('a'))).toBe(0)
  fetches.go()
  expect(sent).toEqual(['n2 a 1', 'n2 b 1'])
  fetches.ask(peer, fetchOf(groupOf('c')))
  fetches.forget(peer)
  expect(fetches.patienceMs(groupOf('c'))).toBe(0)
})

test('LOG-8: a named group stays listed until it is in memory, also when its peer is gone', () => {
  const room = { is: false }
  const { fetches, sent, clock } = fetchesOf(2, () => room.is)
  for (const name of ['a', 'b', 'c']) fetches.name(groupOf(name), 5, peer)
  while (clock.turn());
  expect([fetches.named(), fetches.lacking]).toEqual([['a', 'b', 'c'].map(groupOf), 3])
  fetches.forget(peer)
  room.is = true
  fetches.go()
  while (clock.turn());
  expect(sent).toEqual(['n2 a 1', 'n2 b 1'])
  expect(fetches.named()).toEqual([groupOf('c')])
  fetches.answered(peer, groupOf('a'))
  while (clock.turn());
  expect([fetches.named(), sent.at(-1)]).toEqual([[], 'n2 c 1'])
})

test('LIVE-6: work that a client awaits goes first, and ends a rest', () => {
  let foreground = 0
  const [slices, clock] = slicesOf({ slicePiecesMax: 2, sliceRests: 2 }, () => foreground)
  const done: string[] = []
  const takes = (): void => void (clock.nowMs += 3)
  slices.add('a', { name: 'work', pieces: pieces(done, 'a', 5, 0, takes) })
  foreground += 1
  clock.turn()
  expect([done.length, clock.turn()]).toEqual([2, false])
  slices.add('a', { name: 'work', pieces: pieces(done, 'awaited', 3, 0, takes) }, true)
  while (clock.turn());
  expect(done.slice(2)).toEqual(['awaited', 'awaited', 'awaited'])
  // The rest goes on, from when the last of these was done.
  clock.pass(6)
  while (clock.turn());
  expect(done.slice(5)).toEqual(['a', 'a', 'a'])
})

test('LIVE-6: a peer is supplied first with what a client waits for there, also where it asked before', () => {
  const [slices, clock] = slicesOf({ slicePiecesMax: 1 })
  const sent: string[] = []
  const value = new Uint8Array(1)
  const supply = new CatchUpReplies({
    ...{ limits: defaultLimits, trace: silentTrace, slices },
    snapshots: { durable: () => 0 },
    log: {
      chosen: () => ({ ballot: { epoch: 1, round: 0, node: peer, incarnation: 1 }, value }),
      *since() {
        yield 0
        return { through: 0, isWhole: true, groups: [] }
      },
    },
    send: (_, message) => void (message.kind === 'entries' && sent.push(message.group)),
    hasRoomFor: () => true,
  })
  const ask = (name: string, isAwaited: boolean): void =>
    supply.ask({
      ...{ kind: 'send-entries', to: peer, group: groupOf(name), epoch: 1 },
      ...{ from: 1, through: 3, committed: 3, isAwaited },
    })
  for (const name of ['a', 'b', 'c', 'd']) ask(name, false)
  clock.turn()
  for (const name of ['e', 'c']) ask(name, true)
  ask('e', false)
  while (clock.turn());
  expect(sent).toEqual(['e', 'c', 'a', 'b', 'd'])
})
