/** A group that comes back to a set of which one node is still behind the last entry by which the group left. */
import { expect, test } from 'vitest'
import { encodeMove, movedKey } from '../../src/group/moved-row.ts'
import { decodeState, encodeState } from '../../src/replication/state.ts'
import { CoreCluster, type InFlight } from './core-cluster.ts'

/** Of the group's log in the other set. */
const cameBackAt = 6

test('MOVE-10: a node that has not heard of the leave of a group gives no vote behind its return', () => {
  const cluster = new CoreCluster({ mayMove: true })
  const [first, , last] = cluster.nodes
  if (first === undefined || last === undefined) throw new Error('there are three nodes')
  const isOf =
    (hears: boolean) =>
    ({ from, to }: InFlight): boolean =>
      (from === last.node || to === last.node) === hears
  cluster.submit(0, { key: 'first' })
  cluster.deliver()
  cluster.submit(0, { key: 'gone', mutations: [{ key: movedKey, value: encodeMove('west') }] })
  cluster.deliver(isOf(false))
  cluster.inFlight = []
  // The first node alone has taken up what the other set has left.
  const state = first.stateBytes && decodeState(first.stateBytes)
  if (state === undefined) throw new Error('nothing is applied there')
  const back = { ...state, position: cameBackAt, timestamp: state.timestamp + 1 }
  back.movedTo = undefined
  first.stateBytes = encodeState(back)
  first.step({ kind: 'install', state: back })
  const request = cluster.submit(0, { key: 'back' })
  cluster.settle(isOf(true))
  expect(last.durable.get(cameBackAt + 1)?.accepted).toBeUndefined()
  expect(first.verdicts.get(request)).toBeUndefined()
})

test('MOVE-10: a node that has taken a group up offers it to the voters that it asks for a read', () => {
  const cluster = new CoreCluster({ mayMove: true })
  const [first, ...others] = cluster.nodes
  if (first === undefined) throw new Error('there are three nodes')
  cluster.submit(0, { key: 'first' })
  cluster.deliver()
  const state = first.stateBytes && decodeState(first.stateBytes)
  if (state === undefined) throw new Error('nothing is applied there')
  // Of an entry of the other set, which names this one.
  const here = { ...state, position: cameBackAt, timestamp: state.timestamp + 1, movedTo: '0' }
  first.stateBytes = encodeState(here)
  first.step({ kind: 'install', state: here })
  cluster.inFlight = []
  first.step({ kind: 'read', read: 1 })
  const offered = cluster.inFlight.flatMap(({ to, message }) => {
    return message.kind === 'entries' ? [{ to, committed: message.committed }] : []
  })
  expect(offered).toEqual(others.map(({ node }) => ({ to: node, committed: cameBackAt })))
})

test('MOVE-10: a voter that is behind gives its vote as soon as it has all below, and without another question', () => {
  const cluster = new CoreCluster({ mayMove: true })
  const [first, second] = cluster.nodes
  if (first === undefined || second === undefined) throw new Error('there are three nodes')
  cluster.submit(0, { key: 'first' })
  cluster.deliver()
  const state = first.stateBytes && decodeState(first.stateBytes)
  if (state === undefined) throw new Error('nothing is applied there')
  const here = { ...state, position: cameBackAt, timestamp: state.timestamp + 1, movedTo: '0' }
  // The question comes before the group does.
  const { node, incarnation } = first
  const message = {
    kind: 'prepare',
    group: cluster.group,
    epoch: 1,
    position: cameBackAt + 1,
    ballot: { epoch: 1, round: 1, node, incarnation },
  } as const
  second.step({ kind: 'message', from: node, message })
  cluster.inFlight = []
  second.stateBytes = encodeState(here)
  second.step({ kind: 'install', state: here })
  second.flush()
  const answers = cluster.inFlight.filter(
    ({ from, to }) => from === second.node && to === first.node,
  )
  expect(answers.map(({ message }) => message.kind)).toContain('promised')
})
