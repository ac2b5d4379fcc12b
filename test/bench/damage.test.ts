/** The parts of the bench of damage that judge what nodes show, and that damage files. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildCell, findFault } from '../../bench/damage/checked-value.ts'
import { cutOff, flipBit, pickFile } from '../../bench/damage/files.ts'
import { withFolder } from '../cluster/harness.ts'

const row = { key: 'a', acknowledged: 3, tried: 5 }

test('a value between the acknowledged number and the last one sent is right, and every other one is wrong', () => {
  const body = (number: number, of = row) => buildCell(of, number, 'pad').body
  const kindOf = (shown: unknown, floor?: number) => findFault(row, shown, floor)?.kind
  expect([3, 4, 5].map((number) => kindOf(body(number), 3))).toEqual(Array(3).fill(undefined))
  expect([kindOf(body(2), 3), kindOf(undefined, 3)]).toEqual(['hidden', 'hidden'])
  // A snapshot may be from before the row was there.
  expect([kindOf(body(2)), kindOf(undefined)]).toEqual([undefined, undefined])
  const changed = { ...buildCell(row, 4, 'pad'), body: { ...Object(body(4)), pad: 'Pad' } }.body
  const another = body(4, { ...row, key: 'b' })
  expect([changed, another, body(6), null, { v: 1 }].map((shown) => kindOf(shown))).toEqual(
    Array(5).fill('other'),
  )
})

test('one bit of the written bytes is flipped, and the zeros behind them count for nothing', () =>
  withFolder(async (folder) => {
    const written = Buffer.alloc(100, 7)
    for (const name of ['0000000001.segment', '0000000002.segment', 'spare-1.segment']) {
      await writeFile(join(folder, name), Buffer.concat([written, Buffer.alloc(900)]))
    }
    const file = await pickFile(folder, 'journal')
    expect(file).toBe(join(folder, '0000000002.segment'))
    expect(await flipBit(file, 0.5)).toContain('byte 50 ')
    const flipped = await readFile(file)
    expect(flipped.length).toBe(1_000)
    expect([...flipped.subarray(0, 100).entries()].filter(([, byte]) => byte !== 7)).toEqual([
      [50, 7 ^ 0x10],
    ])
    expect(await cutOff(file, 0.6)).toBe('cut from 1000 to 60 bytes')
    expect((await readFile(file)).length).toBe(60)
  }))

test('the largest table of a store is damaged, or its newest journal', () =>
  withFolder(async (folder) => {
    const sizes = { '000003.ldb': 10, '000005.ldb': 5, '000004.log': 50, '000006.log': 1, LOCK: 99 }
    for (const [name, size] of Object.entries(sizes)) {
      await writeFile(join(folder, name), Buffer.alloc(size, 1))
    }
    expect(await pickFile(folder, 'table')).toBe(join(folder, '000003.ldb'))
    expect(await pickFile(folder, 'journal')).toBe(join(folder, '000006.log'))
  }))
