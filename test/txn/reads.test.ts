/** A view is opened once, with what is read first where the port can do that. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { pageRowsMax } from '../../src/txn/limits.ts'
import type { FirstRead, GroupPort } from '../../src/group/group-port.ts'
import type { Row } from '../../src/group/replica-port.ts'
import { runRead } from '../../src/txn/run-read.ts'
import { runTransaction } from '../../src/txn/run.ts'
import { b, Bench, group } from './bench.ts'

const view = { position: 7, asOf: 70 }
const from = { kind: 'current' } as const

function rowOf(key: Uint8Array): Row {
  return { key, value: key, timestamp: 60 }
}

/** Answers with as many rows as it may give at once, and notes its requests. */
function portOf(bench: Bench, rowsAtOnce: number, begin?: GroupPort['begin']) {
  const asked: string[] = []
  const port: GroupPort = {
    view: () => {
      asked.push('view')
      return Promise.resolve(view)
    },
    begin:
      begin ??
      ((_, __, { keys }): Promise<FirstRead> => {
        asked.push(`begin ${keys.length}`)
        return Promise.resolve({ view, rows: keys.slice(0, rowsAtOnce).map(rowOf) })
      }),
    get: (_, __, keys) => {
      asked.push(`get ${keys.length}`)
      return Promise.resolve(keys.map(rowOf))
    },
    scan: () => Promise.resolve({ rows: [], isWhole: true }),
    commit: (...asked) => bench.port.commit(...asked),
  }
  return { port, asked }
}

test('one request reads a row, and those after it are of the same view', async () => {
  const bench = new Bench()
  const { port, asked } = portOf(bench, 10)
  const { value, view: seen } = await runRead(port, group, from, bench, async (rows) => {
    const first = await rows.get(b('a'))
    const both = await Promise.all([rows.get(b('b')), rows.getMany([b('c'), b('d')])])
    return [first, both[0], ...both[1]].map((row) => row?.value)
  })
  expect(value).toEqual([b('a'), b('b'), b('c'), b('d')])
  expect({ seen, asked }).toEqual({ seen: view, asked: ['begin 1', 'get 1', 'get 2'] })
})

test('reads that begin together share the view of the first', async () => {
  const bench = new Bench()
  const { port, asked } = portOf(bench, 10)
  await runRead(port, group, from, bench, (rows) =>
    Promise.all([rows.get(b('a')), rows.get(b('b')), rows.view()]),
  )
  expect(asked).toEqual(['begin 1', 'get 1'])
})

test('a read asks for the rows left out of an answer, some at a time', async () => {
  const bench = new Bench()
  const { port, asked } = portOf(bench, 3)
  const keys = Array.from({ length: pageRowsMax + 2 }, (_, n) => b(`${n}`))
  const { value } = await runRead(port, group, from, bench, (rows) => rows.getMany(keys))
  expect(value.map((row) => row?.key)).toEqual(keys)
  expect(asked).toEqual([`begin ${pageRowsMax}`, `get ${pageRowsMax - 1}`])
})

test('a read refuses an answer with more rows than it asked for', async () => {
  const bench = new Bench()
  const { port } = portOf(bench, 10, () =>
    Promise.resolve({ view, rows: [rowOf(b('a')), rowOf(b('b'))] }),
  )
  const read = runRead(port, group, from, bench, (rows) => rows.get(b('a')))
  await expect(read).rejects.toMatchObject({ code: 'corrupt' })
})

test('TXN-1: nothing is committed on a read that failed, though its function made light of it', async () => {
  const bench = new Bench()
  const failed = new StoreError('unavailable', 'no node answered')
  const { port } = portOf(bench, 10, () => Promise.reject(failed))
  const { clock, random, intents } = bench
  const run = runTransaction(port, group, { clock, random, intents }, async (tx) => {
    await tx.get(b('a')).catch(() => undefined)
    tx.put(b('a'), b('1'))
  })
  await expect(run).rejects.toBe(failed)
  expect(bench.port.submissions).toEqual([])
})

test('a key that cannot be read is a rejection, and counts as no call under way', async () => {
  const bench = new Bench()
  const { port } = portOf(bench, 10, () => {
    throw new StoreError('invalid', 'no such group')
  })
  const { value } = await runRead(port, group, from, bench, (rows) =>
    rows.get(b('a')).catch(String),
  )
  expect(value).toContain('no such group')
})

test('a function that gives a value and no promise is taken at its word', async () => {
  const bench = new Bench()
  const { port } = portOf(bench, 10)
  const read: unknown = await Reflect.apply(runRead, undefined, [port, group, from, bench, () => 5])
  expect(read).toEqual({ value: 5, view: undefined })
})
