/** Entries, transactions and states by hand: with one field that is not what it should be they are none. */
import { expect, test } from 'vitest'
import { decodeEntry } from '../../src/replication/entry.ts'
import { decodeState, emptyState } from '../../src/replication/state.ts'
import { decodeTransaction } from '../../src/group/transaction.ts'

/** A field as it is written: a number of one byte, of eight, or a count; text behind its length, or bytes. */
type Field = readonly [1 | 'wide' | 'n', number | bigint] | string | Uint8Array

function bytesOf(fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.map(bytesOfField))
}

function bytesOfField(field: Field): Uint8Array {
  if (field instanceof Uint8Array) return field
  if (typeof field === 'string') return bytesOf([['n', field.length], Buffer.from(field, 'latin1')])
  const [size, number] = field
  if (size === 'n') return Buffer.from(countBytes(BigInt(number)))
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(number))
  return bytes.subarray(size === 1 ? 7 : 0)
}

function countBytes(number: bigint): readonly number[] {
  if (number < 128n) return [Number(number)]
  return [Number(number % 128n) + 128, ...countBytes(number / 128n)]
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

const noCount: Field = ['n', 2n ** 53n]
const noTime: Field = ['wide', 2n ** 53n]
const key = Buffer.from('row-key-')
/** A row written with a number drawn, and one deleted. */
const someTransaction: readonly Field[] = [
  ...([
    [1, 1],
    ['n', 1],
    ['n', 1],
    ['n', 0],
    ['wide', 99],
    's',
    ['n', 1],
    ['n', 1],
    ['n', 2],
  ] as const),
  ...([
    [1, 5],
    ['n', 8],
    ['n', 9],
    ['n', 1],
    ['n', 0],
    [1, 1],
    ['n', 1],
    key,
    Buffer.alloc(9),
  ] as const),
  ...([[1, 0], ['n', 8], key] as const),
]

test('codec: a transaction with one wrong field is none', () => {
  const absurd: Field = ['n', 2 ** 32 - 1]
  expectRefused(decodeTransaction, someTransaction, [
    [
      0,
      [
        [1, 0],
        [1, 2],
      ],
    ],
    ...[1, 2, 3, 7].map((place) => [place, [noCount]] as const),
    [4, [noTime]],
    [6, [['n', 0], ['n', 2], absurd]],
    [8, [['n', 1], ['n', 3], absurd]],
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
    [10, [['n', 7], ['n', 9], absurd]],
    [11, [['n', 8], ['n', 10], absurd]],
    [12, [['n', 0], ['n', 2], absurd]],
    [13, [['n', 1]]],
    [14, [[1, 2]]],
    [15, [['n', 2], absurd]],
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
        ['n', 7],
        ['n', 9],
      ],
    ],
  ])
})

test('codec: a slot lies within the key or the value that it is of', () => {
  const of = (side: number, offset: number): unknown =>
    decodeTransaction(
      bytesOf(
        someTransaction.map((one, i) => (i === 14 ? [1, side] : i === 15 ? ['n', offset] : one)),
      ),
    )
  expect([of(0, 0), of(1, 0), of(1, 1)].every((one) => one !== undefined)).toBe(true)
  expect([of(0, 1), of(1, 2)]).toEqual([undefined, undefined])
})

test('codec: an entry with one wrong field is none', () => {
  const inner = bytesOf(someTransaction)
  const good: readonly Field[] = [
    ...([
      [1, 3],
      [1, 0],
      ['n', 7],
      ['wide', 1000],
      ['wide', 900],
      ['n', 1],
      'n1',
      ['n', 2],
    ] as const),
    ...([['n', inner.length], inner, ['n', inner.length], inner] as const),
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
    ...[2, 5].map((place) => [place, [['n', 0], noCount]] as const),
    [3, [['wide', 0], noTime]],
    // A horizon beyond the entry itself would make the newest state unreadable.
    [4, [['wide', 1001], noTime]],
    [6, ['', 'No Node', 'x'.repeat(33)]],
    [
      7,
      [
        ['n', 1],
        ['n', 3],
        ['n', 2 ** 32 - 1],
      ],
    ],
    [
      8,
      [
        ['n', inner.length - 1],
        ['n', inner.length + 1],
        ['n', 0],
      ],
    ],
    [9, [Buffer.alloc(inner.length)]],
  ])
})

const committed: readonly Field[] = [
  ['n', 2],
  [1, 1],
  ['n', 5],
  ['wide', 50],
  ['n', 1],
  ['n', 1],
  ['n', 7],
]
const someSession: readonly Field[] = [
  's',
  ['n', 1],
  ['wide', 99],
  ['n', 2],
  ['n', 1],
  [1, 0],
  ...committed,
]

test('codec: a state with one wrong field is none', () => {
  const head: readonly Field[] = [[1, 3], ['n', 6], ['wide', 60], ['wide', 50], ['n', 1], 'n1']
  const good = [
    ...head,
    ...([
      ['n', 1],
      ['n', 1],
      ['n', 7],
      ['n', 1],
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
    [1, [['n', 0], noCount]],
    [2, [['wide', 49], noTime]],
    [3, [['wide', 61], noTime]],
    [4, [noCount]],
    [5, ['', 'No Node']],
    [
      6,
      [
        ['n', 0],
        ['n', 2],
        ['n', 2 ** 32 - 1],
      ],
    ],
    ...[7, 8, 11, 14, 16, 18, 20, 22].map((place) => [place, [noCount]] as const),
    ...[12, 19].map((place) => [place, [noTime]] as const),
    [
      9,
      [
        ['n', 0],
        ['n', 2],
        ['n', 2 ** 32 - 1],
      ],
    ],
    [
      13,
      [
        ['n', 1],
        ['n', 3],
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
        ['n', 0],
        ['n', 2],
      ],
    ],
    // An outcome twice.
    [16, [['n', 1]]],
  ])
  const counterTwice = [
    ...head,
    ...([
      ['n', 2],
      ['n', 1],
      ['n', 7],
      ['n', 1],
      ['n', 8],
      ['n', 0],
    ] as const),
  ]
  expect(decodeState(bytesOf(counterTwice))).toBeUndefined()
  const sessionTwice = [
    ...head,
    ...([
      ['n', 0],
      ['n', 2],
    ] as const),
    ...someSession,
    ...someSession,
  ]
  expect(decodeState(bytesOf(sessionTwice))).toBeUndefined()
})

test('codec: a state that is not at position 0 without a leader is the only one without', () => {
  const of = (position: number): Buffer =>
    bytesOf([[1, 3], ['n', position], ['wide', 0], ['wide', 0], ['n', 0], '', ['n', 0], ['n', 0]])
  expect(decodeState(of(0))).toEqual(emptyState())
  expect(decodeState(of(1))).toBeUndefined()
})
