import { expect, test } from 'vitest'
import { Silence } from '../../src/triggers/silence.ts'

const row = (beat: number): { worker: string; beat: number; released: number } => ({
  ...{ worker: 'other', beat, released: 0 },
})

test('a worker whose count stands still for a lease is taken for dead', () => {
  const silence = new Silence(300)
  for (const nowMs of [0, 100, 200]) silence.look([row(1)], nowMs)
  expect(silence.isAlive('other')).toBe(true)
  silence.look([row(1)], 300)
  expect(silence.isAlive('other')).toBe(false)
  silence.look([row(2)], 400)
  expect(silence.isAlive('other')).toBe(true)
})

test('a worker that was away for long does not take the others for silent', () => {
  const silence = new Silence(300)
  silence.look([row(1)], 0)
  silence.look([row(1)], 60_000)
  expect(silence.isAlive('other')).toBe(true)
})

test('a worker whose looks take longer than a lease still comes to a judgement', () => {
  const silence = new Silence(300)
  for (const nowMs of [0, 450, 900]) silence.look([row(1)], nowMs)
  expect(silence.isAlive('other')).toBe(true)
  silence.look([row(1)], 1_350)
  expect(silence.isAlive('other')).toBe(false)
})

test('a worker that is not there is not alive', () => {
  const silence = new Silence(300)
  silence.look([row(1)], 0)
  silence.look([], 1)
  expect(silence.isAlive('other')).toBe(false)
})
