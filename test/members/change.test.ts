/** The row of a replica set's voters: the steps of a change, and its bytes. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { nodeId, storeId } from '../../src/base/ids.ts'
import { pack, type Packable } from '../../src/base/pack.ts'
import {
  beginAdd,
  beginEpoch,
  beginRemove,
  beginRenew,
  beginReplace,
  bindStore,
  endChange,
  firstRow,
  giveUp,
  isOver,
  isUnderWay,
  isVoter,
  type Change,
  type ChangePhase,
  type SetRow,
} from '../../src/members/change.ts'
import { decodeRow, encodeRow } from '../../src/members/row-codec.ts'

const [n1, n2, n3, n4] = [nodeId('n1'), nodeId('n2'), nodeId('n3'), nodeId('n4')]
const voters = [n1, n2, n3]
const store = storeId('00000000-0000-4000-8000-000000000001')
const other = storeId('00000000-0000-4000-8000-000000000002')

const copying = beginReplace(firstRow, n2, 4_100, 10)
const bound = bindStore(copying, store)
const sealing = beginEpoch(bound, voters, 20)
const done = endChange(sealing, 30)
const givenUp = giveUp(copying, 15)
const renewing = beginRenew(firstRow, 10)
const renewed = endChange(renewing, 20)

/** Each row that a change goes through, by name. */
const rows = { firstRow, copying, bound, sealing, done, givenUp, renewing, renewed }
type Named = keyof typeof rows
const names = ['firstRow', 'copying', 'bound', 'sealing', 'done', 'givenUp', 'renewing'] as const

/** The steps, as they come to a row at microsecond 99. */
const steps = {
  beginReplace: (row: SetRow) => beginReplace(row, n1, 5_000, 99),
  beginRenew: (row: SetRow) => beginRenew(row, 99),
  bindStore: (row: SetRow) => bindStore(row, other),
  beginEpoch: (row: SetRow) => beginEpoch(row, voters, 99),
  endChange: (row: SetRow) => endChange(row, 99),
  giveUp: (row: SetRow) => giveUp(row, 99),
} as const

test('MOVE-6: a replacement copies, begins its epoch with the store that came, and ends', () => {
  const change = { number: 1, kind: 'replace', node: n2, seat: 4_100 } as const
  expect(copying).toEqual({
    ...{ epoch: 1, urls: new Map(), stores: new Map(), readers: new Map(), lastSeat: 4_100 },
    change: { ...change, phase: 'copying', sinceMicros: 10 },
  })
  expect(bound).toEqual({
    ...{ epoch: 1, urls: new Map(), stores: new Map(), readers: new Map(), lastSeat: 4_100 },
    change: { ...change, phase: 'copying', sinceMicros: 10, store },
  })
  expect(sealing).toEqual({
    ...{
      epoch: 2,
      readers: new Map(),
      urls: new Map(),
      stores: new Map([[n2, { store, seat: 4_100 }]]),
      lastSeat: 4_100,
    },
    change: { ...change, phase: 'sealing', sinceMicros: 20, store },
  })
  expect(done).toEqual({
    ...{
      epoch: 2,
      readers: new Map(),
      urls: new Map(),
      stores: new Map([[n2, { store, seat: 4_100 }]]),
      lastSeat: 4_100,
    },
    change: { ...change, phase: 'done', sinceMicros: 30, store },
  })
})

test('MOVE-6: a renewal begins its epoch at once, with the same stores', () => {
  const before = { ...done, change: undefined }
  expect(beginRenew(done, 40)).toEqual({
    ...{ epoch: 3, urls: new Map(), stores: before.stores, readers: new Map(), lastSeat: 4_100 },
    change: { number: 2, kind: 'renew', phase: 'sealing', sinceMicros: 40 },
  })
  expect(renewed.change?.phase).toBe('done')
  expect(renewed.epoch).toBe(2)
})

test('MOVE-6: a change that was given up begins no epoch, and its number is not used again', () => {
  expect(givenUp).toEqual({
    ...copying,
    change: { ...copying.change, phase: 'given-up', sinceMicros: 15 },
  })
  expect(giveUp(bound, 16).change).toMatchObject({ phase: 'given-up', store })
  expect(beginReplace(givenUp, n2, 9_000, 50).change).toEqual({
    ...{ number: 2, kind: 'replace', phase: 'copying', node: n2, seat: 9_000, sinceMicros: 50 },
  })
})

