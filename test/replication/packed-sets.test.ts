/** Write sets as bytes: the same sets come out as went in, whatever is taken in between. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { defaultLimits } from '../../src/base/limits.ts'
import { PackedSets, type EntryWriteSets } from '../../src/replication/packed-sets.ts'
import { ValidationWindow } from '../../src/replication/window.ts'

const key = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
const set = fc.record({
  by: fc.record({
    session: fc.string({ unit: 'grapheme', maxLength: 8 }),
    sequence: fc.maxSafeNat(),
  }),
  keys: fc.array(key, { maxLength: 5 }),
})
const sets = fc.array(set, { maxLength: 3 })

function keyCountOf(entry: Pick<EntryWriteSets, 'sets'>): number {
  return entry.sets.reduce((sum, { keys }) => sum + keys.length, 0)
}

test('entries come out as they went in, the oldest first, however many were dropped before', () => {
  const steps = fc.array(fc.option(sets, { freq: 3, nil: undefined }), { maxLength: 60 })
  fc.assert(
    fc.property(steps, (all) => {
      const packed = new PackedSets()
      const kept: (EntryWriteSets & { readonly keyCount: number })[] = []
      for (const [index, one] of all.entries()) {
        if (one !== undefined) {
          const entry = { position: index + 1, timestamp: index * 1_000_003, sets: one }
          packed.push(entry, keyCountOf(entry))
          kept.push({ ...entry, keyCount: keyCountOf(entry) })
        } else if (kept.length > 0) {
          const oldest = kept.shift()
          expect(packed.oldestTimestamp).toBe(oldest?.timestamp)
          expect(packed.drop()).toEqual({
            position: oldest?.position,
            keyCount: oldest?.keyCount,
          })
        }
        expect(packed.size).toBe(kept.length)
      }
      expect([...packed.entries()]).toEqual(kept)
      packed.clear()
      expect([...packed.entries()]).toEqual([])
    }),
  )
})

/** Pushes that use up the spare room at least twice, of entries of this length; `count` of them stay. */
function pass(packed: PackedSets, count: number, keyChars: number): void {
  const one = { by: { session: 'a', sequence: 1 }, keys: ['x'.repeat(keyChars)] }
  for (let position = 1; position <= 6 * countMost; position++) {
    packed.push({ position, timestamp: 1, sets: [one] }, 1)
    while (packed.size > count) packed.drop()
  }
}

const countMost = 1_000
/** Beside the characters of its key. */
const entryBytes = 49

test('as many entries as ever take a third more memory than their bytes', () => {
  for (const count of [16, 64, countMost]) {
    const packed = new PackedSets()
    pass(packed, count, 100)
    const bytes = count * (entryBytes + 100)
    expect(packed.heldBytes).toBeGreaterThanOrEqual(bytes)
    expect(packed.heldBytes).toBeLessThanOrEqual((bytes * 4) / 3 + 512)
  }
})

test('entries take at most 2.5 times their bytes, however many there were before', () => {
  const phase = fc.record({ count: fc.integer({ min: 1, max: countMost }), keyChars: fc.nat(40) })
  fc.assert(
    fc.property(fc.array(phase, { minLength: 2, maxLength: 6 }), (phases) => {
      const packed = new PackedSets()
      for (const { count, keyChars } of phases) {
        pass(packed, count, keyChars)
        // An entry more for the one that is pushed, and one for the room that a session's name may take.
        const bytesMost = (count + 2) * (entryBytes + keyChars)
        expect(packed.heldBytes).toBeLessThanOrEqual(Math.max(1_024, 2.5 * bytesMost))
      }
    }),
    { numRuns: 20 },
  )
})

test('TXN-1: a window consulted along the way remembers the same as one consulted at the end', () => {
  const few = { ...defaultLimits, validationWindow: 3, validationWindowMax: 5, validationMs: 2 }
  const step = fc.record({ keys: fc.array(key, { maxLength: 2 }), isAsked: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), fc.nat({ max: 20 }), (steps, read) => {
      const asked = new ValidationWindow(0, few)
      const left = new ValidationWindow(0, few)
      for (const [index, { keys, isAsked }] of steps.entries()) {
        const position = index + 1
        const by = { session: 's', sequence: position }
        for (const window of [asked, left]) {
          window.add({ position, timestamp: position * 1_000, sets: [{ by, keys }] })
        }
        if (isAsked) asked.conflict(asked.from, ['x'], [], position)
      }
      expect([...asked.entries()].map(({ position }) => position)).toEqual(
        [...left.entries()].map(({ position }) => position),
      )
      const readKeys = steps.flatMap(({ keys }) => keys)
      const through = steps.length
      expect(asked.conflict(read, readKeys, [], through)).toEqual(
        left.conflict(read, readKeys, [], through),
      )
      expect(asked.from).toBe(left.from)
    }),
  )
})
