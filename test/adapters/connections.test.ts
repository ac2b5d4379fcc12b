/** Admission of connections: strangers and clients have separate places, peers always have one. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  Connections,
  type Connection,
  type ConnectionLimits,
} from '../../src/adapters/connections.ts'
import { HandClock } from '../ports/hand-clock.ts'

/** The end of a connection that a listener has. */
class FakeConnection implements Connection {
  readonly remoteAddress: string
  readonly remotePort: number
  readonly localAddress = '10.0.0.1'
  destroyed = false
  #onClose: () => void = () => undefined

  constructor(remoteAddress: string, remotePort: number) {
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
  }

  once(_event: 'close', run: () => void): void {
    this.#onClose = run
  }

  destroy(): void {
    this.destroyed = true
    this.#onClose()
  }
}

const limits: ConnectionLimits = {
  ...{ connectionsMax: 10, connectionsPerAddressMax: 3, unprovenMax: 4, unprovenPerAddressMax: 3 },
}

class House {
  readonly clock = new HandClock()
  readonly connections: Connections
  readonly open: FakeConnection[] = []
  #port = 1

  constructor(some: Partial<ConnectionLimits> = {}) {
    this.connections = new Connections({ ...limits, ...some }, this.clock)
  }

  enter(address: string): FakeConnection {
    const one = new FakeConnection(address, this.#port++)
    this.connections.open(one)
    this.open.push(one)
    return one
  }

  prove(one: FakeConnection, as: 'client' | 'peer' = 'client'): string | undefined {
    return this.connections.prove(one, as)
  }

  client(address: string): string | undefined {
    return this.prove(this.enter(address))
  }
}

test('DOOR-1: a stranger too many ends the oldest one of its address, or of the one with most', () => {
  const house = new House()
  const [first, second] = [house.enter('10.0.0.2'), house.enter('10.0.0.2')]
  house.enter('10.0.0.2')
  house.enter('10.0.0.2')
  expect([first.destroyed, second.destroyed]).toEqual([true, false])
  const other = house.enter('10.0.0.3')
  expect([second.destroyed, other.destroyed]).toEqual([false, false])
  house.enter('10.0.0.4')
  expect([second.destroyed, other.destroyed]).toEqual([true, false])
  expect(house.connections.count('stranger')).toBe(4)
  expect(house.connections.counts).toMatchObject({ opened: 6, displaced: 2 })
})

test('DOOR-4: a stranger that is served stays, and one of its address that does nothing goes', () => {
  const house = new House()
  const [served, idle, other] = ['10.0.0.2', '10.0.0.2', '10.0.0.2'].map((of) => house.enter(of))
  house.clock.nowMs = 1_000
  house.connections.touch(served ?? expect.fail())
  house.enter('10.0.0.2')
  expect([served, idle, other].map((one) => one?.destroyed)).toEqual([false, true, false])
  house.enter('10.0.0.2')
  expect([served?.destroyed, other?.destroyed]).toEqual([false, true])
})

test('DOOR-1: clients have places of their own; the server refuses one too many and says why', () => {
  const house = new House()
  const addresses = ['10.0.0.2', '10.0.0.3']
  for (const address of [...addresses, ...addresses, ...addresses]) {
    expect(house.client(address)).toBeUndefined()
  }
  expect(house.client('10.0.0.9')).toMatch(/^overloaded: 6 connections .* connections_max 10/)
  expect(house.connections.count('client')).toBe(6)
  for (let i = 0; i < 20; i++) house.enter('10.0.0.5')
  expect(house.open.slice(0, 6).some(({ destroyed }) => destroyed)).toBe(false)
  house.open[0]?.destroy()
  expect(house.client('10.0.0.9')).toBeUndefined()
})

test('one address has its part of the room, in one spelling; this machine itself may have all of it', () => {
  const house = new House({ connectionsMax: 100, unprovenMax: 50 })
  for (const address of ['10.0.0.2', '::ffff:10.0.0.2', '10.0.0.2']) {
    expect(house.client(address)).toBeUndefined()
  }
  expect(house.client('::ffff:10.0.0.2')).toMatch(/^overloaded: your address has 3 connections/)
  expect(house.client('10.0.0.3')).toBeUndefined()
  for (const tail of ['1', '2', 'a:b:c:d']) {
    expect(house.client(`2001:db8::${tail}`)).toBeUndefined()
  }
  expect(house.client('2001:db8:0:0:1:2:3:4')).toMatch(/^overloaded: your address/)
  expect(house.client('2001:db8:0:1::1')).toBeUndefined()
  for (let i = 0; i < 10; i++) {
    expect(house.client(i % 2 === 0 ? '127.0.0.1' : '::1')).toBeUndefined()
  }
})

test('DOOR-2: a peer has room where clients and strangers have none', () => {
  const house = new House({ connectionsPerAddressMax: 100 })
  for (let i = 0; i < 6; i++) house.client('10.0.0.2')
  for (let i = 0; i < 9; i++) house.enter('10.0.0.2')
  const peer = house.enter('10.0.0.2')
  expect(house.prove(peer, 'peer')).toBeUndefined()
  for (let i = 0; i < 9; i++) house.enter('10.0.0.3')
  expect(peer.destroyed).toBe(false)
  expect(house.connections.count('peer')).toBe(1)
  peer.destroy()
  expect(house.connections.count('peer')).toBe(0)
})

test('the server ends a stranger that stays idle and keeps a proven client', () => {
  const house = new House()
  const [idle, asking, client] = [1, 2, 3].map(() => house.enter('10.0.0.2'))
  if (idle === undefined || asking === undefined || client === undefined) return
  house.prove(client)
  house.clock.nowMs = 8_000
  house.connections.touch(asking)
  house.clock.nowMs = 11_000
  house.connections.endIdle(10_000)
  expect([idle.destroyed, asking.destroyed, client.destroyed]).toEqual([true, false, false])
  expect(house.connections.counts.idle).toBe(1)
})

test('DOOR-1, DOOR-2: the counts equal the open connections and stay within bounds', () => {
  const step = fc.record({
    what: fc.constantFrom('enter', 'client', 'peer', 'close', 'idle'),
    address: fc.constantFrom('10.0.0.2', '10.0.0.3', '2001:db8::1', '127.0.0.1'),
    which: fc.nat({ max: 30 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const house = new House()
      for (const { what, address, which } of steps) {
        const one = house.open[which % Math.max(1, house.open.length)]
        house.clock.nowMs += 100
        if (what === 'enter') house.enter(address)
        else if (what === 'idle') house.connections.endIdle(2_000)
        else if (what === 'close') one?.destroy()
        else if (one !== undefined && !one.destroyed) house.prove(one, what)
        const open = house.open.filter(({ destroyed }) => !destroyed)
        const { connections } = house
        const counted = (['stranger', 'client', 'peer'] as const).map((of) => connections.count(of))
        expect(counted.reduce((sum, count) => sum + count, 0)).toBe(open.length)
        expect(counted[0]).toBeLessThanOrEqual(4)
        expect(counted[1]).toBeLessThanOrEqual(6)
      }
      for (const one of house.open) one.destroy()
      expect(house.connections.count('stranger') + house.connections.count('client')).toBe(0)
    }),
    { numRuns: 300 },
  )
})