test('MOVE-6: the next store of a node takes the place of its last one, and others stay', () => {
  const next = beginEpoch(bindStore(beginReplace(done, n1, 7_000, 40), other), voters, 50)
  expect([...next.stores]).toEqual([
    [n2, { store, seat: 4_100 }],
    [n1, { store: other, seat: 7_000 }],
  ])
  const again = beginEpoch(
    bindStore(beginReplace(endChange(next, 60), n2, 9_000, 70), other),
    voters,
    80,
  )
  expect([again.epoch, again.stores.get(n2)]).toEqual([4, { store: other, seat: 9_000 }])
  expect([again.stores.get(n1)?.store, again.lastSeat]).toEqual([other, 9_000])
  expect(done.stores.get(n1), 'of the row before').toBe(undefined)
})

/** The steps that each row takes; any other one is refused. */
const taken: Readonly<Record<(typeof names)[number], readonly (keyof typeof steps)[]>> = {
  firstRow: ['beginReplace', 'beginRenew'],
  copying: ['bindStore', 'giveUp'],
  bound: ['beginEpoch', 'giveUp'],
  sealing: ['endChange'],
  done: ['beginReplace', 'beginRenew'],
  givenUp: ['beginReplace', 'beginRenew'],
  renewing: ['endChange'],
}

/** Refusals that operators cause, and so get as words. The rest are bugs of the node. */
const refusable = new Set<string>(['beginReplace', 'beginRenew', 'giveUp'])

test.each(names)(
  'MOVE-6: of the row %s each step is taken or refused as the phases say',
  (name) => {
    for (const [step, run] of Object.entries(steps)) {
      const isTaken = taken[name].some((one) => one === step)
      const attempt = (): SetRow => run(rows[name])
      if (isTaken) expect(attempt, step).not.toThrow()
      else if (refusable.has(step)) {
        expect(attempt, step).toThrow(expect.objectContaining({ code: 'invalid' }))
      } else expect(attempt, step).toThrow('MOVE-6')
    }
  },
)

test.each<[Named, (row: SetRow) => SetRow, RegExp]>([
  [
    'copying',
    steps.beginRenew,
    /^Change 1 .* under way \(copying\)\. Wait .* trilithon nodes cancel\.$/,
  ],
  ['sealing', steps.beginReplace, /^Change 1 .* under way \(sealing\)\. Wait until it is done\.$/],
  ['sealing', steps.giveUp, /^Change 1 has begun epoch 2: it cannot be given up any more/],
  ['done', steps.giveUp, /^No change of this replica set is under way\.$/],
])('a refusal at the row %s says what an operator can do (%#)', (name, step, words) => {
  expect(() => step(rows[name])).toThrow(words)
})

test('MOVE-6: a seat is handed out once, also where its change was given up', () => {
  expect(() => beginReplace(firstRow, n2, 0, 1)).toThrow('MOVE-6')
  for (const row of [givenUp, done, { ...done, change: undefined }]) {
    const { change: _, ...bare } = row
    expect(() => beginReplace(bare, n1, 4_100, 1)).toThrow('MOVE-6')
    expect(beginReplace(bare, n1, 4_101, 1).lastSeat).toBe(4_101)
  }
})

test('MOVE-7: the store that a row names has the vote of its node, or the first one where it names none', () => {
  const votes = (row: SetRow): readonly boolean[] => [
    isVoter(row, n2, 'first', 0),
    isVoter(row, n2, store, 4_100),
    isVoter(row, n2, other, 5_000),
  ]
  expect([firstRow, copying, bound, givenUp].map(votes)).toEqual(
    Array.from({ length: 4 }, () => [true, false, false]),
  )
  expect([sealing, done].map(votes)).toEqual([
    [false, true, false],
    [false, true, false],
  ])
})

test('MOVE-7: a store is over once a later one has its vote, or its seat was given up or passed on', () => {
  const over = (row: SetRow): readonly boolean[] => [
    isOver(row, n2, 'first', 0),
    isOver(row, n2, store, 4_100),
    isOver(row, n2, other, 4_100),
  ]
  expect([copying, bound].map(over)).toEqual([
    [false, false, false],
    [false, false, false],
  ])
  expect([sealing, done].map(over)).toEqual([
    [true, false, false],
    [true, false, false],
  ])
  expect(over(givenUp)).toEqual([false, true, true])
  expect(over(beginReplace(givenUp, n2, 9_000, 50))).toEqual([false, true, true])
  expect(over(beginReplace(done, n2, 9_000, 50)), 'it votes as yet').toEqual([true, false, true])
})

