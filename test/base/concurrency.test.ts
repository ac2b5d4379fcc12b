/** Work on many things, a bounded number of them at once. */
import { expect, test } from 'vitest'
import { splitIntoChunks, mapConcurrently, Slots } from '../../src/base/concurrency.ts'

interface Step {
  readonly item: number
  readonly end: (result: string) => void
  readonly fail: (error: Error) => void
}

/** Work that ends when the test says so. */
function stepper(): { readonly begun: Step[]; readonly work: (item: number) => Promise<string> } {
  const begun: Step[] = []
  return {
    begun,
    work: (item) =>
      new Promise((resolve, reject) => void begun.push({ item, end: resolve, fail: reject })),
  }
}

/** All that can go on has gone on. */
function settle(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}

test('no more items are at work at once than may be, and the results are in the order of the items', async () => {
  const { begun, work } = stepper()
  const all = mapConcurrently([1, 2, 3, 4], 2, work)
  expect(begun.map(({ item }) => item)).toEqual([1, 2])
  begun[1]?.end('two')
  await settle()
  expect(begun.map(({ item }) => item)).toEqual([1, 2, 3])
  begun[2]?.end('three')
  await settle()
  begun[3]?.end('four')
  begun[0]?.end('one')
  expect(await all).toEqual(['one', 'two', 'three', 'four'])
})

test('all work has ended when the results are there, also where more might be at work', async () => {
  const { begun, work } = stepper()
  let isOver = false
  const all = mapConcurrently([1, 2], 10, work).finally(() => (isOver = true))
  begun[1]?.end('two')
  await settle()
  expect(isOver).toBe(false)
  begun[0]?.end('one')
  expect(await all).toEqual(['one', 'two'])
})

test('an empty list has no results, and a list of one has one', async () => {
  const { begun, work } = stepper()
  expect(await mapConcurrently([], 2, work)).toEqual([])
  const one = mapConcurrently([7], 2, work)
  begun[0]?.end('seven')
  expect(await one).toEqual(['seven'])
})

test.each([1, 2, 10])(
  'the first failure rejects at once, and no work begins after it, %i at a time',
  async (most) => {
    const { begun, work } = stepper()
    const all = mapConcurrently([1, 2, 3, 4], most, work)
    const told = expect(all).rejects.toThrow('first')
    const underWay = begun.length
    begun.at(-1)?.fail(new Error('first'))
    await told
    begun[0]?.fail(new Error('second'))
    await settle()
    expect(begun).toHaveLength(underWay)
  },
)

test('slots are taken first come, first served, and given back also by work that fails', async () => {
  const slots = new Slots(1)
  const order: string[] = []
  await slots.take()
  const failing = slots.during(async () => {
    order.push('first')
    await Promise.reject(new Error('failed'))
  })
  const failed = expect(failing).rejects.toThrow('failed')
  const last = slots.during(async () => void order.push('last'))
  await settle()
  expect(order).toEqual([])
  slots.give()
  await failed
  await last
  expect(order).toEqual(['first', 'last'])
})

test('a list is cut into lists of a size, the last of them shorter', () => {
  expect(splitIntoChunks([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]])
  expect(splitIntoChunks([1, 2], 2)).toEqual([[1, 2]])
  expect(splitIntoChunks([], 2)).toEqual([])
})
