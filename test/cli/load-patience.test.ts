/** The refusals that a load waits out, and the time that it gives them. */
import { expect, test } from 'vitest'
import { StoreError, type StoreErrorDetail } from '../../src/base/errors.ts'
import type { Written } from '../../src/cells/cell.ts'
import { problem, type Outcome } from '../../src/base/problem.ts'
import type { Cells } from '../../src/client/cells.ts'
import { cellSink } from '../../src/cli/cell-sink.ts'
import { Patience } from '../../src/cli/load-patience.ts'

/** A patience over a clock that only its waits move. */
function patienceOf(forMs: number, signal?: AbortSignal) {
  const waits: number[] = []
  const told: string[] = []
  let nowMs = 0
  const patience = new Patience({
    forMs,
    ...(signal && { signal }),
    onWait: ({ code }) => void told.push(code),
    monotonicMs: () => nowMs,
    sleep: async (ms) => {
      waits.push(ms)
      nowMs += ms
    },
  })
  return { patience, waits, told }
}

const overloaded = (detail: StoreErrorDetail = {}): StoreError =>
  new StoreError('overloaded', 'too much to do', detail)

test('waits double up to five seconds, and end with the time that is given', async () => {
  const { patience, waits, told } = patienceOf(20_000)
  const request = patience.begin()
  let tries = 0
  while (await request.again(overloaded())) tries += 1
  expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000])
  expect(tries).toBe(waits.length)
  expect(told).toEqual(['overloaded'])
  // The next request has its own time, and the user has heard of it.
  expect(await patience.begin().again(overloaded())).toBe(true)
  expect(told).toHaveLength(1)
})

test('a wait is as long as the refusal asks for', async () => {
  const { patience, waits } = patienceOf(20_000)
  expect(await patience.begin().again(overloaded({ retryAfterMs: 7000 }))).toBe(true)
  expect(waits).toEqual([7000])
})

test('a refusal that may have written rows, or cannot get better, ends the request', async () => {
  const { patience, waits } = patienceOf(20_000)
  for (const code of ['unknown-outcome', 'timeout', 'forbidden', 'corrupt'] as const) {
    expect(await patience.begin().again(new StoreError(code, 'no')), code).toBe(false)
  }
  expect(waits).toEqual([])
})

test('a load that is stopped waits no more', async () => {
  const abort = new AbortController()
  const { patience, waits } = patienceOf(20_000, abort.signal)
  expect(await patience.begin().again(overloaded())).toBe(true)
  abort.abort()
  expect(await patience.begin().again(overloaded())).toBe(false)
  expect(waits).toEqual([100])
})

test('the default wait ends at once when the load is stopped', async () => {
  const abort = new AbortController()
  const options = { forMs: 60_000, signal: abort.signal, onWait: () => undefined }
  const waiting = new Patience(options).begin().again(overloaded({ retryAfterMs: 30_000 }))
  abort.abort()
  expect(await waiting).toBe(false)
})

const unscripted: Outcome<Written> = {
  kind: 'problem',
  problem: problem('internal', 'not in the script'),
}

type Put = Parameters<Cells['putMany']>[0]

/** Cells whose answers are scripted: a list of outcomes for each call, by row key. */
function scripted(answers: readonly Readonly<Record<string, Outcome<Written>>>[]) {
  const calls: (readonly string[])[] = []
  const cells: Pick<Cells, 'putMany'> = {
    putMany: async (batch: Put) => {
      const now = answers[calls.length] ?? {}
      calls.push(batch.map(({ rowKey }) => rowKey))
      return batch.map(({ rowKey }) => now[rowKey] ?? unscripted)
    },
  }
  return { cells, calls }
}

const refused = (code: 'overloaded' | 'forbidden'): Outcome<Written> => ({
  kind: 'problem',
  problem: problem(code, 'no'),
})
const created: Outcome<Written> = {
  kind: 'ok',
  value: { shard: 0, addedId: 1, createdAt: 1, created: true },
}
const batch = ['a', 'b', 'c'].map((rowKey) => ({ rowKey, body: 1 }))

test('of a batch of cells only those that were refused are put again', async () => {
  const { patience } = patienceOf(20_000)
  const { cells, calls } = scripted([
    { a: created, b: refused('overloaded'), c: refused('overloaded') },
    { b: created, c: refused('overloaded') },
    { c: created },
  ])
  const answers = await cellSink(cells, { column: 'BASE', refKey: 0 }, patience).put(batch)
  expect(answers.map(({ kind }) => kind)).toEqual(['created', 'created', 'created'])
  expect(calls).toEqual([['a', 'b', 'c'], ['b', 'c'], ['c']])
})

test('a batch with a failure that cannot get better ends at once', async () => {
  const { patience, waits } = patienceOf(20_000)
  const { cells } = scripted([{ a: created, b: refused('overloaded'), c: refused('forbidden') }])
  const answers = await cellSink(cells, { column: 'BASE', refKey: 0 }, patience).put(batch)
  expect(answers.map(({ kind }) => kind)).toEqual(['created', 'failed', 'failed'])
  expect(waits).toEqual([])
})
