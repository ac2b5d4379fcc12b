/** Rows with thousands of entries in one index: any query reads and decodes each row once. */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { readDistinct } from '../../src/tables/entry-book.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { tablesBench } from './bench.ts'
import { globalBench } from './global-bench.ts'

const many = 4_000
const Local = table('Page', { page: t.string(), word: t.string().repeated() })
  .key('page')
  .root()
  .localIndex('PagesByWord', ['word'])
const Global = table('Page', { page: t.string(), word: t.string().repeated() })
  .key('page')
  .root()
  .globalIndex('AllPagesByWord', ['word'], { shards: 1 })
const row = { page: 'a', word: Array.from({ length: many }, (_, at) => `word${at}`) }
const of = rootKey(Local, { page: 'a' })

test('IDX-1: equal keys are read once, and each place gets its row', async () => {
  const asked: number[] = []
  const key = (text: string): Buffer => Buffer.from(text)
  const found = await readDistinct([key('b'), key('a'), key('b'), key('c')], (keys) => {
    asked.push(keys.length)
    const rows = keys.map((one) => ({ key: one, value: one, timestamp: 1 }))
    return Promise.resolve(rows.map((one) => (one.key.toString() === 'c' ? undefined : one)))
  })
  expect(asked).toEqual([3])
  expect(found.map((one) => one?.value.toString())).toEqual(['b', 'a', 'b', undefined])
  expect(found[0]).toBe(found[2])
})

test('IDX-2: the rows of all entries of one long row are one row, read and decoded once', async () => {
  const { db } = tablesBench(defineSchema('Pages', [Local]))
  await db.transaction(of, (tx) => tx.put(Local, row))
  const began = performance.now()
  const { value } = await db.read(of, 'current', async (rows) => {
    const page = await rows.index(Local, 'PagesByWord', {}, { limit: many })
    return page.rows()
  })
  expect(value).toHaveLength(many)
  expect(new Set(value).size).toBe(1)
  expect((await db.checkIndexes(of)).entries).toBe(many)
  // Quadratic work took a minute here.
  expect(performance.now() - began).toBeLessThan(5_000)
})

test('IDX-2: the same of a global index', async () => {
  const { node, open, run, rest } = globalBench()
  const n1 = node('n1')
  n1.relay.start()
  const db = open(defineSchema('Pages', [Global]), n1)
  await run(db.transaction(of, (tx) => tx.put(Global, row)))
  await rest()
  const began = performance.now()
  const page = await run(db.index(Global, 'AllPagesByWord', {}, { limit: 1_000, verify: true }))
  expect(page.items).toHaveLength(1_000)
  expect(new Set(await run(page.rows())).size).toBe(1)
  expect(performance.now() - began).toBeLessThan(3_000)
})
