import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { assert } from '../../src/base/assert.ts'
import { retryByCode, isStoreErrorCode, unreadyIndexes } from '../../src/base/errors.ts'
import { nodeId } from '../../src/base/ids.ts'
import { pack, unpack, type Packable } from '../../src/base/pack.ts'
import type { ShardPosition, StoredCell, Written } from '../../src/cells/cell.ts'
import { dropPhases } from '../../src/cells/index-drop.ts'
import type {
  CellOperation,
  GetItem,
  LogPlace,
  ReadFrom,
  StoredLogPage,
} from '../../src/cells/operation.ts'
import type { Outcome, Problem } from '../../src/base/problem.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import type {
  IntentName,
  Outcome as CommitOutcome,
  Row,
  RowRange,
} from '../../src/group/replica-port.ts'
import type { Mutation } from '../../src/group/transaction.ts'
import type {
  WorklistAnswer,
  WorklistOperation,
  ListWorklist,
  TopicSum,
} from '../../src/worklist/worklist-operation.ts'
import type {
  CommitGroup,
  GroupAnswer,
  GroupOperation,
  ReadGroup,
} from '../../src/txn/group-operation.ts'
import type { View } from '../../src/group/group-port.ts'
import type { Intents } from '../../src/txn/intents.ts'
import { decodeClientFrame, encodeClientFrame } from '../../src/wire/client/client-codec.ts'
import type {
  ClientFrame,
  ListedNode,
  Operation,
  Reply,
  SetList,
} from '../../src/wire/client/client-message.ts'

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

const group = shard.map((of) => shardGroup('trips', of))
const details: fc.Arbitrary<Problem['detail']> = record<
  Omit<Problem['detail'], 'intent' | 'index' | 'retryAfterMs'>
>(
  {
    group: group,
    limit: text,
    limitValue: count,
    actual: fc.double({ noNaN: true, noDefaultInfinity: true, min: 1e-300 }),
    store: fc.constantFrom('log', 'data'),
    attempts: count,
  },
  [],
)
const codes = Object.keys(retryByCode).filter(isStoreErrorCode)
const ofTransactions = ['contention', 'immutable'] as const
const problems: fc.Arbitrary<Problem> = fc.oneof(
  fc.record(
    {
      code: fc.constantFrom(...codes.filter((code) => !ofTransactions.some((of) => of === code))),
      message: text,
      // An index that is being built is of no damaged store.
      detail: fc.oneof(
        details,
        fc.constantFrom(...unreadyIndexes).map((index) => ({ index })),
      ),
    },
    { noNullPrototype: true },
  ),
  // Nor is a transaction that others got ahead of.
  fc.record(
    {
      code: fc.constantFrom(...ofTransactions),
      message: text,
      detail: record<Pick<Problem['detail'], 'group' | 'attempts'>>({ group, attempts: count }, []),
    },
    { noNullPrototype: true },
  ),
)

function outcomes<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Outcome<Value>[]> {
  const one = fc.oneof(
    value.map((of): Outcome<Value> => ({ kind: 'ok', value: of })),
    problems.map((of): Outcome<Value> => ({ kind: 'problem', problem: of })),
  )
  return fc.array(one, { maxLength: 3 })
}

