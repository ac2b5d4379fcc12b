/** Rows with what the data store says of the log, and those that earlier builds wrote of each position. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { roundMax } from '../../src/paxos/ballot.ts'
import { positionKey } from '../../src/store/row-format.ts'
import { SettledRows, type PositionRow } from '../../src/log/settled.ts'
import { encodeOldRow, keepOldRow } from './earlier-builds.ts'
import { FakeData } from './log-fixture.ts'

const count = fc.maxSafeNat()
const node = fc.stringMatching(/^[a-z0-9-]{1,32}$/).map(nodeId)
/** Such rows were written before there were epochs. */
const epoch = fc.constant(1)
const round = fc.oneof(fc.nat({ max: 9 }), fc.integer({ min: 0, max: roundMax }))
const ballot = fc.record({ epoch, round, node, incarnation: count })
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

test('the end of a stretch comes back as it was kept, under its group and position alone', () => {
  fc.assert(
    fc.property(group, group, count, count, count, (one, other, position, elsewhere, flush) => {
      const data = new FakeData()
      const rows = new SettledRows(data)
      rows.keepStretchEnd(one, position, flush)
      expect([rows.stretchEnd(one, position), rows.row(one, position)]).toEqual([flush, undefined])
      if (position !== elsewhere) expect(rows.stretchEnd(one, elsewhere)).toBeUndefined()
      if (one !== other) expect(rows.stretchEnd(other, position)).toBeUndefined()
      const key = positionKey(one, position)
      data.setRow(key, (data.row(key) ?? Buffer.alloc(0)).subarray(0, 8))
      expect(() => rows.stretchEnd(one, position)).toThrow('is not whole')
    }),
  )
})

test('a row of an earlier build is read, and is no end of a stretch', () => {
  fc.assert(
    fc.property(group, count, row, (one, position, kept) => {
      const data = new FakeData()
      const rows = new SettledRows(data)
      keepOldRow(data, one, position, kept)
      expect([rows.row(one, position), rows.stretchEnd(one, position)]).toEqual([kept, undefined])
    }),
  )
})

test('a row of an earlier build that is cut, or of another format, is refused', () => {
  const name = groupOfBytes(Buffer.from('g'))
  fc.assert(
    fc.property(row, fc.nat(), (kept, cut) => {
      const data = new FakeData()
      const rows = new SettledRows(data)
      const key = positionKey(name, 1)
      const whole = encodeOldRow(kept)
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
