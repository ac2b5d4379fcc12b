/** How a long look into a folder tells how far it has come. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { lookProgress } from '../../src/cli/store-progress.ts'

let said = ''
beforeEach(() => {
  said = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text)
    return true
  })
})
afterEach(() => vi.restoreAllMocks())

test('without a terminal, a line each ten seconds says bytes, part and time left', () => {
  let nowMs = 0
  const progress = lookProgress(false, () => nowMs)
  for (nowMs = 0; nowMs <= 20_000; nowMs += 500) {
    progress.update('files of data/', nowMs / 40_000, nowMs * 1024)
  }
  progress.stop()
  expect(said).toBe(
    'files of data/: 9.8 MiB read, 25 %, 30.0 s left\nfiles of data/: 19.5 MiB read, 50 %, 20.0 s left\n',
  )
})

test('a short look says nothing', () => {
  const progress = lookProgress(false, () => 0)
  progress.update('log/', 0.5, 10)
  progress.stop()
  expect(said).toBe('')
})