const adding = beginAdd(firstRow, { node: n4, url: 'http://h:4', seat: 4_100 }, 10)
const added = beginEpoch(bindStore(adding, store), voters, 20)

test('MOVE-6: a node that is added has its place behind the others, from its epoch on', () => {
  expect(adding).toMatchObject({ epoch: 1, lastSeat: 4_100, change: { kind: 'add', node: n4 } })
  expect([adding.voters, adding.urls.get(n4)]).toEqual([undefined, 'http://h:4'])
  expect([added.epoch, added.before, added.voters]).toEqual([2, voters, [...voters, n4]])
  expect(added.stores.get(n4)).toEqual({ store, seat: 4_100 })
  const renewedRow = beginRenew(endChange(added, 30), 40)
  expect([renewedRow.epoch, renewedRow.before, renewedRow.voters]).toEqual([
    ...[3, [...voters, n4], [...voters, n4]],
  ])
  const gone = giveUp(adding, 15)
  expect([gone.urls.size, gone.change?.phase, gone.voters]).toEqual([0, 'given-up', undefined])
})

test('MOVE-6: a node that is removed votes in no epoch any more, and its seats are not handed out again', () => {
  const row = beginRemove(firstRow, { node: n3, voters, lastSeat: 70 }, 10)
  expect(row.change).toEqual({
    ...{ number: 1, kind: 'remove', phase: 'sealing', node: n3, sinceMicros: 10 },
  })
  expect([row.epoch, row.before, row.voters, row.lastSeat]).toEqual([2, voters, [n1, n2], 70])
  expect([isVoter(row, n3, store, 0), isVoter(row, n1, store, 0)]).toEqual([false, true])
  // Until the others are past their gates they may need its seal.
  const ended = endChange(row, 20)
  expect([row, ended].map((one) => isOver(one, n3, store, 0))).toEqual([false, true])
  expect(isOver(ended, n1, store, 0)).toBe(false)
  // It comes back under its name, with another store.
  const back = beginAdd(endChange(row, 20), { node: n3, url: 'http://h:3', seat: 4_200 }, 30)
  expect([isOver(back, n3, store, 0), isOver(back, n3, other, 4_200)]).toEqual([true, false])
  expect(isVoter(back, n3, other, 4_200)).toBe(false)
  const again = beginEpoch(bindStore(back, other), [n1, n2], 40)
  expect([again.voters, again.before]).toEqual([
    [n1, n2, n3],
    [n1, n2],
  ])
  expect([isVoter(again, n3, other, 4_200), isVoter(again, n3, store, 0)]).toEqual([true, false])
  const given = giveUp(back, 35)
  expect([isOver(given, n3, other, 4_200), isOver(row, n3, other, 4_200)]).toEqual([true, false])
})

test('MOVE-6: a node that was added is removed with its store and its address', () => {
  const four = [...voters, n4]
  const row = beginRemove(endChange(added, 30), { node: n4, voters: four, lastSeat: 4_101 }, 40)
  expect([row.voters, row.before, row.stores.size, row.urls.size]).toEqual([voters, four, 0, 0])
  expect([isOver(row, n4, store, 4_100), isVoter(row, n4, store, 4_100)]).toEqual([false, false])
  expect(isOver(endChange(row, 50), n4, store, 4_100)).toBe(true)
  const only = { node: n1, voters: [n1], lastSeat: 0 }
  expect(() => beginRemove(firstRow, only, 5)).toThrow('MOVE-6')
})

test('a change is under way while it copies and seals', () => {
  const phases: readonly ChangePhase[] = ['copying', 'sealing', 'done', 'given-up']
  const change: Change = { number: 1, kind: 'renew', phase: 'done', sinceMicros: 1 }
  expect(phases.map((phase) => isUnderWay({ ...change, phase }))).toEqual([
    true,
    true,
    false,
    false,
  ])
})

const count = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const nodes = fc.stringMatching(/^[a-z0-9-]{1,32}$/).map(nodeId)
const stores = fc.uuid().map(storeId)
const phases = fc.constantFrom<ChangePhase>('copying', 'sealing', 'done', 'given-up')
const renewals = fc.record({
  ...{ number: count, kind: fc.constant('renew' as const), phase: phases, sinceMicros: count },
})
const replacements = fc.record(
  {
    ...{ number: count, kind: fc.constant('replace' as const), phase: phases, sinceMicros: count },
    ...{ node: nodes, seat: count, store: stores },
  },
  { requiredKeys: ['number', 'kind', 'phase', 'sinceMicros', 'node', 'seat'] },
)
const additions = fc
  .tuple(replacements, fc.constantFrom('add' as const, 'add-reader' as const, 'promote' as const))
  .map(([change, kind]) => ({ ...change, kind }))
