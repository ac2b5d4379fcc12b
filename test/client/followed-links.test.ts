/** A client's links as the nodes tell of one another: which addresses it dials, and which links it ends, and when. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { FollowedLinks } from '../../src/client/followed-links.ts'
import { present } from '../../src/base/assert.ts'
import type { DialledAddress, Transport, TransportHandlers } from '../../src/ports/transport.ts'
import type { ClientFrame, SetList } from '../../src/wire/client/client-message.ts'
import { createClock } from '../../sim/world/clock.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { createBench, exactClock, passMs } from '../cells/kit.ts'

function urlOf(name: string): string {
  return `http://${name}:1`
}

function list(epoch: number, names: string, set = 0): SetList {
  const nodes = names.split(' ').map((name) => ({ node: nodeId(name), url: urlOf(name) }))
  return { set, epoch, nodes }
}

interface World {
  readonly links: FollowedLinks
  /** The words that the client above has heard. */
  readonly heard: string[]
  /** Addresses where something waits for its answer. */
  readonly busy: Set<string>
  /** The node at an address answers. */
  up(url: string, node?: string, cluster?: string): void
  down(url: string): void
  tell(url: string, ...sets: readonly SetList[]): void
  /** The addresses that have dialers now, in words: hosts, with the node that has to answer where that is set. */
  dialled(): string
  pass(ms: number): Promise<void>
}

function start(given: readonly string[], linksMax?: number): World {
  const bench = createBench(1)
  const clock = createClock(new SimProcess(bench.world, 'client'), exactClock, bench.random)
  let handlers: TransportHandlers<ClientFrame> | undefined
  let addresses: readonly DialledAddress[] = given.map((endpoint) => ({ endpoint }))
  const up = new Set<string>()
  const lower = (url: string): void => {
    if (up.delete(url)) present(handlers, 'it has begun').onLink(url, 'down', {})
  }
  const transport: Transport<ClientFrame> = {
    endpoints: given,
    addresses: given.length,
    start: (its) => (handlers = its),
    send: () => true,
    isUp: (url) => up.has(url),
    setEndpoints: (next) => {
      addresses = next
      for (const url of up) if (!next.some(({ endpoint }) => endpoint === url)) lower(url)
    },
    close: () => Promise.resolve(),
  }
  const own = linksMax === undefined ? {} : { linksMax }
  const links = new FollowedLinks({ transport, clock, random: bench.random, ...own })
  const heard: string[] = []
  const busy = new Set<string>()
  links.start({
    self: () => ({}),
    admit: () => undefined,
    onRefused: () => undefined,
    onUnreached: (url) => heard.push(`unreached ${url}`),
    onLink: (url, state) => heard.push(`${state} ${new URL(url).hostname}`),
    onFrame: (_url, frame) => heard.push(frame.kind),
    onLeaving: (url) => heard.push(`leaving ${new URL(url).hostname}`),
    isIdle: (url) => !busy.has(url),
  })
  const world: World = {
    ...{ links, heard, busy },
    up: (url, node = new URL(url).hostname, cluster = 'c') => {
      const its = present(handlers, 'it has begun')
      const isDialled = addresses.some(({ endpoint }) => endpoint === url)
      if (!isDialled || up.has(url)) return
      const why = its.admit(url, { node, cluster })
      if (why !== undefined) return void heard.push(why)
      up.add(url)
      its.onLink(url, 'up', { node })
    },
    down: lower,
    tell: (url, ...sets) => present(handlers, 'it has begun').onFrame(url, { kind: 'nodes', sets }),
    dialled: () =>
      addresses
        .map(({ endpoint, node }) => {
          const { hostname } = new URL(endpoint)
          return node === undefined || node === hostname ? hostname : `${hostname}=${node}`
        })
        .join(' '),
    pass: (ms) => passMs(bench.world, ms),
  }
  expect(present(handlers, 'it has begun').self()).toEqual({ followsNodes: true })
  return world
}

test('one address is enough: the client goes on to the nodes that this one tells of, after a moment', async () => {
  const world = start([urlOf('a')])
  world.up(urlOf('a'))
  world.tell(urlOf('a'), list(1, 'a b c'))
  expect(world.dialled()).toBe('a')
  await world.pass(600)
  expect(world.dialled()).toBe('a b c')
  expect(world.links.known).toEqual([
    { endpoint: urlOf('a'), node: 'a', from: 'given' },
    { endpoint: urlOf('b'), node: 'b', from: 'learned' },
    { endpoint: urlOf('c'), node: 'c', from: 'learned' },
  ])
  // The client above hears of no list.
  expect(world.heard).toEqual(['up a'])
})

