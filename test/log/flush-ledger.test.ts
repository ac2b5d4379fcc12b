/** Which flushes are held, and which are read again: what a peer may have missed is the same. */
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { FlushLedger, type Written } from '../../src/log/flush-ledger.ts'
import { noPositions } from '../../src/log/log-index.ts'
import { whole } from './whole.ts'

const group = groupOfBytes(Buffer.from('g'))

/** A ledger after a number of flushes of one position each, settled and trimmed after each. */
function ledgerOf(flushes: number): FlushLedger {
  const ledger = new FlushLedger(1, 0)
  const found = noPositions(group, 0)
  for (let number = 1; number <= flushes; number++) {
    ledger.open(number)
    ledger.add(number, found, number, true)
    ledger.close({ number, incarnation: 1, crc: 0 })
    ledger.advance(number, () => 'pass')
    ledger.trim()
  }
  return ledger
}

/** The flushes that had to be read for an answer, and the answer. */
function since(
  ledger: FlushLedger,
  after: number,
  durable: number,
): {
  readonly read: readonly number[]
  readonly through: number
  readonly isWhole: boolean
  readonly groups: readonly Written[]
} {
  const read: number[] = []
  const answer = whole(
    ledger.since(after, 10, durable, (number) => {
      read.push(number)
      return [[group, number]]
    }),
  )
  return { read, ...answer }
}

test('the last flushes are held however few groups each has, and no more of them than that', () => {
  const flushes = 30_000
  const ledger = ledgerOf(flushes)
  const late = since(ledger, flushes - 15_000, flushes)
  expect(late).toEqual({
    ...{ read: [], through: flushes, isWhole: true, groups: [[group, flushes]] },
  })
  const early = since(ledger, 0, flushes)
  expect(early.read).toHaveLength(64)
  expect(early).toMatchObject({ through: 64, groups: [[group, 64]] })
})

test('flushes that are not settled are held, however many', () => {
  const ledger = ledgerOf(0)
  const found = noPositions(group, 0)
  const flushes = 30_000
  for (let number = 1; number <= flushes; number++) {
    ledger.open(number)
    ledger.add(number, found, number, true)
    ledger.trim()
  }
  expect(since(ledger, 0, flushes).read).toEqual([])
  expect([...ledger.unsettled()]).toEqual([group])
})
