/** Values that a query compares fields of an index to: moments of any year, and numbers as JSON has them. */
import { expect, test } from 'vitest'
import { applyIndex } from '../../src/cells/index-registry.ts'
import type { Page } from '../../src/base/page.ts'
import type { CellIndexEntry } from '../../src/client/cell-indexes.ts'
import type { IndexWhere } from '../../src/client/filters.ts'
import { ann, bench, declared, definition } from './driver-index.ts'
import { makeReady } from './ready-index.ts'

test('a query finds a datetime that looks like milliseconds by the value its entry returned', async () => {
  const { tables, clock, run, rest, write, index } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  const given = 1_700_000_000_123
  await write(0, 'BASE', 0, { driver: ann, at: given })
  await write(1, 'BASE', 0, { driver: ann, at: '2026-01-31' })
  await rest()
  const asked = async (at: IndexWhere[string]): Promise<readonly unknown[]> =>
    (await run(index.query({ driver: ann, at }))).items.map(({ fields }) => fields['at'])
  const [entry] = await asked({ lt: '1970-02-01' })
  expect(entry).toBe(given)
  const text = '1970-01-20T16:13:20.000123Z'
  const same = [given, BigInt(given), `${given}`, text, { lte: BigInt(given) }, { lte: text }]
  for (const at of same) {
    expect(await asked(at)).toEqual([given])
  }
  expect(await asked({ gt: BigInt(given) })).toHaveLength(1)
  const seconds = '1970-01-01T00:28:20.000000Z'
  await expect(asked({ gte: 1_700_000_000 })).rejects.toThrow(`seconds; a datetime is`)
  await expect(asked({ lt: '1.7e9' })).rejects.toThrow(`for that moment of 1970 give ${seconds}`)
  for (const at of [{ gte: given }, { gt: `${given}` }, { lt: given }, { lte: given }]) {
    await expect(asked(at)).rejects.toThrow(`for that moment of 1970 give ${text}`)
  }
})

test('a number in a filter is written as JSON writes it, as a number and as a text', async () => {
  const { tables, clock, run, rest, write, index } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  await write(1, 'BASE', 0, { driver: ann, at: 1000, fare: { total: 3 } })
  await rest()
  const asked = async (where: object): Promise<unknown> =>
    (await run(index.query({ driver: ann, ...where }))).items.length
  for (const total of [3, '3', '3e0', '3.0', '30e-1']) {
    expect(await asked({ 'fare.total': total })).toBe(1)
  }
  for (const total of ['+3', '03', '0x3', ' 3', '3.']) {
    await expect(asked({ 'fare.total': total })).rejects.toThrow('is no value of it')
  }
  for (const at of [1000, '1000', '1e3']) expect(await asked({ at })).toBe(1)
  await expect(asked({ at: '+1000' })).rejects.toThrow('is no value of it')
})

test('dates of each year from 1 to 9999 are found, sorted and told; others are no values', async () => {
  const { tables, clock, run, rest, write, index } = bench()
  await run(applyIndex(tables, definition(), clock))
  await run(makeReady(tables, clock, declared()))
  const dates = ['0001-01-01', '1606-07-15', '1969-07-20', '2020-01-01', '2300-01-01', '9999-12-31']
  for (const [row, at] of [...dates, '0000-01-01', 'soon'].entries()) {
    await write(row, 'BASE', 0, { driver: ann, at })
  }
  await rest()
  const asked = (where: object): Promise<Page<CellIndexEntry>> =>
    run(index.query({ driver: ann, ...where }, { select: ['at'] }))
  const micros = dates.map((text) => BigInt(Date.parse(text)) * 1000n)
  const told = (page: Page<CellIndexEntry>): unknown[] =>
    page.items.flatMap(({ fields: { at } }) => (at === null ? [null] : [BigInt(Number(at ?? 0))]))
  expect(told(await asked({}))).toEqual([null, null, ...micros])
  expect(told(await asked({ at: { gte: '2016-01-01' } }))).toEqual(micros.slice(3))
  expect(told(await asked({ at: { lt: '1700-01-01' } }))).toEqual(micros.slice(0, 2))
  expect(told(await asked({ at: { gt: '0001-01-01', lte: '2300-01-01' } }))).toEqual(
    micros.slice(1, 5),
  )
  expect(told(await asked({ at: '9999-12-31' }))).toEqual(micros.slice(5))
  expect(told(await asked({ at: micros[1] }))).toEqual(micros.slice(1, 2))
  await expect(asked({ at: '0000-01-01' })).rejects.toMatchObject({ code: 'invalid' })
  await expect(asked({ at: 2n ** 60n })).rejects.toThrow(
    /at is 1152921504606846976n; expected a bigint of microseconds of the years 1 to 9999/,
  )
})
