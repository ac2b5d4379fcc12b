import { expect, test } from 'vitest'
import * as fc from 'fast-check'
import { defaultClientLimits } from '../../src/client/client-limits.ts'
import { Breaker } from '../../src/client/breaker.ts'
import { Links } from '../../src/client/links.ts'
import { createBench, passMs } from '../cells/kit.ts'

const limits = { failuresMax: 3, openMs: 100, openMaxMs: 350 }

function failed(times: number, breaker = new Breaker(limits), nowMs = 0): Breaker {
  for (let i = 0; i < times; i++) breaker.fail(nowMs)
  return breaker
}

test('failures in a row open a breaker; an answer in between starts the count anew', () => {
  expect(failed(2).stateAt(0)).toBe('closed')
  expect(failed(3).stateAt(0)).toBe('open')
  const breaker = failed(2)
  breaker.succeed()
  expect(failed(2, breaker).stateAt(0)).toBe('closed')
  expect(failed(1, breaker).stateAt(0)).toBe('open')
})

test('BRK-2: after its time one try goes through, and its outcome decides', () => {
  const breaker = failed(3)
  expect(breaker.mayTry(99)).toBe(false)
  expect(breaker.stateAt(100)).toBe('half-open')
  expect(breaker.mayTry(100)).toBe(true)
  breaker.begin(100)
  expect(breaker.mayTry(100)).toBe(false)
  breaker.fail(110)
  expect(breaker.stateAt(309)).toBe('open')
  expect(breaker.stateAt(310)).toBe('half-open')
  breaker.begin(310)
  breaker.fail(310)
  expect(breaker.openUntilMs).toBe(310 + 350)
  breaker.begin(660)
  breaker.forget()
  expect(breaker.mayTry(660)).toBe(true)
  breaker.begin(660)
  breaker.succeed()
  expect([breaker.stateAt(660), breaker.mayTry(660), breaker.opened]).toEqual(['closed', true, 3])
  expect(failed(3, breaker, 700).openUntilMs).toBe(800)
})

const event = fc.oneof(
  fc.record({ kind: fc.constant('end' as const), node: fc.nat(2), ending: fc.nat(3) }),
  fc.record({ kind: fc.constant('link' as const), node: fc.nat(2), isUp: fc.boolean() }),
  fc.record({ kind: fc.constant('pick' as const), spread: fc.nat(9), not: fc.nat(3) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(400) }),
)

test('BRK-1: the client picks a node as long as a link is up, in any state of the breakers', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 60 }), async (events) => {
      const { world, clockOf } = createBench()
      const clock = clockOf('client')
      const links = new Links(clock, { ...defaultClientLimits, ...limits })
      const up = new Set<string>()
      for (const one of events) {
        if (one.kind === 'pass') await passMs(world, one.ms)
        if (one.kind === 'end') {
          const endings = ['answered', 'failed', 'lost', 'inconclusive'] as const
          links.end(`n${one.node}`, endings[one.ending] ?? 'lost')
        }
        if (one.kind === 'link') {
          const name = `n${one.node}`
          if (one.isUp) links.onUp(name, name)
          else links.onDown(name)
          if (one.isUp) up.add(name)
          else up.delete(name)
        }
        if (one.kind !== 'pick') continue
        const picked = links.pick(one.spread, clock.monotonicMs(), undefined, `n${one.not}`)
        expect(picked !== undefined).toBe(up.size > 0)
        expect(picked === undefined || up.has(picked)).toBe(true)
        if (up.size > 1) expect(picked).not.toBe(`n${one.not}`)
        if (picked !== undefined) links.begin(picked, clock.monotonicMs())
      }
    }),
    { numRuns: 300, seed: 11 },
  )
})

test('a node whose breaker is open is passed over, and asked when there is no other', () => {
  const clock = createBench().clockOf('client')
  const nowMs = clock.monotonicMs()
  const links = new Links(clock, { ...defaultClientLimits, ...limits, failuresMax: 1 })
  links.onUp('x', 'a')
  links.onUp('y', 'b')
  expect(links.pick(0, nowMs, 'b')).toBe('y')
  links.end('y', 'lost')
  expect([0, 1, 2].map((spread) => links.pick(spread, nowMs, 'b'))).toEqual(['x', 'x', 'x'])
  links.onDown('x')
  expect(links.pick(0, nowMs)).toBe('y')
  links.onUp('x', 'a')
  links.end('x', 'failed')
  // Both are open at one moment: not the one that was just asked.
  expect(links.pick(0, nowMs, undefined, 'y')).toBe('x')
  links.onUp('y', 'b')
  expect(links.views()).toMatchObject([
    { endpoint: 'x', node: 'a', isUp: true, breaker: 'open', opened: 1, tries: { failed: 1 } },
    { endpoint: 'y', node: 'b', isUp: true, breaker: 'closed', opened: 1, tries: { lost: 1 } },
  ])
})
