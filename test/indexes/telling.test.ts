/** A caller's function hears of progress; it may be async and fail. */
import { expect, test } from 'vitest'
import { telling, whileAtWork, type Progress } from '../../src/indexes/report.ts'

const progress = { phase: 'filling', done: 1 } as const

test('an async function that fails ends the work with its error, and not the process', async () => {
  const failure = new Error('mine')
  const tell = telling(() => Promise.reject(failure))
  tell(progress)
  await new Promise((resolve) => setImmediate(resolve))
  expect(() => tell(progress)).toThrow(failure)
})

test('a function that throws ends the work at once, and one that is absent hears nothing', () => {
  const tell = telling(() => {
    throw new Error('mine')
  })
  expect(() => tell(progress)).toThrow('mine')
  expect(telling()(progress)).toBeUndefined()
})

test('groups that go on beside one that fails tell nothing more once the work has ended', async () => {
  const heard: Progress[] = []
  let tell: ((told: Progress) => unknown) | undefined
  const options = { onProgress: (told: Progress) => heard.push(told), rowsAtOnce: 2 }
  const work = whileAtWork(options, async ({ onProgress, rowsAtOnce }) => {
    expect(rowsAtOnce).toBe(2)
    tell = onProgress
    onProgress(progress)
    await Promise.resolve()
    throw new Error('a group failed')
  })
  await expect(work).rejects.toThrow('a group failed')
  tell?.({ phase: 'filling', done: 2 })
  expect(heard).toEqual([progress])
})
