/** Transactions under a given intent, from a snapshot, and at views that are forgotten. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import type { RawTransaction } from '../../src/txn/raw-transaction.ts'
import { b, Bench, text } from './bench.ts'

test('TXN-5: when another try of a given intent has won, the function runs again and finds its work done', async () => {
  const bench = new Bench()
  const { port } = bench
  const { intent } = bench.intents.open()
  const commit = port.commit.bind(port)
  const insert = async (tx: RawTransaction): Promise<string> => {
    if ((await tx.get(b('a'))) !== undefined) return 'found'
    tx.put(b('a'), b('1'))
    return 'inserted'
  }
  // The same intent, through another node, has committed in between.
  port.commit = async (submission, timeoutMs) => {
    port.commit = commit
    await commit({ ...submission, attempt: submission.attempt + 1 }, timeoutMs)
    return commit(submission, timeoutMs)
  }
  expect(await bench.run(insert, { intent })).toMatchObject({
    value: 'found',
    position: 1,
    runs: 2,
  })
  const other = bench.run(async (tx) => tx.put(b('b'), b('1')), { intent })
  await expect(other).rejects.toMatchObject({ code: 'invalid' })
  expect(bench.rows()).toEqual(['a=1'])
})

test('TXN-1: a transaction from a snapshot that is behind is run again, not committed', async () => {
  const bench = new Bench()
  const { port } = bench
  await bench.put('a')
  const view = port.view.bind(port)
  const asked: string[] = []
  port.view = async (of, from, timeoutMs, atLeast) => {
    asked.push(from.kind)
    const seen = await view(of, from, timeoutMs, atLeast)
    // Before the replica has heard of the entry.
    return atLeast === undefined ? { position: 0, asOf: 0 } : seen
  }
  const done = await bench.run(
    async (tx) => {
      const row = await tx.get(b('a'))
      tx.put(b('a'), b(`${text(row?.value)}!`))
    },
    { from: 'snapshot' },
  )
  expect(done.runs).toBe(2)
  expect(asked).toEqual(['snapshot', 'snapshot'])
  expect(bench.rows()).toEqual(['a=a0!'])
})

test('a transaction whose view is forgotten before it is read is run again at a newer one', async () => {
  const bench = new Bench()
  const { port } = bench
  const get = port.get.bind(port)
  port.get = async () => {
    port.get = get
    throw new StoreError('snapshot-too-old', 'gone')
  }
  const done = await bench.run(async (tx) => {
    await tx.get(b('a'))
    tx.put(b('a'), b('1'))
  })
  expect(done.runs).toBe(2)
  port.get = async () => {
    throw new StoreError('snapshot-too-old', 'gone')
  }
  const never = bench.run(async (tx) => tx.get(b('a')), { rerunsMax: 3 })
  await expect(never).rejects.toMatchObject({ code: 'snapshot-too-old', detail: { attempts: 4 } })
})

test.each([
  ...[null, 5, 'text', [], {}, { session: 's' }],
  ...[
    { session: 's', sequence: 1 },
    { session: 's', sequence: 0, floor: 1, expiresAt: 1 },
    { session: 's', sequence: 1, floor: 2, expiresAt: 1 },
    { session: 's', sequence: 1.5, floor: 1, expiresAt: 1 },
    { session: '', sequence: 1, floor: 1, expiresAt: 1 },
    { session: 's', sequence: 1, floor: 1, expiresAt: Number.NaN },
    { session: 5, sequence: 1, floor: 1, expiresAt: 1 },
  ],
])('an intent of another shape is refused in words: %j', async (wrong) => {
  const bench = new Bench()
  const options: object = { intent: wrong }
  const run = bench.run(async (tx) => tx.put(b('a'), b('1')), options)
  await expect(run).rejects.toMatchObject({ code: 'invalid' })
  await expect(run).rejects.toThrow('an intent is { session,')
  expect(bench.rows()).toEqual([])
})

test('an intent as an error has it in its detail is used', async () => {
  const bench = new Bench()
  const { session, sequence, expiresAt } = bench.intents.open().intent
  const options: object = { intent: { session, sequence, expiresAt } }
  await bench.run(async (tx) => tx.put(b('a'), b('1')), options)
  await expect(bench.run(async (tx) => tx.put(b('b'), b('1')), options)).rejects.toThrow(StoreError)
  expect(bench.rows()).toEqual(['a=1'])
})