const removals = fc.record({
  ...{ number: count, phase: phases, sinceMicros: count },
  ...{ kind: fc.constantFrom('remove' as const, 'demote' as const), node: nodes },
})
const seated = fc.record({ store: stores, seat: count })
const setRows: fc.Arbitrary<SetRow> = fc.record(
  {
    epoch: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    stores: fc.array(fc.tuple(nodes, seated)).map((list) => new Map(list)),
    readers: fc.array(fc.tuple(nodes, seated)).map((list) => new Map(list)),
    lastSeat: count,
    urls: fc.array(fc.tuple(nodes, fc.webUrl())).map((list) => new Map(list)),
    voters: fc.array(nodes, { minLength: 1 }),
    before: fc.array(nodes, { minLength: 1 }),
    change: fc.oneof(renewals, replacements, additions, removals),
    version: fc.integer({ min: 2, max: 1_000_000 }),
  },
  { requiredKeys: ['epoch', 'urls', 'stores', 'readers', 'lastSeat'] },
)

test('a row is the same after it was encoded, and stores keep their order', () => {
  fc.assert(
    fc.property(setRows, (row) => {
      const again = decodeRow(encodeRow(row))
      expect(again).toEqual(row)
      expect([...(again?.stores ?? [])]).toEqual([...row.stores])
    }),
  )
})

test('bytes of any kind are a row or undefined, and never an error', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      expect(decodeRow(bytes)).toBe(undefined)
    }),
  )
  fc.assert(
    fc.property(setRows, fc.nat(), fc.integer({ min: 1, max: 255 }), (row, at, bits) => {
      const bytes = Buffer.from(encodeRow(row))
      bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ bits
      expect(() => decodeRow(bytes)).not.toThrow()
    }),
  )
})

const renewal: readonly Packable[] = [1, 'renew', 'done', null, null, null, 5]
const replacement: readonly Packable[] = [1, 'replace', 'copying', n2, 7, null, 5]
/** A row whose last seat is 9. */
const row = (epoch: Packable, list: Packable, change: Packable): Packable => [
  1,
  epoch,
  list,
  9,
  change,
  ...[[], [], []],
]

/** The list with another field at that place. */
function put(list: readonly Packable[], at: number, field: Packable): readonly Packable[] {
  return list.map((one, index) => (index === at ? field : one))
}

test.each<[string, Packable]>([
  ['no list', 1],
  ['of a later format', [2, 1, [], 9, null, [], [], []]],
  ['without its last seat', [1, 1, [], null, null, [], [], []]],
  ['without voters', [1, 1, [], 9, null]],
  ['a voter that is no node', [1, 1, [], 9, null, ['A'], [], []]],
  ['an address that is no text', [1, 1, [], 9, null, [], [], [[n2, 4]]]],
  ['a store without its seat', row(1, [[n2, store]], null)],
  ['without an epoch', row(null, [], null)],
  ['of epoch 0', row(0, [], null)],
  ['of a broken epoch', row(1.5, [], null)],
  ['without stores', row(1, null, null)],
  ['a store without its node', row(1, [[null, store, 9]], null)],
  ['a store of no node', row(1, [['N2', store, 9]], null)],
  ['a store that is no id', row(1, [[n2, 'store', 9]], null)],
  ['a store in no pair', row(1, [n2], null)],
  ['a change that is no list', row(1, [], 'renew')],
  ['a change without a number', row(1, [], put(renewal, 0, null))],
  ['a change of a number below 0', row(1, [], put(renewal, 0, -1))],
  ['a change of another kind', row(1, [], put(renewal, 1, 'add'))],
  ['a change in no phase', row(1, [], put(renewal, 2, 'open'))],
  ['a change without a time', row(1, [], put(renewal, 6, null))],
  ['a replacement of no node', row(1, [], put(replacement, 3, null))],
  ['a replacement of a node without a name', row(1, [], put(replacement, 3, ''))],
  ['a replacement without a seat', row(1, [], put(replacement, 4, null))],
  ['a replacement by no store id', row(1, [], put(replacement, 5, 'store'))],
])('bytes that are not such a row are undefined: %s', (_, fields) => {
  expect(decodeRow(pack(row(1, [], renewal)))?.change?.kind).toBe('renew')
  expect(decodeRow(pack(row(1, [], replacement)))?.change?.kind).toBe('replace')
  expect(decodeRow(pack(fields))).toBe(undefined)
})
