import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { assert } from '../../src/base/assert.ts'
import { retryByCode, isStoreErrorCode } from '../../src/base/errors.ts'
import { pack, unpack, type Packable } from '../../src/base/pack.ts'
import type { ShardPosition, StoredCell, Written } from '../../src/cells/cell.ts'
import type {
  Answer,
  CellOperation,
  ClientFrame,
  GetItem,
  GetStatus,
  Intents,
  LogPlace,
  ReadFrom,
  StoredLogPage,
} from '../../src/cells/operation.ts'
import type { Outcome, Problem } from '../../src/cells/problem.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { decodeClientFrame, encodeClientFrame } from '../../src/wire/client-codec.ts'

const count = fc.maxSafeNat()
const id = count.map((value) => Math.max(1, value))
const text = fc.string({ maxLength: 40 })
const bytes = fc.uint8Array({ maxLength: 40 }).map((value) => Buffer.from(value))
const shard = fc.integer({ min: 0, max: 4095 })
const datastore = fc.constant('trips')
const name = { rowKey: text, column: text, refKey: count }
const positions = fc.array(
  fc.tuple(shard, count).map((pair): ShardPosition => pair),
  { maxLength: 3 },
)

/** A record of plain objects whose optional members are absent or there, never undefined. */
function record<Value>(
  model: { readonly [Name in keyof Value]-?: fc.Arbitrary<Exclude<Value[Name], undefined>> },
  required: readonly (keyof Value & string)[],
): fc.Arbitrary<Value>
function record(
  model: Record<string, fc.Arbitrary<unknown>>,
  required: readonly string[],
): fc.Arbitrary<unknown> {
  return fc.record(model, { requiredKeys: [...required], noNullPrototype: true })
}

const problems: fc.Arbitrary<Problem> = fc.record(
  {
    code: fc.constantFrom(...Object.keys(retryByCode).filter(isStoreErrorCode)),
    message: text,
    detail: record<Problem['detail']>(
      {
        group: shard.map((of) => shardGroup('trips', of)),
        limit: text,
        limitValue: count,
        actual: fc.double({ noNaN: true, noDefaultInfinity: true, min: 1e-300 }),
        store: fc.constantFrom('log', 'data'),
        attempts: count,
      },
      [],
    ),
  },
  { noNullPrototype: true },
)

function outcomes<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Outcome<Value>[]> {
  const one = fc.oneof(
    value.map((of): Outcome<Value> => ({ kind: 'ok', value: of })),
    problems.map((of): Outcome<Value> => ({ kind: 'problem', problem: of })),
  )
  return fc.array(one, { maxLength: 3 })
}