test('MAP-4: after 3 -> 5 -> 3 with other nodes the first ones are left, once nothing waits there', async () => {
  const world = start(['a', 'b', 'c'].map(urlOf))
  for (const one of ['a', 'b', 'c']) {
    world.up(urlOf(one))
    world.tell(urlOf(one), list(1, 'a b c'))
  }
  world.tell(urlOf('a'), list(3, 'a b c d e'))
  await world.pass(600)
  expect(world.dialled()).toBe('a b c d e')
  for (const one of ['d', 'e']) world.up(urlOf(one))
  world.busy.add(urlOf('a'))
  world.tell(urlOf('d'), list(5, 'c d e'))
  await world.pass(1_000)
  expect(world.dialled()).toBe('a c d e')
  expect(world.heard.slice(-3)).toEqual(['leaving a', 'leaving b', 'down b'])
  world.busy.clear()
  await world.pass(200)
  expect([world.dialled(), world.heard.at(-1)]).toEqual(['c d e', 'down a'])
  // They stay away for as long as others are there.
  for (const one of ['a', 'b']) world.up(urlOf(one))
  await world.pass(5_000)
  expect(world.dialled()).toBe('c d e')
  // Where all others are lost, the first addresses are dialled again.
  for (const one of ['c', 'd', 'e']) world.down(urlOf(one))
  expect(world.dialled().split(' ').toSorted().join(' ')).toBe('a b c d e')
})

test('MAP-4: the only node that is linked is left only when another one is linked', async () => {
  const world = start([urlOf('a')])
  world.up(urlOf('a'))
  world.tell(urlOf('a'), list(1, 'a'))
  world.tell(urlOf('a'), list(2, 'b'))
  await world.pass(2_000)
  expect(world.dialled()).toBe('a b')
  world.up(urlOf('b'))
  await world.pass(1_000)
  expect(world.dialled()).toBe('b')
})

test('a node that has a link by a given address gets none by a told one', async () => {
  const world = start(['http://proxy:1'])
  world.up('http://proxy:1', 'a')
  world.tell('http://proxy:1', list(1, 'a b'))
  await world.pass(600)
  expect(world.dialled()).toBe('proxy b')
  world.down('http://proxy:1')
  expect(world.dialled()).toBe('proxy a b')
  world.up(urlOf('a'))
  world.tell(urlOf('a'), list(1, 'a b'))
  world.up('http://proxy:1', 'a')
  await world.pass(1_000)
  expect([world.dialled(), world.heard.at(-1)]).toEqual(['proxy b', 'down a'])
})

test('a told address has to be answered by that node of that cluster', async () => {
  const world = start([urlOf('a')])
  world.up(urlOf('a'))
  world.tell(urlOf('a'), {
    ...{ set: 0, epoch: 1 },
    nodes: [
      { node: nodeId('a'), url: urlOf('a') },
      { node: nodeId('b'), url: urlOf('elsewhere') },
    ],
  })
  await world.pass(600)
  expect(world.dialled()).toBe('a elsewhere=b')
  world.up(urlOf('elsewhere'), 'b', 'other')
  expect(world.heard.at(-1)).toBe(
    'cluster: this side follows cluster c, the other belongs to other',
  )
})

test('lists of a second cluster are passed over, and an address that does not come up is no concern of the application', async () => {
  const world = start([urlOf('a'), urlOf('z')])
  world.up(urlOf('a'))
  world.up(urlOf('z'), 'z', 'other')
  world.tell(urlOf('a'), list(1, 'a b'))
  world.tell(urlOf('z'), list(9, 'z y'))
  await world.pass(600)
  expect(world.dialled()).toBe('a z b')
})

test('MAP-3: there are never more links than the limit, however long the lists are, and each set has some', async () => {
  const names = 'abcdefghijklmno'.split('')
  const lists = Array.from({ length: 4 }, (_, set) =>
    list(1, names.map((name) => `${name}${set}`).join(' '), set),
  )
  const world = start([urlOf('a0')], 8)
  world.up(urlOf('a0'))
  world.tell(urlOf('a0'), ...lists)
  await world.pass(600)
  const dialled = world.dialled().split(' ')
  expect(dialled).toHaveLength(8)
  for (const set of ['0', '1', '2', '3']) {
    expect(dialled.filter((one) => one.endsWith(set)).length).toBeGreaterThan(0)
  }
})

test('MAP-3, MAP-4: drawn lists, links and breaks keep to the limit, and end with a link', async () => {
  const names = ['a', 'b', 'c', 'd', 'e']
  const some = fc.subarray(names, { minLength: 1 })
  const step = fc.oneof(
    fc.record({ at: fc.constantFrom(...names), epoch: fc.integer({ min: 1, max: 5 }), some }),
    fc.record({ at: fc.constantFrom(...names), isUp: fc.boolean() }),
    fc.record({ at: fc.constantFrom(...names), isBusy: fc.boolean() }),
    fc.record({ waitMs: fc.integer({ min: 1, max: 700 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const world = start([urlOf('a'), urlOf('b')], 4)
      for (const one of steps) {
        if ('waitMs' in one) await world.pass(one.waitMs)
        else if ('epoch' in one) {
          if (world.links.isUp(urlOf(one.at)))
            world.tell(urlOf(one.at), list(one.epoch, one.some.join(' ')))
        } else if ('isBusy' in one) {
          if (one.isBusy) world.busy.add(urlOf(one.at))
          else world.busy.delete(urlOf(one.at))
        } else if (one.isUp) world.up(urlOf(one.at))
        else world.down(urlOf(one.at))
        expect(world.dialled().split(' ').length).toBeLessThanOrEqual(4)
      }
      world.busy.clear()
      for (const name of names) world.down(urlOf(name))
      await world.pass(1_000)
      const dialled = world.dialled().split(' ')
      expect(dialled).toEqual(expect.arrayContaining(['a', 'b']))
    }),
    { numRuns: 200 },
  )
})
