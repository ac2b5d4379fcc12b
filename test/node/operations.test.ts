/** What anybody may ask of a process as often as they like. */
import { expect, test } from 'vitest'
import { sharing } from '../../src/node/operations.ts'

test('a page is shown for twenty times as long as it took to make', async () => {
  let nowMs = 0
  let made = 0
  const page = sharing({ monotonicMs: () => nowMs }, async () => {
    nowMs += 5
    return (made += 1)
  })
  // It is being made: whoever asks meanwhile waits for the same.
  expect(await Promise.all([page(), page()])).toEqual([1, 1])
  nowMs = 104
  expect(await page()).toBe(1)
  nowMs = 105
  expect(await page()).toBe(2)
})

test('a page that failed is made anew for the next who asks', async () => {
  let nowMs = 0
  let made = 0
  const page = sharing({ monotonicMs: () => nowMs }, async () => {
    nowMs += 5
    made += 1
    if (made === 1) throw new Error('no figures')
    return made
  })
  const both = await Promise.allSettled([page(), page()])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(made).toBe(1)
  expect(await page()).toBe(2)
  expect(await page()).toBe(2)
})