const plain = { noNullPrototype: true }
const read: fc.Arbitrary<ReadFrom> = fc.record(
  { level: fc.constantFrom('current', 'any'), atLeast: positions },
  plain,
)
const places: fc.Arbitrary<LogPlace> = fc.oneof(
  fc.record({ kind: fc.constant('after'), shard, addedId: count }, plain),
  fc.record({ kind: fc.constant('since'), shard, timestamp: count }, plain),
)
const operations: fc.Arbitrary<CellOperation | GetStatus> = fc.oneof(
  fc.record(
    {
      ...{ kind: fc.constant('put'), datastore },
      items: fc.array(fc.record({ ...name, body: bytes }, plain), { maxLength: 3 }),
    },
    plain,
  ),
  fc.record(
    {
      ...{ kind: fc.constant('get'), datastore, read },
      items: fc.array(record<GetItem>(name, ['rowKey', 'column']), { maxLength: 3 }),
    },
    plain,
  ),
  record<CellOperation & { kind: 'row' }>(
    { kind: fc.constant('row'), datastore, read, rowKey: text, from: text, limit: count },
    ['kind', 'datastore', 'read', 'rowKey', 'limit'],
  ),
  record<CellOperation & { kind: 'versions' }>(
    {
      ...{ kind: fc.constant('versions'), datastore, read, rowKey: text, column: text },
      ...{ from: count, limit: count, reverse: fc.boolean() },
    },
    ['kind', 'datastore', 'read', 'rowKey', 'column', 'limit', 'reverse'],
  ),
  fc.record(
    {
      ...{ kind: fc.constant('log'), datastore, read, limit: count, waitMs: count },
      items: fc.array(places, { maxLength: 3 }),
    },
    plain,
  ),
  fc.constant({ kind: 'status' } as const),
)
const intents: fc.Arbitrary<Intents> = fc.record(
  { session: text, sequences: fc.array(count, { maxLength: 3 }), floor: count, expiresAt: count },
  plain,
)
const cells: fc.Arbitrary<StoredCell> = fc.record(
  { ...name, addedId: id, createdAt: count, body: bytes },
  plain,
)
const pages = fc.array(cells, { maxLength: 3 })
const written: fc.Arbitrary<Written> = fc.record(
  { shard, addedId: id, createdAt: count, created: fc.boolean() },
  plain,
)
const logPages: fc.Arbitrary<StoredLogPage> = fc.record({ shard, cells: pages, next: count }, plain)
const answers: fc.Arbitrary<Answer> = fc.oneof(
  outcomes(written).map((items): Answer => ({ kind: 'put', items })),
  outcomes(fc.option(cells, { nil: undefined })).map((items): Answer => ({ kind: 'get', items })),
  fc.tuple(pages, text).map(([of, next]): Answer => ({ kind: 'row', page: { cells: of, next } })),
  pages.map((of): Answer => ({ kind: 'versions', page: { cells: of } })),
  outcomes(logPages).map((items): Answer => ({ kind: 'log', items })),
  bytes.map((status): Answer => ({ kind: 'status', status })),
  problems.map((problem): Answer => ({ kind: 'problem', problem })),
)
const requests = fc.array(
  record<{
    id: number
    timeoutMs: number
    intents?: Intents
    operation: CellOperation | GetStatus
  }>({ id: count, timeoutMs: count, intents, operation: operations }, [
    'id',
    'timeoutMs',
    'operation',
  ]),
  { maxLength: 3 },
)
const responses = fc.array(fc.record({ id: count, positions, answer: answers }, plain), {
  maxLength: 3,
})
const frames: fc.Arbitrary<ClientFrame> = fc.oneof(
  requests.map((of): ClientFrame => ({ kind: 'requests', requests: of })),
  responses.map((of): ClientFrame => ({ kind: 'responses', responses: of })),
)

test('every frame comes back as it was sent', () => {
  fc.assert(
    fc.property(frames, (frame) => {
      expect(decodeClientFrame(encodeClientFrame(frame))).toStrictEqual({ ok: true, frame })
    }),
    { seed: 1, numRuns: 400 },
  )
})

test('a frame that was cut or changed is another frame or a reason, never an exception', () => {
  fc.assert(
    fc.property(frames, fc.nat(), fc.nat({ max: 255 }), (frame, at, byte) => {
      const whole = encodeClientFrame(frame)
      const cut = decodeClientFrame(whole.subarray(0, at % whole.length))
      expect(cut.ok).toBe(false)
      const changed = Buffer.from(whole)
      changed[at % whole.length] = byte
      expect(decodeClientFrame(changed)).toHaveProperty('ok')
    }),
    { seed: 2, numRuns: 400 },
  )
})

/** Puts each of some odd values at each place of the frame in turn. */
function* withOddities(value: Packable): Generator<Packable> {
  yield* [null, -1, 1.5, 2 ** 60, 'x'.repeat(5000), [], {}, Buffer.from('x'), true]
  if (!isList(value)) return
  for (const [i, part] of value.entries()) {
    for (const odd of withOddities(part)) yield value.with(i, odd)
  }
}

function isList(value: Packable): value is readonly Packable[] {
  return Array.isArray(value)
}

/** What was unpacked can be packed again. */
function isPackable(value: unknown): value is Packable {
  return value !== undefined
}

test('a frame with something odd at any one place is a frame or a reason, never an exception', () => {
  const samples = fc.sample(frames, { seed: 3, numRuns: 12 })
  let refused = 0
  for (const frame of samples) {
    const whole = unpack(encodeClientFrame(frame))
    assert(isPackable(whole), 'codec: a frame unpacks')
    for (const odd of withOddities(whole)) {
      const decoded = decodeClientFrame(pack(odd))
      if (decoded.ok) expect(encodeClientFrame(decoded.frame).length).toBeGreaterThan(0)
      else refused += 1
    }
  }
  expect(refused).toBeGreaterThan(1000)
})
