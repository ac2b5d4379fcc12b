/** The requests by which groups go from set to set, as bytes and back. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import { bucketCount } from '../../src/base/limits.ts'
import { pack, unpack } from '../../src/base/pack.ts'
import { MalformedError } from '../../src/wire/fields.ts'
import type { MovedPage } from '../../src/group/moving-port.ts'
import type { GroupAnswer, GroupOperation } from '../../src/txn/group-operation.ts'
import {
  groupAnswerKinds,
  groupOperationKinds,
  packGroupAnswer,
  packGroupOperation,
  readGroupAnswer,
  readGroupOperation,
} from '../../src/wire/client/group-codec.ts'

const plain = { noNullPrototype: true }
const group = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((bytes) => groupOfBytes(bytes))
const set = fc.constantFrom('east', 'west', 'set-3', 'a')
const bytes = fc.uint8Array({ maxLength: 40 }).map((value) => Buffer.from(value))
const position = fc.integer({ min: 1, max: 2 ** 40 })
const after = fc.record({ subspace: fc.integer({ min: 1, max: 2 }), key: bytes }, plain)
const move = fc.oneof(
  fc.record({ kind: fc.constant('move-group' as const), group, to: set }, plain),
  fc.record(
    {
      kind: fc.constant('move-group' as const),
      group,
      to: set,
      isTrial: fc.constant(true as const),
    },
    plain,
  ),
)
const locate = fc.record({ kind: fc.constant('locate-group' as const), group }, plain)
const bucket = fc.integer({ min: 0, max: bucketCount - 1 })
const buckets = fc
  .uniqueArray(bucket, { minLength: 1, maxLength: 9 })
  .map((numbers) => numbers.sort((a, b) => a - b))
const open = fc.record(
  { kind: fc.constant('open-buckets' as const), group, from: set, term: position, buckets },
  plain,
)
const operations: fc.Arbitrary<GroupOperation> = fc.oneof(
  move,
  locate,
  open,
  fc.record({ kind: fc.constant('admit-group' as const), group, from: set }, plain),
  fc.record({ kind: fc.constant('export-group' as const), group }, plain),
  fc.record({ kind: fc.constant('export-group' as const), group, after }, plain),
  fc.record(
    {
      ...{ kind: fc.constant('pass-group' as const), from: set, position },
      operation: fc.oneof(move, locate),
    },
    plain,
  ),
  // Of a group that has not begun: its bucket has gone in that term.
  fc.record(
    {
      ...{ kind: fc.constant('pass-group' as const), from: set, position: fc.constant(0) },
      ...{ term: fc.nat({ max: 2 ** 40 }), operation: fc.oneof(move, locate) },
    },
    plain,
  ),
)
const rows = fc.array(
  fc.record(
    { subspace: fc.integer({ min: 1, max: 2 }), key: bytes, stamp: position, payload: bytes },
    plain,
  ),
  { maxLength: 4 },
)
const pages: fc.Arbitrary<MovedPage> = fc.oneof(
  fc.record({ position, rows }, plain),
  fc.record({ position, rows, end: fc.record({ state: bytes }, plain) }, plain),
  fc.record({ position, rows, end: fc.record({ state: bytes, hash: bytes }, plain) }, plain),
)
const answers: fc.Arbitrary<Exclude<GroupAnswer, { readonly kind: 'problem' }>> = fc.oneof(
  fc.constantFrom(
    { kind: 'move-group' } as const,
    { kind: 'admit-group' } as const,
    { kind: 'open-buckets' } as const,
  ),
  fc.record({ kind: fc.constant('locate-group' as const), set }, plain),
  fc.record({ kind: fc.constant('export-group' as const), page: pages }, plain),
)

function listOf(bytes_: Uint8Array): readonly unknown[] {
  const fields = unpack(bytes_)
  if (!Array.isArray(fields)) throw new Error('no list')
  return fields
}

test('requests and answers by which groups move come back as they were', () => {
  fc.assert(
    fc.property(operations, (operation) => {
      const fields = listOf(pack(packGroupOperation(operation)))
      expect(readGroupOperation(groupOperationKinds[operation.kind], fields)).toEqual(operation)
    }),
  )
  fc.assert(
    fc.property(answers, (answer) => {
      const fields = listOf(pack(packGroupAnswer(answer)))
      expect(readGroupAnswer(groupAnswerKinds[answer.kind], fields)).toEqual(answer)
    }),
  )
})

const name = Buffer.from('g')
test.each([
  ['a move to a set without a name', 'move-group', [name, '', false]],
  ['a move to a set whose name no set can have', 'move-group', [name, 'West Set', false]],
  [
    'a request that was passed on and is passed on',
    'pass-group',
    ['a', 1, 92, ['a', 1, 96, [name]]],
  ],
  ['a list of groups that is passed on', 'pass-group', ['a', 1, 16, [name, undefined, 1, false]]],
  ['a page that is passed on', 'pass-group', ['a', 1, 93, [name, undefined]]],
  ['a request of no known kind that is passed on', 'pass-group', ['a', 1, 250, [name]]],
  ['a request passed on from no position', 'pass-group', ['a', 0, 96, [name]]],
  ['no buckets that are to be opened', 'open-buckets', [name, 'a', 1, new Uint8Array(512)]],
  ['buckets that are more than there are', 'open-buckets', [name, 'a', 1, new Uint8Array(513)]],
  ['buckets that come in no term', 'open-buckets', [name, 'a', 0, new Uint8Array(512).fill(1)]],
  ['a request passed on in a term below 0', 'pass-group', ['a', 0, 96, [name], -1]],
  ['a page behind a row of no subspace', 'export-group', [name, [256, name]]],
] as const)('%s is refused as malformed', (_, kind, fields) => {
  const packed = listOf(pack([...fields]))
  expect(() => readGroupOperation(groupOperationKinds[kind], packed)).toThrow(MalformedError)
})
