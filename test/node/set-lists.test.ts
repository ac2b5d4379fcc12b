/** A node that tells clients the nodes of the cluster: which clients, when, and with which addresses. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { SetLists } from '../../src/node/set-lists.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { createClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { createBench, exactClock, passMs } from '../cells/kit.ts'

interface Telling {
  readonly lists: SetLists
  /** The client and the epoch of the own set's list, of each message. */
  readonly sent: string[]
  readonly deaf: Set<string>
  readonly frames: ClientFrame[]
  epoch: number
  pass(ms: number): Promise<void>
}

function start(): Telling {
  const bench = createBench(1)
  const clock = createClock(new SimProcess(bench.world, 'n1'), exactClock, bench.random)
  const sent: string[] = []
  const frames: ClientFrame[] = []
  const deaf = new Set<string>()
  const telling: { epoch: number } = { epoch: 1 }
  const lists = new SetLists({
    transport: {
      send: (client, frame) => {
        if (deaf.has(client)) return false
        frames.push(frame)
        const first = frame.kind === 'nodes' ? frame.sets[0] : undefined
        return sent.push(`${client} ${first?.epoch}`) > 0
      },
    },
    clock,
    set: 1,
    voters: () => ({
      epoch: telling.epoch,
      nodes: [{ node: nodeId('a') }, { node: nodeId('d'), url: 'http://d:1' }],
    }),
    addresses: {
      find: (node, url) => ({ url: url ?? `http://${node}.configured:1` }),
      others: () => [{ set: 0, epoch: 7, nodes: [{ node: nodeId('w'), url: 'http://w:1' }] }],
    },
  })
  const pass = (ms: number): Promise<void> => passMs(bench.world, ms)
  return Object.assign(telling, { lists, sent, deaf, frames, pass })
}

test('a client that follows the nodes hears of them as its link begins and as they change; another one never does', async () => {
  const node = start()
  node.lists.open('c1', { followsNodes: true })
  node.lists.open('old', {})
  expect(node.frames).toEqual([
    {
      kind: 'nodes',
      sets: [
        {
          ...{ set: 1, epoch: 1 },
          nodes: [
            { node: 'a', url: 'http://a.configured:1' },
            { node: 'd', url: 'http://d:1' },
          ],
        },
        { set: 0, epoch: 7, nodes: [{ node: 'w', url: 'http://w:1' }] },
      ],
    },
  ])
  node.epoch = 2
  node.lists.tellAll()
  node.lists.tellAll()
  await node.pass(100)
  expect(node.sent).toEqual(['c1 1', 'c1 2'])
  node.lists.close('c1')
  node.lists.tellAll()
  await node.pass(5_000)
  expect(node.sent).toHaveLength(2)
})

test('a client whose link takes nothing hears of the nodes later, with the lists of then', async () => {
  const node = start()
  node.deaf.add('c1')
  node.lists.open('c1', { followsNodes: true })
  await node.pass(5_000)
  expect(node.sent).toEqual([])
  node.epoch = 3
  node.deaf.clear()
  await node.pass(2_000)
  expect(node.sent).toEqual(['c1 3'])
  await node.pass(5_000)
  expect(node.sent).toHaveLength(1)
})

test('thousands of clients hear of a change over several turns, each once', async () => {
  const node = start()
  for (let nth = 0; nth < 1_000; nth++) node.lists.open(`c${nth}`, { followsNodes: true })
  node.sent.length = 0
  node.epoch = 2
  node.lists.tellAll()
  await node.pass(6)
  expect(node.sent.length).toBeGreaterThan(0)
  expect(node.sent.length).toBeLessThan(300)
  await node.pass(1_000)
  expect(new Set(node.sent).size).toBe(1_000)
  expect(node.sent).toHaveLength(1_000)
  node.lists.tellAll()
  node.lists.stop()
  await node.pass(1_000)
  expect(node.sent).toHaveLength(1_000)
})
