/**
 * The same requests at a simulated node: a seed is a run, and each request is answered within its time by the
 * world's clock, however wrong it is.
 */
import { expect, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'
import { pack } from '../../src/base/pack.ts'
import { decodeClientFrame } from '../../src/wire/client/client-codec.ts'
import { passMs } from '../cells/kit.ts'
import { createCluster } from '../client/cluster.ts'
import { drawRequest } from './requests.ts'

const perFrame = 10
const frames = 400

test.each([1, 2, 3, 4, 5])('drawn requests at a simulated node: seed %i', async (seed) => {
  const bugs: unknown[] = []
  const cluster = createCluster({ names: ['n1'], seed, onBug: (error) => void bugs.push(error) })
  const { bench, network } = cluster
  const random = new SeededRandom(`fuzz ${seed}`)
  const { process } = cluster.clockOf('client')
  const transport = network.attach(process, ['n1'])
  const open = new Set<number>()
  const kinds = new Map<string, number>()
  transport.start({
    self: () => ({}),
    admit: () => undefined,
    onRefused: () => undefined,
    onLink: () => undefined,
    onFrame: (_, frame) => {
      if (frame.kind !== 'responses') return
      for (const { id, answer } of frame.responses) {
        const kind = answer.kind === 'problem' ? answer.problem.code : answer.kind
        kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
        open.delete(id)
      }
    },
  })
  await passMs(bench.world, 100)
  let id = 0
  for (let sent = 0; sent < frames; sent++) {
    const packed = Array.from({ length: perFrame }, () => {
      id += 1
      open.add(id)
      return drawRequest(random, id)
    })
    const decoded = decodeClientFrame(pack([1, 1, packed]))
    if (!decoded.ok || decoded.frame.kind !== 'requests') throw new Error('there are no requests')
    // The simulated network carries what can be read; the rest is refused by the codec.
    for (const malformed of decoded.frame.malformed ?? []) open.delete(malformed.id)
    transport.send('n1', decoded.frame)
    await passMs(bench.world, random.int(0, 20))
  }
  // The longest that a request here may take, and half of that again.
  await passMs(bench.world, 3_000)
  expect(bugs).toEqual([])
  expect([...open]).toEqual([])
  expect(kinds.get('internal')).toBeUndefined()
  expect(kinds.get('invalid')).toBeGreaterThan(10)
  expect(kinds.get('put')).toBeGreaterThan(0)
  expect(cluster.node('n1').server.requests).toBe(0)
})