const plain = { noNullPrototype: true }
const read: fc.Arbitrary<ReadFrom> = fc.oneof(
  fc.record({ level: fc.constantFrom('current', 'snapshot'), atLeast: positions }, plain),
  fc.record({ level: fc.constant('snapshot'), atLeast: positions, maxStalenessMs: id }, plain),
)
const places: fc.Arbitrary<LogPlace> = fc.oneof(
  fc.record({ kind: fc.constant('after'), shard, addedId: count }, plain),
  fc.record({ kind: fc.constant('after'), shard, addedId: count, asOf: count }, plain),
  fc.record({ kind: fc.constant('since'), shard, timestamp: count }, plain),
)
const keys = fc.array(bytes, { maxLength: 3 })
const rowRanges: fc.Arbitrary<RowRange> = record<RowRange>(
  { gte: bytes, gt: bytes, lt: bytes, reverse: fc.boolean(), limit: id },
  ['reverse'],
)
const readGroups: fc.Arbitrary<ReadGroup> = record<ReadGroup>(
  {
    ...{ kind: fc.constant('read-group'), group, atLeast: count, keys, range: rowRanges },
    from: fc.oneof(
      fc.constantFrom(
        { kind: 'current' } as const,
        { kind: 'snapshot' } as const,
        { kind: 'inconsistent' } as const,
      ),
      count.map((timestamp) => ({ kind: 'at', timestamp }) as const),
      id.map((maxStalenessMs) => ({ kind: 'bounded', maxStalenessMs }) as const),
    ),
  },
  ['kind', 'group', 'from', 'atLeast', 'keys'],
)
/** Of the one shape that all decoded ones have. */
const whole = { value: undefined, slots: undefined, isNew: undefined }
const mutations: fc.Arbitrary<Mutation> = fc.oneof(
  bytes.map((key): Mutation => ({ ...whole, key })),
  fc.tuple(bytes, bytes).map(([key, value]): Mutation => ({ ...whole, key, value })),
  fc.tuple(bytes, bytes).map(([key, value]): Mutation => ({ ...whole, key, value, isNew: true })),
  fc.tuple(bytes, bytes).map(([key, value]): Mutation => {
    const slots = [{ allocation: 0, at: 'value', offset: value.length } as const]
    return { ...whole, key, value: Buffer.concat([value, Buffer.alloc(8)]), slots }
  }),
)
const commits: fc.Arbitrary<CommitGroup> = fc
  .record(
    {
      ...{ group, attempt: count, readPosition: count, reads: keys },
      intent: fc.record({ session: text, sequence: count, floor: count, expiresAt: count }, plain),
      ranges: fc.array(fc.record({ gte: bytes, lt: bytes }, plain), { maxLength: 3 }),
      allocations: fc.array(count, { minLength: 1, maxLength: 3 }),
      mutations: fc.array(mutations, { maxLength: 3 }),
    },
    plain,
  )
  .map((submission) => ({ kind: 'commit-group', submission }))
