/** The row of the buckets that a set has given away and got: its steps, and its bytes. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import {
  beginLeaving,
  close,
  decodeShares,
  encodeShares,
  finish,
  giveUpLeaving,
  isGoing,
  receive,
  settle,
} from '../../src/members/shares-row.ts'
import type { SharesRow } from '../../src/placement/shares.ts'

const all = (): boolean => true
const none = (): boolean => false
const gift = { set: 'west', buckets: [1, 5, 4095] }
const began = [groupOfBytes(Uint8Array.of(1, 2))]
const [a, b, c] = [nodeId('a'), nodeId('b'), nodeId('c')]

/** A majority of three voters tells the same list. */
function settled(row: SharesRow, epoch: number, listed: readonly GroupId[]): SharesRow {
  const told = settle(row, { node: a, epoch, began: listed }, [a, b, c])
  return settle(told, { node: b, epoch, began: listed }, [a, b, c])
}

test('buckets leave, close with an epoch, are settled, and are gone', () => {
  const leaving = beginLeaving([], gift, all)
  expect(leaving).toEqual([{ ...gift, phase: 'leaving', term: 1, epoch: 0, began: [] }])
  const listed = settled(close(leaving, 4), 4, began)
  expect(listed).toEqual([{ ...gift, phase: 'settled', term: 1, epoch: 4, began }])
  const gone = finish(listed)
  expect(gone.map(({ phase }) => phase)).toEqual(['gone'])
  expect([leaving, listed, gone].map((row) => row.some(isGoing))).toEqual([true, true, false])
})

test('a set gives no bucket that it does not have, and none while others are on their way', () => {
  expect(() => beginLeaving([], gift, none)).toThrow('does not have bucket 1')
  const gone = finish(settled(close(beginLeaving([], gift, all), 4), 4, []))
  expect(() => beginLeaving(gone, { set: 'east', buckets: [5] }, all)).toThrow('bucket 5')
  const leaving = beginLeaving([], gift, all)
  expect(() => beginLeaving(leaving, { set: 'east', buckets: [9] }, all)).toThrow('on their way')
})

test('each time that a bucket goes it has a higher term', () => {
  const gone = finish(settled(close(beginLeaving([], gift, all), 4), 4, []))
  const back = receive(gone, { set: 'west', buckets: [5] }, 2)
  expect(back.map(({ phase, buckets }) => [phase, buckets])).toEqual([
    ['gone', [1, 4095]],
    ['here', [5]],
  ])
  const again = beginLeaving(back, { set: 'east', buckets: [5, 9] }, all)
  expect(again.at(-1)).toMatchObject({ term: 3, buckets: [5, 9] })
})

test('buckets that have come are not taken up again, nor those that have gone on since', () => {
  const came = receive([], gift, 1)
  expect(receive(came, gift, 1)).toBe(came)
  const on = finish(settled(close(beginLeaving(came, { ...gift, set: 'east' }, none), 9), 9, []))
  expect(receive(on, gift, 1)).toBe(on)
})

test('leaving buckets can stay, with the term that they have; closed ones go on', () => {
  const stayed = giveUpLeaving(beginLeaving([], gift, all))
  expect(stayed).toMatchObject([{ phase: 'here', term: 1 }])
  expect(beginLeaving(stayed, gift, all)).toMatchObject([{ phase: 'leaving', term: 2 }])
  expect(() => giveUpLeaving(close(beginLeaving([], gift, all), 2))).toThrow('can only go on')
  expect(() => giveUpLeaving([])).toThrow('No buckets')
})

test('MOVE-14: a phase is not passed over', () => {
  expect(() => close([], 2)).toThrow('MOVE-14')
  expect(() => finish(close(beginLeaving([], gift, all), 2))).toThrow('MOVE-14')
})

test('MOVE-14: the buckets are settled by the lists of a majority of the voters, with the groups on any of them', () => {
  const closed = close(beginLeaving([], gift, all), 4)
  const other = groupOfBytes(Uint8Array.of(3))
  const voters = [a, b, c]
  const one = settle(closed, { node: a, epoch: 4, began }, voters)
  expect(one).toMatchObject([{ phase: 'closed', began, told: [a] }])
  // Again, of another epoch, or by a node that has no vote.
  expect(settle(one, { node: a, epoch: 4, began: [other] }, voters)).toBe(one)
  expect(settle(one, { node: b, epoch: 3, began: [other] }, voters)).toBe(one)
  const stranger = settle(one, { node: nodeId('d'), epoch: 4, began: [] }, voters)
  expect(stranger).toMatchObject([{ phase: 'closed', told: [a, 'd'] }])
  const both = settle(one, { node: c, epoch: 4, began: [...began, other] }, voters)
  expect(both).toMatchObject([{ phase: 'settled', began: [...began, other] }])
  expect(both[0]?.told).toBeUndefined()
  expect(settle(both, { node: b, epoch: 4, began: [] }, voters)).toBe(both)
  for (const row of [one, both]) expect(decodeShares(encodeShares(row))).toEqual(row)
})

test('the bytes of a row give the row again', () => {
  const row: SharesRow = [
    ...settled(close(beginLeaving([], gift, all), 4), 4, began),
    { phase: 'here', set: 'east', term: 7, buckets: [0, 2, 4000], epoch: 0, began: [] },
  ]
  expect(decodeShares(encodeShares(row))).toEqual(row)
})

test('bytes that are no such row are refused', () => {
  const bits = new Uint8Array(512).fill(1)
  const good = ['here', 'east', 1, bits, 0, [], []]
  expect(decodeShares(pack([1, good]))).toBeDefined()
  const bad: Packable[] = [
    [2, good],
    [1, good, good],
    [1, ['there', 'east', 1, bits, 0, [], []]],
    [1, ['here', 'no name', 1, bits, 0, [], []]],
    [1, ['here', 'east', -1, bits, 0, [], []]],
    [1, ['here', 'east', 1, bits.subarray(1), 0, [], []]],
    [1, ['here', 'east', 1, new Uint8Array(512), 0, [], []]],
    [1, ['here', 'east', 1, bits, 0, [7], []]],
    [1, ['here', 'east', 1, bits, 0, [], [7]]],
    [1, 3],
    'row',
  ]
  for (const one of bad) expect(decodeShares(pack(one))).toBeUndefined()
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      decodeShares(bytes)
    }),
  )
})
