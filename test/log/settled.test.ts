/** Rows with the log's claims of positions: a row reads back, and no other bytes pass for one. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { positionKey } from '../../src/store/row-format.ts'
import { SettledRows, type PositionRow } from '../../src/log/settled.ts'
import { FakeData } from './log-fixture.ts'

const count = fc.maxSafeNat()
const node = fc.stringMatching(/^[a-z0-9-]{1,32}$/).map(nodeId)
const ballot = fc.record({ round: count, node, incarnation: count })
const group = fc.uint8Array({ minLength: 1, maxLength: 1024 }).map(groupOfBytes)
const index = fc.integer({ min: 0, max: 10_000 })
/** Of few ballots, as in a log: some of them the same. */
const row: fc.Arbitrary<PositionRow> = fc
  .array(ballot, { minLength: 1, maxLength: 3 })
  .chain((ballots) => {
    const one = fc.option(fc.constantFrom(...ballots), { nil: undefined })
    const place = fc.record({ flush: count, index })
    return fc.record({
      ...{ promised: one, accepted: one, chosen: one, lastFlush: count },
      place: fc.oneof(place, fc.constantFrom('faulty' as const, undefined)),
    })
  })

test('a row comes back as it was kept, under its group and position alone', () => {
  fc.assert(
    fc.property(group, group, count, count, row, (one, other, position, elsewhere, kept) => {
      const rows = new SettledRows(new FakeData())
      rows.keep(one, position, kept)
      expect(rows.row(one, position)).toEqual(kept)
      if (position !== elsewhere) expect(rows.row(one, elsewhere)).toBeUndefined()
      if (one !== other) expect(rows.row(other, position)).toBeUndefined()
    }),
  )
})

test('a row that is cut, or of another format, is refused', () => {
  const name = groupOfBytes(Buffer.from('g'))
  fc.assert(
    fc.property(row, fc.nat(), (kept, cut) => {
      const data = new FakeData()
      const rows = new SettledRows(data)
      rows.keep(name, 1, kept)
      const key = positionKey(name, 1)
      const whole = Buffer.from(data.row(key) ?? [])
      const { promised, accepted, chosen } = kept
      const ballotCount = new Set([promised, accepted, chosen].filter(Boolean)).size
      // Without its last ballot a row names one that is not there; a whole row names each.
      const shortest = ballotCount === 0 ? whole.length : whole.length - 1
      data.setRow(key, whole.subarray(0, 1 + (cut % Math.min(23, shortest))))
      expect(() => rows.row(name, 1)).toThrow('is not whole')
      if (ballotCount > 0) {
        data.setRow(key, whole.subarray(0, -1))
        expect(() => rows.row(name, 1)).toThrow('is not whole')
        data.setRow(key, whole.subarray(0, 24))
        expect(() => rows.row(name, 1)).toThrow('is not whole')
      }
      whole[0] = 1
      data.setRow(key, whole)
      expect(() => rows.row(name, 1)).toThrow('is of format 1')
    }),
  )
})