const rows: fc.Arbitrary<Row> = fc.record({ key: bytes, value: bytes, timestamp: count }, plain)
const views: fc.Arbitrary<View> = fc.record(
  { position: count, asOf: fc.option(count, { nil: undefined }) },
  plain,
)
const commitOutcomes: fc.Arbitrary<CommitOutcome> = fc.oneof(
  fc.record(
    {
      ...{ kind: fc.constant('committed'), position: id, timestamp: id, attempt: count },
      sequences: fc.array(count, { maxLength: 3 }),
    },
    plain,
  ),
  count.map((position): CommitOutcome => ({ kind: 'conflict', position })),
  fc.record(
    {
      ...{ kind: fc.constant('conflict'), position: count, key: bytes },
      by: fc.record({ session: text, sequence: count }, plain),
    },
    plain,
  ),
  fc.constantFrom(
    { kind: 'expired' } as const,
    { kind: 'overloaded' } as const,
    { kind: 'unknown' } as const,
  ),
)
const groupAnswers: fc.Arbitrary<GroupAnswer> = fc.oneof(
  record<GroupAnswer & { readonly kind: 'read-group' }>(
    {
      ...{ kind: fc.constant('read-group'), view: views },
      rows: fc.array(fc.option(rows, { nil: undefined }), { maxLength: 3 }),
      page: fc.record({ rows: fc.array(rows, { maxLength: 3 }), isWhole: fc.boolean() }, plain),
    },
    ['kind', 'view', 'rows'],
  ),
  record<GroupAnswer & { readonly kind: 'commit-group' }>(
    {
      ...{ kind: fc.constant('commit-group'), outcome: commitOutcomes },
      leader: fc.constantFrom(nodeId('n1'), nodeId('n2')),
    },
    ['kind', 'outcome'],
  ),
  fc.record(
    {
      kind: fc.constant('outcome-group'),
      outcome: fc.oneof(
        fc.constant({ kind: 'expired' } as const),
        fc.record(
          { kind: fc.constantFrom('none', 'forgotten'), position: count, timestamp: count },
          plain,
        ),
      ),
    },
    plain,
  ),
  record<GroupAnswer & { readonly kind: 'lock-group' }>(
    { kind: fc.constant('lock-group'), token: id, leader: fc.constant(nodeId('n1')) },
    ['kind'],
  ),
  fc.record({ kind: fc.constant('unlock-group'), wasHeld: fc.boolean() }, plain),
)
const lock = { group, name: text }
const otherGroupOperations: fc.Arbitrary<GroupOperation> = fc.oneof(
  fc.record(
    {
      ...{ kind: fc.constant('outcome-group'), group },
      intent: record<IntentName>({ session: text, sequence: count, expiresAt: count }, [
        'session',
        'sequence',
      ]),
    },
    plain,
  ),
  fc.record({ kind: fc.constant('lock-group'), ...lock, holdMs: id, waitMs: count }, plain),
  fc.record({ kind: fc.constant('unlock-group'), ...lock, token: id }, plain),
)
const listed = fc.array(fc.record({ group, position: count }, plain), { maxLength: 3 })
const worklistOperations: fc.Arbitrary<WorklistOperation> = fc.oneof(
  record<Omit<ListWorklist, 'turn'>>(
    {
      ...{ kind: fc.constant('list-worklist'), topic: text, after: group, limit: id },
      ...{ isOfSet: fc.constant(true), isPartial: fc.constant(true) },
    },
    ['kind', 'topic', 'limit'],
  ),
  record<WorklistOperation & { readonly kind: 'watch-worklist' }>(
    {
      kind: fc.constant('watch-worklist'),
      topic: text,
      member: text,
      mark: text,
      waitMs: count,
      isLeaving: fc.boolean(),
    },
    ['kind', 'topic', 'member', 'waitMs', 'isLeaving'],
  ),
  fc.record({ kind: fc.constant('sum-worklist'), prefix: text }, plain),
)
const sums: fc.Arbitrary<TopicSum> = record<TopicSum>(
  { topic: text, groups: count, rows: count, isWhole: fc.boolean(), oldest: count },
  ['topic', 'groups', 'rows', 'isWhole'],
)
const worklistAnswers: fc.Arbitrary<WorklistAnswer> = fc.oneof(
  fc.record({ kind: fc.constant('list-worklist'), groups: listed }, plain),
  fc.record(
    {
      ...{ kind: fc.constant('watch-worklist'), groups: listed, mark: text, isGap: fc.boolean() },
      members: fc.array(text, { maxLength: 3 }),
    },
    plain,
  ),
  fc.record(
    {
      ...{ kind: fc.constant('sum-worklist'), node: fc.constant(nodeId('n1')) },
      topics: fc.array(sums, { maxLength: 3 }),
    },
    plain,
  ),
)
const operations: fc.Arbitrary<Operation> = fc.oneof(
  worklistOperations,
  readGroups,
  commits,
  otherGroupOperations,
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
  fc.record({ kind: fc.constant('spread-indexes'), datastore }, plain),
  record<CellOperation & { kind: 'drop-index' }>(
    { kind: fc.constant('drop-index'), datastore, name: text, number: count, graceMs: count },
    ['kind', 'datastore', 'name'],
  ),
  fc.record(
    {
      ...{ kind: fc.constant('log'), datastore, read, limit: count, waitMs: count },
      items: fc.array(places, { maxLength: 3 }),
    },
    plain,
  ),
  fc.constant({ kind: 'status' } as const),
  fc.integer({ min: 1 }).map((request): Operation => ({ kind: 'cancel', request })),
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
const logPages: fc.Arbitrary<StoredLogPage> = fc.oneof(
  fc.record({ shard, cells: pages, next: count }, plain),
  fc.record({ shard, cells: pages, next: count, asOf: count }, plain),
)
const answers: fc.Arbitrary<Reply> = fc.oneof(
  groupAnswers,
  worklistAnswers,
  outcomes(written).map((items): Reply => ({ kind: 'put', items })),
  outcomes(fc.option(cells, { nil: undefined })).map((items): Reply => ({ kind: 'get', items })),
  fc.tuple(pages, text).map(([of, next]): Reply => ({ kind: 'row', page: { cells: of, next } })),
  pages.map((of): Reply => ({ kind: 'versions', page: { cells: of } })),
  outcomes(logPages).map((items): Reply => ({ kind: 'log', items })),
  fc.constant<Reply>({ kind: 'spread-indexes' }),
  fc
    .tuple(fc.constantFrom(...dropPhases), count, count, count)
    .map(([phase, done, total, number]): Reply => {
      return { kind: 'drop-index', phase, done, total, number }
    }),
  bytes.map((status): Reply => ({ kind: 'status', status })),
  problems.map((problem): Reply => ({ kind: 'problem', problem })),
)
const requests = fc.array(
  record<{
    id: number
    timeoutMs: number
    intents?: Intents
    operation: Operation
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
const listedNodes: fc.Arbitrary<ListedNode> = record<ListedNode>(
  {
    node: fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/).map(nodeId),
    url: text,
    isOwnWord: fc.constant<true>(true),
  },
  ['node', 'url'],
)
const setLists: fc.Arbitrary<readonly SetList[]> = fc.uniqueArray(
  fc.record(
    {
      set: fc.nat({ max: 63 }),
      epoch: id,
      nodes: fc.uniqueArray(listedNodes, {
        ...{ minLength: 1, maxLength: 15 },
        selector: ({ node }) => node,
      }),
    },
    plain,
  ),
  { maxLength: 4, selector: ({ set }) => set },
)
const frames: fc.Arbitrary<ClientFrame> = fc.oneof(
  setLists.map((sets): ClientFrame => ({ kind: 'nodes', sets })),
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

/** Any unpacked value can be packed again. */
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
