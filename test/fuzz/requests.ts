/** Requests of client links, as positional lists: of each kind, whole or with something in them that does not belong there. */
import { groupOfBytes } from '../../src/base/ids.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import { packBody } from '../../src/cells/body.ts'
import { parseJsonText } from '../../src/base/json-text.ts'
import type { Operation } from '../../src/wire/client/client-message.ts'
import { packRequest } from '../../src/wire/client/client-requests.ts'
import type { SeededRandom } from '../../sim/world/random.ts'
import { drawValue, isList, mutated, numbers, texts } from './values.ts'

const rowKeyOf = (random: SeededRandom): string =>
  `22222222-2222-4222-8222-${random.int(0, 40).toString(16).padStart(12, '0')}`

const datastore = 'fuzz'
const read = { level: 'current', atLeast: [] } as const
const topics = ['buffer', 'outbox', 'rejected', 'queue/x', '', '\u0000']

/** A body that an index of datetime, integer and text fields takes apart. */
function bodyOf(random: SeededRandom): Uint8Array {
  const field = (): Packable => drawValue(random, 2)
  const body = random.chance(700_000) ? { k: 'a', d: field(), n: field(), t: field() } : field()
  const parsed = parseJsonText(JSON.stringify(body ?? null))
  const packed = packBody(parsed.ok ? parsed.value : null)
  return packed.kind === 'ok' ? packed.body.bytes : pack(null)
}

function operationOf(random: SeededRandom): Operation {
  const rowKey = rowKeyOf(random)
  const name = { rowKey, column: random.pick(['B', 'C']), refKey: random.int(0, 50) }
  const group = groupOfBytes(random.bytes(random.int(1, 3)))
  const key = random.bytes(random.int(0, 4))
  const limit = random.int(1, 1_000)
  const shard = random.int(0, 4_095)
  const [topic, filter] = [random.pick(topics), random.pick(texts)]
  const session = { session: random.pick(texts), sequence: random.int(0, 5) }
  const expiresAt = Date.now() * 1_000 + 5_000_000
  const operations: readonly (() => Operation)[] = [
    () => ({ kind: 'put', datastore, items: [{ ...name, body: bodyOf(random) }] }),
    () => ({
      kind: 'put',
      datastore,
      items: [1, 2, 3].map((refKey) => ({ ...name, refKey, body: bodyOf(random) })),
    }),
    () => ({ kind: 'get', datastore, read, items: [name, { rowKey, column: 'B' }] }),
    () => ({ kind: 'row', datastore, read, rowKey, limit }),
    () => ({
      kind: 'versions',
      datastore,
      read,
      rowKey,
      column: 'B',
      limit,
      reverse: random.chance(500_000),
    }),
    () => ({
      kind: 'log',
      datastore,
      read,
      limit,
      waitMs: 0,
      items: [{ kind: 'after', shard, addedId: 0 }],
    }),
    () => ({
      kind: 'log',
      datastore,
      read,
      limit,
      waitMs: 0,
      items: [
        {
          kind: 'since',
          shard,
          timestamp: random.pick(numbers.filter((one) => one >= 0 && Number.isSafeInteger(one))),
        },
      ],
    }),
    () => ({ kind: 'purge', datastore, shard, before: 1, keepLatest: true, after: 0, limit }),
    () => ({
      ...{
        kind: 'index',
        datastore,
        read,
        name: 'ix',
        limit,
        reverse: random.chance(500_000),
        verify: true,
      },
      where: [
        { field: 'k', comparison: 'eq', value: 'a' },
        {
          field: random.pick(['d', 'n', 't']),
          comparison: 'gte',
          value: random.chance(500_000) ? filter : random.pick(numbers),
        },
      ],
    }),
    () => ({ kind: 'spread-indexes', datastore }),
    () => ({ kind: 'drop-index', datastore, name: 'none' }),
    () => ({
      kind: 'read-group',
      group,
      from: { kind: 'current' },
      atLeast: 0,
      keys: [key],
      range: { gte: key, lt: Buffer.from([255]), limit },
    }),
    () => ({
      kind: 'commit-group',
      submission: {
        ...{
          group,
          intent: { ...session, floor: 0, expiresAt },
          attempt: 1,
          readPosition: 0,
          allocations: [],
        },
        ...{
          reads: [],
          ranges: [],
          mutations: [{ key, value: random.bytes(3), slots: undefined }],
        },
      },
    }),
    () => ({ kind: 'outcome-group', group, intent: session }),
    () => ({ kind: 'lock-group', group, name: filter, holdMs: 10, waitMs: 10 }),
    () => ({ kind: 'unlock-group', group, name: filter, token: random.int(0, 3) }),
    () => ({ kind: 'list-groups', group, limit }),
    () => ({ kind: 'move-group', group, to: random.pick(['west', 'a', 's1']), isTrial: true }),
    () => ({ kind: 'locate-group', group }),
    () => ({ kind: 'admit-group', group, from: 'west' }),
    () => ({ kind: 'export-group', group, after: { subspace: random.int(1, 3), key } }),
    () => ({
      ...{ kind: 'pass-group', from: 'west', position: random.int(1, 9) },
      operation: { kind: 'outcome-group', group, intent: session },
    }),
    () => ({
      ...{ kind: 'pass-group', from: 'west', position: 0, term: random.int(0, 9) },
      operation: { kind: 'outcome-group', group, intent: session },
    }),
    () => ({
      ...{ kind: 'open-buckets', group, from: 'west', term: random.int(1, 9) },
      buckets: [random.int(0, 4_096)],
    }),
    () => ({ kind: 'list-worklist', topic, limit }),
    () => ({
      kind: 'watch-worklist',
      topic,
      member: filter,
      waitMs: 1,
      isLeaving: random.chance(500_000),
    }),
    () => ({ kind: 'sum-worklist', prefix: topic }),
    () => ({ kind: 'status' }),
  ]
  return random.pick(operations)()
}

/** Its number stays as it is: a request without one cannot be answered. */
export function drawRequest(random: SeededRandom, id: number): Packable {
  const operation = operationOf(random)
  const timeoutMs = random.pick([1, 50, 2_000])
  const whole = packRequest({ id, timeoutMs, operation })
  if (random.chance(300_000) || !isList(whole)) return whole
  let [, time, intents, packed] = whole
  for (let times = random.int(1, 3); times > 0; times--) {
    if (random.chance(50_000)) time = random.pick([0, -1, 0.5, Number.NaN, 2 ** 53, 'x', null])
    else if (random.chance(100_000))
      intents = mutated(random, ['s', [1], 0, 1], () => drawn(random))
    else packed = mutated(random, packed, () => drawn(random))
  }
  return [id, time, intents, packed]
}

function drawn(random: SeededRandom): Packable {
  return random.chance(300_000) ? random.bytes(random.int(0, 12)) : drawValue(random, 2)
}
