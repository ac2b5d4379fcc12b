/** Transactions over bytes: reads are validated, a transaction sees its own writes, limits hold. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareBytes } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import { defaultTransactionLimits } from '../../src/txn/limits.ts'
import type { RawTransaction } from '../../src/txn/raw-transaction.ts'
import { runRead } from '../../src/txn/run-read.ts'
import { b, Bench, group, text } from './bench.ts'

const all = { gte: b('a'), lt: b('z') }

test('TXN-1: a key that was read and then written by another makes the function run again', async () => {
  const bench = new Bench()
  await bench.put('a')
  bench.interrupt(() => bench.run(async (tx) => tx.put(b('a'), b('other'))))
  const seen: string[] = []
  const { runs, value } = await bench.run(async (tx) => {
    const row = await tx.get(b('a'))
    seen.push(text(row?.value))
    tx.put(b('x'), row?.value ?? b(''))
    return seen.length
  })
  expect({ runs, value, seen }).toEqual({ runs: 2, value: 2, seen: ['a0', 'other'] })
  expect(bench.rows()).toEqual(['a=other', 'x=other'])
})

test('TXN-1: two rows guarded by one another cannot both be changed', async () => {
  const bench = new Bench()
  await bench.put('a', 'b')
  const leave = (own: string, other: string) => async (tx: RawTransaction) => {
    if ((await tx.get(b(other))) !== undefined) tx.delete(b(own))
  }
  bench.interrupt(() => bench.run(leave('b', 'a')))
  const { runs } = await bench.run(leave('a', 'b'))
  expect(runs).toBe(2)
  expect(bench.rows()).toEqual(['a=a0'])
})

test('TXN-2: a key that was absent counts as read', async () => {
  const bench = new Bench()
  bench.interrupt(() => bench.put('a'))
  const { runs } = await bench.run(async (tx) => {
    if ((await tx.get(b('a'))) === undefined) tx.put(b('b'), b('first'))
  })
  expect(runs).toBe(2)
  expect(bench.rows()).toEqual(['a=a0'])
})

test('TXN-2: a row that appears in a scanned range is a conflict, one beyond a limited scan is none', async () => {
  const bench = new Bench()
  await bench.put('b', 'd', 'f')
  const sum =
    (limit: number | undefined, reverse = false) =>
    async (tx: RawTransaction) => {
      const range = { ...all, reverse, ...(limit !== undefined && { limit }) }
      const { rows } = await tx.scan(range)
      tx.put(b('~'), b(rows.map(({ key }) => text(key)).join('')))
    }
  const runsWith = async (key: string, ...given: Parameters<typeof sum>): Promise<number> => {
    bench.interrupt(() => bench.put(key))
    return (await bench.run(sum(...given))).runs
  }
  expect(await runsWith('c', 2)).toBe(2)
  expect(await runsWith('e', 2)).toBe(1)
  expect(await runsWith('a1', 1, true)).toBe(1)
  expect(await runsWith('g', 1, true)).toBe(2)
  expect(await runsWith('y', undefined)).toBe(2)
})

test('TXN-2: own writes take rows away from a limited scan, and what it then reaches was read', async () => {
  const bench = new Bench()
  await bench.put('a', 'b', 'c', 'd')
  await bench.run(async (tx) => {
    tx.delete(b('a'))
    tx.delete(b('b'))
    const { rows, isWhole } = await tx.scan({ ...all, limit: 1 })
    expect(rows.map(({ key }) => text(key))).toEqual(['c'])
    expect(isWhole).toBe(false)
  })
  const ranges = bench.port.submissions.at(-1)?.ranges
  expect(ranges).toEqual([{ gte: b('a'), lt: Buffer.from('c\0') }])
})

test('TXN-1: scans and gets see own writes as a plain map does, whatever the pages', async () => {
  const key = fc.constantFrom('a', 'aa', 'b', 'c', 'd', 'e')
  const step = fc.oneof(
    fc.record({ kind: fc.constant('put' as const), key, value: fc.string({ maxLength: 3 }) }),
    fc.record({ kind: fc.constant('delete' as const), key }),
    fc.record({
      kind: fc.constant('scan' as const),
      from: key,
      to: key,
      reverse: fc.boolean(),
      limit: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(key),
      fc.array(step),
      fc.nat(3),
      async (before, steps, page) => {
        const bench = new Bench()
        bench.port.pageRowsMax = page + 1
        const model = new Map<string, string>(before.map((one) => [one, `${one}0`]))
        await bench.put(...before)
        await bench.run(async (tx) => {
          for (const one of steps) {
            if (one.kind === 'put') {
              tx.put(b(one.key), b(one.value))
              model.set(one.key, one.value)
            } else if (one.kind === 'delete') {
              tx.delete(b(one.key))
              model.delete(one.key)
            } else {
              const { from, to, reverse, limit } = one
              const range = { gte: b(from), lt: b(to), reverse }
              const page = await tx.scan(limit === undefined ? range : { ...range, limit })
              const keys = [...model.keys()].filter((k) => k >= from && k < to).sort(order)
              const expected = (reverse ? keys.toReversed() : keys).slice(0, limit)
              expect(page.rows.map((row) => [text(row.key), text(row.value)])).toEqual(
                expected.map((k) => [k, model.get(k)]),
              )
              if (page.isWhole) expect(expected.length).toBe(keys.length)
            }
          }
          for (const one of ['a', 'aa', 'b', 'c', 'd', 'e']) {
            const row = await tx.get(b(one))
            expect(row === undefined ? undefined : text(row.value)).toBe(model.get(one))
          }
        })
        const expected = [...model].sort(([a], [c]) => order(a, c)).map(([k, v]) => `${k}=${v}`)
        expect(bench.rows()).toEqual(expected)
      },
    ),
  )
})

function order(a: string, c: string): number {
  return compareBytes(b(a), b(c))
}

test('TXN-4: a function that throws leaves nothing written', async () => {
  const bench = new Bench()
  const failed = bench.run(async (tx) => {
    tx.put(b('a'), b('1'))
    throw new Error('no')
  })
  await expect(failed).rejects.toThrow('no')
  expect(bench.rows()).toEqual([])
  expect(bench.port.submissions).toEqual([])
})

test('TXN-4: a handle fails after its function, and unawaited calls are an error', async () => {
  const bench = new Bench()
  let kept: RawTransaction | undefined
  await bench.run(async (tx) => {
    kept = tx
  })
  expect(() => kept?.put(b('a'), b('1'))).toThrow(expect.objectContaining({ code: 'closed' }))
  await expect(kept?.get(b('a'))).rejects.toMatchObject({ code: 'closed' })
  const hasty = bench.run(async (tx) => {
    void tx.get(b('a'))
  })
  await expect(hasty).rejects.toThrow(/ended before 1 of its calls; await each/)
})

test('a transaction that only writes opens no view, one that only reads sends nothing', async () => {
  const bench = new Bench()
  await bench.put('a')
  expect(bench.port.views).toBe(0)
  const { position, runs } = await bench.run(async (tx) => {
    await tx.get(b('a'))
  })
  expect({ position, runs, sent: bench.port.submissions.length }).toEqual({
    ...{ position: 1, runs: 1, sent: 1 },
  })
})

test('MVCC-1: a row is said to be new when it was read and not there, and only then', async () => {
  const bench = new Bench()
  await bench.put('a')
  await bench.run(async (tx) => {
    await tx.get(b('a'))
    await tx.get(b('c'))
    tx.put(b('b'), b('blind'))
    await tx.get(b('b'))
    for (const key of ['a', 'b', 'c']) tx.put(b(key), b('again'))
    tx.delete(b('d'))
    const slot = { allocation: tx.allocate(7), at: 'key', offset: 1 } as const
    tx.put(Buffer.from('k\0\0\0\0\0\0\0\0'), b('v'), [slot])
  })
  const { mutations = [] } = bench.port.submissions.at(-1) ?? {}
  expect(mutations.filter(({ isNew }) => isNew).map(({ key }) => text(key)[0])).toEqual(['c', 'k'])
})

test('a conflict that does not end names both transactions, the key and the position', async () => {
  const bench = new Bench()
  bench.port.beforeCommit = async ({ reads }) => {
    if (reads.length > 0) await bench.put('a')
    return undefined
  }
  const failed = bench.run(
    async (tx) => {
      await tx.get(b('a'))
      tx.put(b('b'), b(''))
    },
    { rerunsMax: 2, nameKey: (key) => `row ${text(key)}` },
  )
  const session = '[0-9a-f-]{36}'
  const words = `transaction ${session}/1 read row a, and transaction ${session}/4 wrote it at position 3; gave up after 3 runs`
  await expect(failed).rejects.toThrow(new RegExp(words))
  await expect(failed).rejects.toMatchObject({
    ...{ code: 'contention', retry: 'safe', detail: { attempts: 3 } },
  })
})

test('reruns wait, longer each time up to a bound, and within the deadline', async () => {
  const bench = new Bench()
  bench.port.beforeCommit = async () => ({ kind: 'conflict' })
  const failed = bench.run(async (tx) => tx.put(b('a'), b('')), { timeoutMs: 1000 })
  await expect(failed).rejects.toMatchObject({ code: 'contention' })
  expect(bench.clock.waits.length).toBeGreaterThan(5)
  for (const [index, wait] of bench.clock.waits.entries()) {
    expect(wait).toBeLessThanOrEqual(Math.min(5 * 2 ** index, 500))
  }
  expect(bench.clock.nowMs).toBeLessThan(2000)
})

test('a call whose time ends before its commit fails, and sends nothing', async () => {
  const bench = new Bench()
  const late = bench.run(
    async (tx) => {
      await tx.get(b('a'))
      tx.put(b('a'), b('1'))
      bench.clock.nowMs += 100
    },
    { timeoutMs: 100 },
  )
  await expect(late).rejects.toMatchObject({ code: 'unavailable', retry: 'safe' })
  expect(bench.port.submissions).toEqual([])
})

test('TXN-5: all runs are attempts of one intent, and an intent is settled once', async () => {
  const bench = new Bench()
  let conflicts = 2
  bench.port.beforeCommit = async () => (conflicts-- > 0 ? { kind: 'conflict' } : undefined)
  await bench.run(async (tx) => tx.put(b('a'), b('')))
  const [first, ...others] = bench.port.submissions
  expect(others.map(({ intent }) => intent)).toEqual([first?.intent, first?.intent])
  expect(new Set(bench.port.submissions.map(({ attempt }) => attempt)).size).toBe(3)
  const open = bench.intents.open()
  expect(open.intent.floor).toBe(2)
  open.settle(true)
  expect(() => open.settle(true)).toThrow('TXN-5')
})

test('TXN-5: a function that writes nothing yet holds back nothing', async () => {
  const bench = new Bench()
  const slow = bench.run(async (tx) => {
    await tx.get(b('a'))
    await bench.put('b', 'c')
    await bench.put('d')
    tx.put(b('a'), b('1'))
  })
  await slow
  const floors = bench.port.submissions.map(({ intent }) => [intent.sequence, intent.floor])
  expect(floors).toEqual([
    [1, 1],
    [2, 2],
    [3, 3],
  ])
})

test('TXN-5: a commit that is refused before anything happens leaves its session as it was', async () => {
  const bench = new Bench()
  const refused = new StoreError('overloaded', 'too many calls are under way')
  bench.port.beforeCommit = () => Promise.reject(refused)
  await expect(bench.put('a')).rejects.toBe(refused)
  bench.port.beforeCommit = async () => undefined
  await bench.put('b')
  await bench.put('c')
  const [first, second, third] = bench.port.submissions.map(({ intent }) => intent)
  expect(second).toMatchObject({ session: first?.session, sequence: 2, floor: 2 })
  expect(third).toMatchObject({ session: first?.session, sequence: 3, floor: 3 })
})

test('TXN-5: an unknown outcome says so with its intent, and leaves its session behind', async () => {
  const bench = new Bench()
  bench.port.beforeCommit = async () => ({ kind: 'unknown', takesEffect: true })
  const lost = bench.run(async (tx) => tx.put(b('a'), b('1')))
  const told = await lost.catch((error: unknown) => error)
  expect(told).toMatchObject({ code: 'unknown-outcome', retry: 'check-first' })
  expect(bench.rows()).toEqual(['a=1'])
  bench.port.beforeCommit = async () => undefined
  await bench.put('b')
  const [before, after] = bench.port.submissions
  const { session, sequence, expiresAt } = before?.intent ?? {}
  expect(told).toMatchObject({ detail: { intent: { session, sequence, expiresAt } } })
  expect(after?.intent.session).not.toBe(before?.intent.session)
  expect(after?.intent.floor).toBe(1)
})

test('TXN-5: when an earlier attempt turns out to have won, its value is the result', async () => {
  const bench = new Bench()
  const { port } = bench
  const commit = port.commit.bind(port)
  let isFirst = true
  port.commit = async (...asked) => {
    const outcome = await commit(...asked)
    if (!isFirst) return outcome
    isFirst = false
    return { kind: 'conflict', position: 1 }
  }
  let runs = 0
  const done = await bench.run(async (tx) => {
    tx.put(b('a'), b(`${++runs}`))
    return runs
  })
  expect(done).toMatchObject({ value: 1, runs: 2 })
  expect(bench.rows()).toEqual(['a=1'])
})

test.each(['overloaded', 'expired'] as const)(
  'a commit refused as %s fails with that code and writes nothing',
  async (kind) => {
    const bench = new Bench()
    bench.port.beforeCommit = async () => ({ kind })
    const refused = bench.run(async (tx) => tx.put(b('a'), b('1')))
    await expect(refused).rejects.toMatchObject({ code: kind })
    expect(bench.rows()).toEqual([])
  },
)

test.each([
  ['transactionBytesMax', 10],
  ['transactionMutationsMax', 2],
  ['transactionReadsMax', 2],
] as const)(
  'over %s a transaction is too large, and nothing of it is committed',
  async (limit, most) => {
    const bench = new Bench()
    const limits = { ...defaultTransactionLimits, [limit]: most }
    const run = (tx: RawTransaction) => async (key: string) => {
      if (limit === 'transactionReadsMax') await tx.get(b(key))
      tx.put(b(key), b('123'))
    }
    await bench.run(
      async (tx) => ['a', 'b'].reduce(async (p, k) => p.then(() => run(tx)(k)), Promise.resolve()),
      { limits },
    )
    const over = bench.run(
      async (tx) => {
        for (const key of ['c', 'd', 'e']) await run(tx)(key).catch(() => undefined)
      },
      { limits },
    )
    await expect(over).rejects.toMatchObject({
      code: 'too-large',
      detail: { limit, limitValue: most },
    })
    expect(bench.rows()).toEqual(['a=123', 'b=123'])
  },
)

test('numbers are drawn at commit, and rows that wait for one cannot be shown', async () => {
  const bench = new Bench()
  const insert = async (tx: RawTransaction): Promise<number> => {
    const allocation = tx.allocate(7)
    const slot = { allocation, at: 'key', offset: 1 } as const
    tx.put(Buffer.from('k\0\0\0\0\0\0\0\0'), b('v'), [slot])
    return allocation
  }
  const first = await bench.run(insert)
  expect(first.sequences).toEqual([1])
  const two = await bench.run(async (tx) => [await insert(tx), await insert(tx)])
  expect(two.sequences).toEqual([2, 3])
  const blind = bench.run(async (tx) => {
    await insert(tx)
    await tx.scan({ gte: b('a'), lt: b('j') })
    await tx.scan({ gte: b('j'), lt: b('l') })
  })
  await expect(blind).rejects.toThrow(/whose number is known only after commit/)
})

test('a read sees one moment, whatever is committed while it runs', async () => {
  const bench = new Bench()
  await bench.put('a', 'b')
  const { clock } = bench
  const read = await runRead(bench.port, group, { kind: 'current' }, { clock }, async (rows) => {
    const before = await rows.get(b('a'))
    await bench.run(async (tx) => {
      tx.put(b('a'), b('new'))
      tx.put(b('b'), b('new'))
    })
    return [text(before?.value), text((await rows.get(b('b')))?.value)]
  })
  expect(read.value).toEqual(['a0', 'b0'])
  const past = { kind: 'at', timestamp: read.view?.asOf ?? 0 } as const
  const again = await runRead(bench.port, group, past, { clock }, (rows) => rows.get(b('a')))
  expect(text(again.value?.value)).toBe('a0')
  const loose = await runRead(
    bench.port,
    group,
    { kind: 'inconsistent' },
    { clock },
    async (rows) => {
      const before = await rows.get(b('a'))
      await bench.put('a', 'b')
      return [text(before?.value), text((await rows.get(b('b')))?.value)]
    },
  )
  expect(loose.value).toEqual(['new', 'b0'])
  expect(loose.view?.asOf).toBeUndefined()
})

test('TXN-1: parallel transfers keep the sum, and every scan sees it whole', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(4), fc.nat(4), fc.nat(9)), { minLength: 2, maxLength: 12 }),
      async (transfers) => {
        const bench = new Bench()
        const names = ['a', 'b', 'c', 'd', 'e']
        const amount = (value: Uint8Array | undefined): number => Number(text(value) || '0')
        await bench.run(async (tx) => {
          for (const name of names) tx.put(b(name), b('100'))
        })
        const sums: number[] = []
        const sum = async (tx: RawTransaction): Promise<void> => {
          const { rows } = await tx.scan(all)
          sums.push(rows.reduce((total, { value }) => total + amount(value), 0))
        }
        const moves = transfers.map(([from, to, count]) =>
          bench.run(
            async (tx) => {
              const [source, target] = [b(names[from] ?? ''), b(names[to] ?? '')]
              const left = amount((await tx.get(source))?.value) - count
              // An empty account is closed; the next transfer to it opens it again.
              if (left === 0) tx.delete(source)
              else tx.put(source, b(`${left}`))
              const there = amount((await tx.get(target))?.value) + count
              tx.put(target, b(`${there}`))
              await sum(tx)
            },
            { rerunsMax: 100, timeoutMs: 1_000_000 },
          ),
        )
        await Promise.all([...moves, bench.run(sum)])
        await bench.run(sum)
        expect(new Set(sums)).toEqual(new Set([500]))
      },
    ),
  )
})
