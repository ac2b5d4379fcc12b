/** Entries, transactions and states by hand: with one field that is not what it should be they are none. */
import { expect, test } from 'vitest'
import { decodeEntry } from '../../src/replication/entry.ts'
import { decodeState, emptyState } from '../../src/replication/state.ts'
import { decodeTransaction } from '../../src/replication/transaction.ts'

/** A field as it is written: a number with its size, text behind its length, or bytes. */
type Field = readonly [1 | 4 | 8, number | bigint] | string | Uint8Array

function bytesOf(fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.map(bytesOfField))
}

function bytesOfField(field: Field): Uint8Array {
  if (field instanceof Uint8Array) return field
  if (typeof field === 'string') return bytesOf([[4, field.length], Buffer.from(field, 'latin1')])
  const [size, number] = field
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(number))
  return bytes.subarray(8 - size)
}

/** Each of these fields replaced by what it must not be: its place, wrong ones. */
type WrongFields = readonly (readonly [number, readonly Field[]])[]

function expectRefused(
  decode: (bytes: Uint8Array) => unknown,
  good: readonly Field[],
  wrongFields: WrongFields,
): void {
  expect(decode(bytesOf(good)), 'the value that the wrong ones are made from').toBeDefined()
  expect(decode(bytesOf([...good, [1, 0]]))).toBeUndefined()
  for (const [place, wrong] of wrongFields) {
    for (const field of wrong) {
      const bytes = bytesOf(good.map((one, i) => (i === place ? field : one)))
      expect(decode(bytes), `${place} = ${String(field)}`).toBeUndefined()
    }
  }
}

const noCount: Field = [8, 2n ** 53n]
const key = Buffer.from('row-key-')
/** A row written with a number drawn, and one deleted. */
const someTransaction: readonly Field[] = [
  ...([[1, 1], [8, 1], [8, 1], [8, 0], [8, 99], 's', [4, 1], [8, 1], [4, 2]] as const),
  ...([[1, 5], [4, 8], [4, 9], [4, 1], [4, 0], [1, 1], [4, 1], key, Buffer.alloc(9)] as const),
  ...([[1, 0], [4, 8], key] as const),
]

test('codec: a transaction with one wrong field is none', () => {
  const absurd: Field = [4, 2 ** 32 - 1]
  expectRefused(decodeTransaction, someTransaction, [
    [
      0,
      [
        [1, 0],
        [1, 2],
      ],
    ],
    ...[1, 2, 3, 4, 7].map((place) => [place, [noCount]] as const),
    [6, [[4, 0], [4, 2], absurd]],
    [8, [[4, 1], [4, 3], absurd]],
    // Slots or "new" of no value; marks that mean nothing.
    [
      9,
      [
        [1, 0],
        [1, 2],
        [1, 4],
        [1, 8],
        [1, 13],
      ],
    ],
    [10, [[4, 7], [4, 9], absurd]],
    [11, [[4, 8], [4, 10], absurd]],
    [12, [[4, 0], [4, 2], absurd]],
    [13, [[4, 1]]],
    [14, [[1, 2]]],
    [15, [[4, 2], absurd]],
    [
      18,
      [
        [1, 1],
        [1, 2],
        [1, 4],
      ],
    ],
    [
      19,
      [
        [4, 7],
        [4, 9],
      ],
    ],
  ])
})

test('codec: a slot lies within the key or the value that it is of', () => {
  const of = (side: number, offset: number): unknown =>
    decodeTransaction(
      bytesOf(
        someTransaction.map((one, i) => (i === 14 ? [1, side] : i === 15 ? [4, offset] : one)),
      ),
    )
  expect([of(0, 0), of(1, 0), of(1, 1)].every((one) => one !== undefined)).toBe(true)
  expect([of(0, 1), of(1, 2)]).toEqual([undefined, undefined])
})

test('codec: an entry with one wrong field is none', () => {
  const inner = bytesOf(someTransaction)
  const good: readonly Field[] = [
    ...([[1, 3], [1, 0], [8, 7], [8, 1000], [8, 900], [8, 1], 'n1', [4, 2]] as const),
    ...([[4, inner.length], inner, [4, inner.length], inner] as const),
  ]
  expectRefused(decodeEntry, good, [
    [
      0,
      [
        [1, 0],
        [1, 2],
        [1, 4],
      ],
    ],
    [1, [[1, 1]]],
    ...[2, 3, 5].map((place) => [place, [[8, 0], noCount]] as const),
    // A horizon beyond the entry itself would make the newest state unreadable.
    [4, [[8, 1001], noCount]],
    [6, ['', 'No Node', 'x'.repeat(33)]],
    [
      7,
      [
        [4, 1],
        [4, 3],
        [4, 2 ** 32 - 1],
      ],
    ],
    [
      8,
      [
        [4, inner.length - 1],
        [4, inner.length + 1],
        [4, 0],
      ],
    ],
    [9, [Buffer.alloc(inner.length)]],
  ])
})

const committed: readonly Field[] = [
  [8, 2],
  [1, 1],
  [8, 5],
  [8, 50],
  [8, 1],
  [4, 1],
  [8, 7],
]
const someSession: readonly Field[] = ['s', [8, 1], [8, 99], [4, 2], [8, 1], [1, 0], ...committed]

test('codec: a state with one wrong field is none', () => {
  const head: readonly Field[] = [[1, 3], [8, 6], [8, 60], [8, 50], [8, 1], 'n1']
  const good = [
    ...head,
    ...([
      [4, 1],
      [8, 1],
      [8, 7],
      [4, 1],
    ] as const),
    ...someSession,
  ]
  expectRefused(decodeState, good, [
    [
      0,
      [
        [1, 0],
        [1, 2],
        [1, 4],
      ],
    ],
    // Position 0 has no leader, and every later one has.
    [1, [[8, 0], noCount]],
    [2, [[8, 49], noCount]],
    [3, [[8, 61], noCount]],
    [4, [noCount]],
    [5, ['', 'No Node']],
    [
      6,
      [
        [4, 0],
        [4, 2],
        [4, 2 ** 32 - 1],
      ],
    ],
    ...[7, 8, 11, 12, 14, 16, 18, 19, 20, 22].map((place) => [place, [noCount]] as const),
    [
      9,
      [
        [4, 0],
        [4, 2],
        [4, 2 ** 32 - 1],
      ],
    ],
    [
      13,
      [
        [4, 1],
        [4, 3],
      ],
    ],
    [
      15,
      [
        [1, 1],
        [1, 2],
      ],
    ],
    [
      17,
      [
        [1, 0],
        [1, 2],
      ],
    ],
    [
      21,
      [
        [4, 0],
        [4, 2],
      ],
    ],
    // An outcome twice.
    [16, [[8, 1]]],
  ])
  const counterTwice = [
    ...head,
    ...([
      [4, 2],
      [8, 1],
      [8, 7],
      [8, 1],
      [8, 8],
      [4, 0],
    ] as const),
  ]
  expect(decodeState(bytesOf(counterTwice))).toBeUndefined()
  const sessionTwice = [
    ...head,
    ...([
      [4, 0],
      [4, 2],
    ] as const),
    ...someSession,
    ...someSession,
  ]
  expect(decodeState(bytesOf(sessionTwice))).toBeUndefined()
})

test('codec: a state that is not at position 0 without a leader is the only one without', () => {
  const of = (position: number): Buffer =>
    bytesOf([[1, 3], [8, position], [8, 0], [8, 0], [8, 0], '', [4, 0], [4, 0]])
  expect(decodeState(of(0))).toEqual(emptyState())
  expect(decodeState(of(1))).toBeUndefined()
})
