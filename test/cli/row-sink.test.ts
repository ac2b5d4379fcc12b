/** Rows of a file on their way into a table: the answer for each, and large groups. */
import { expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { firstVersion } from '../../schema/version.ts'
import { present } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import { rowSink } from '../../src/cli/row-sink.ts'
import { Patience } from '../../src/cli/load-patience.ts'
import type { Sink } from '../../src/cli/load-run.ts'
import { openTables } from '../../src/tables/open.ts'
import type { Values } from '../../src/tables/row-check.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock, testRandom } from '../txn/test-ports.ts'

const parsed = parseSchema(`CREATE SCHEMA Files;
  CREATE TABLE Owner { required integer id; required string name; } PRIMARY KEY(id), ENTITY GROUP ROOT;
  CREATE TABLE Thing { required integer owner; required integer id; optional string name; repeated string tag; }
    PRIMARY KEY(owner, id), IN TABLE Owner, ENTITY GROUP KEY(owner) REFERENCES Owner;
  CREATE TABLE Blob { required integer owner; required integer id; optional bytes data; repeated bytes piece;
      optional json rest; optional timestamp at; optional int64 size; optional float weight;
      repeated message part { required bytes sum; optional json more; }; }
    PRIMARY KEY(owner, id), IN TABLE Owner, ENTITY GROUP KEY(owner) REFERENCES Owner;
  CREATE TABLE Pet { required integer owner; required integer id; optional string chip; optional string name; }
    PRIMARY KEY(owner, id), IN TABLE Owner, ENTITY GROUP KEY(owner) REFERENCES Owner;
  CREATE UNIQUE LOCAL INDEX ByChip ON Pet(owner, chip);
  CREATE TABLE Note { required integer owner; required sequence number; } PRIMARY KEY(owner, number),
    IN TABLE Owner, ENTITY GROUP KEY(owner) REFERENCES Owner;`)
const schema = present(parsed.ok ? parsed.schema : undefined, 'test: the schema is right')

/** Nothing larger than this in one transaction. */
const limits = {
  transactionBytesMax: 100_000,
  transactionMutationsMax: 4,
  submissionMutationsMax: 8,
  transactionReadsMax: 100,
}

function sinkInto(
  table: string,
  port: MemoryPort = new MemoryPort(),
  patience: Patience = new Patience({ forMs: 0 }),
): Sink<Values> {
  const version = firstVersion(schema)
  const ports = { clock: new TestClock(), random: testRandom() }
  const db = openTables({ name: 'Files', tables: [], model: schema }, port, {
    ...{ ...ports, version, limits },
  })
  return rowSink({ db, version }, table, patience)
}

function things(count: number, owner = 1, name = 'a'): readonly Values[] {
  return Array.from({ length: count }, (_, id) => ({ owner, id, name, tag: ['x', 'y'] }))
}

function kinds(answers: readonly { readonly kind: string }[]): readonly string[] {
  return answers.map(({ kind }) => kind)
}

test('a row is created, is there already when it is equal, and changed when it is not', async () => {
  const port = new MemoryPort()
  const sink = sinkInto('Thing', port)
  const [first, second] = things(2)
  if (first === undefined || second === undefined) throw new Error('two things')
  expect(kinds(await sink.put([first, second]))).toEqual(['created', 'created'])
  const commits = port.submissions.length
  expect(kinds(await sink.put([first, second]))).toEqual(['already-there', 'already-there'])
  expect(port.submissions).toHaveLength(commits)
  const changed = { ...second, tag: ['y', 'x'] }
  expect(kinds(await sink.put([first, changed]))).toEqual(['already-there', 'changed'])
  expect(kinds(await sink.put([changed]))).toEqual(['already-there'])
  const { name: _, ...unnamed } = first
  expect(kinds(await sink.put([unnamed]))).toEqual(['changed'])
  expect(kinds(await sink.put([unnamed]))).toEqual(['already-there'])
})

test('the last of several lines with one key in a batch stays, also after a repeated load', async () => {
  const sink = sinkInto('Thing')
  const [one = {}] = things(1)
  const other = { ...one, name: 'b' }
  expect(kinds(await sink.put([one, other, other]))).toEqual([
    'created',
    'changed',
    'already-there',
  ])
  expect(kinds(await sink.put([one, other]))).toEqual(['changed', 'changed'])
  expect(kinds(await sink.put([other]))).toEqual(['already-there'])
})

test('the last of several lines with one key stays, in batches side by side too', async () => {
  const sink = sinkInto('Thing')
  const [one = {}] = things(1)
  const batches = ['b', 'c', 'd'].map((name) => sink.put([{ ...one, name }]))
  expect((await Promise.all(batches)).flatMap(kinds)).toEqual(['created', 'changed', 'changed'])
  expect(kinds(await sink.put([{ ...one, name: 'd' }]))).toEqual(['already-there'])
})

test('rows of a group that are too many for one transaction go in several, in their order', async () => {
  const port = new MemoryPort()
  const answers = await sinkInto('Thing', port).put([...things(11), ...things(3, 2)])
  expect(kinds(answers)).toEqual(Array.from({ length: 14 }, () => 'created'))
  const sizes = port.submissions.map(({ mutations }) => mutations.length)
  expect(sizes.toSorted((a, b) => a - b)).toEqual([2, 3, 3, 3, 3])
})

test('a row that is too large by itself is rejected, and those beside it are stored', async () => {
  const [first = {}, second = {}, third = {}] = things(3)
  const large = { ...second, name: 'x'.repeat(120_000) }
  const answers = await sinkInto('Thing').put([first, large, third])
  expect(answers).toEqual([
    { kind: 'created' },
    { kind: 'rejected', reason: expect.stringMatching(/^too-large: /) },
    { kind: 'created' },
  ])
})

test('rows are equal if their contents are, in whatever objects', async () => {
  const port = new MemoryPort()
  const sink = sinkInto('Blob', port)
  const row = (): Values => ({
    ...{ owner: 1, id: 1, data: Buffer.from([0, 255]), piece: [Buffer.from('a'), Buffer.alloc(0)] },
    ...{ rest: { b: [1, { c: -0 }], a: null, __proto__x: 'y' }, at: -5, size: 5n, weight: 0.1 },
    part: [{ sum: Buffer.from('xyz'), more: { z: 1, a: [2] } }],
  })
  expect(kinds(await sink.put([row()]))).toEqual(['created'])
  const commits = port.submissions.length
  for (const same of [row(), { ...row(), rest: { a: null, b: [1, { c: 0 }], __proto__x: 'y' } }]) {
    expect(kinds(await sink.put([same]))).toEqual(['already-there'])
  }
  expect(port.submissions).toHaveLength(commits)
  for (const other of [
    { ...row(), data: Buffer.from([0, 254]) },
    { ...row(), piece: [Buffer.from('a')] },
    { ...row(), part: [{ sum: Buffer.from('xyy'), more: { z: 1, a: [2] } }] },
    { ...row(), size: 6n },
  ]) {
    expect(kinds(await sink.put([other]))).toEqual(['changed'])
  }
})

test('a moment of 1970 that a bigint says is stored as it is, and found again', async () => {
  const sink = sinkInto('Blob')
  const row: Values = { owner: 1, id: 1, at: 1_769_848_200_001n }
  expect(kinds(await sink.put([row]))).toEqual(['created'])
  expect(kinds(await sink.put([row]))).toEqual(['already-there'])
  expect(kinds(await sink.put([{ ...row, at: 1_769_848_200_001 }]))).toEqual(['rejected'])
})

test('a row that a unique index refuses takes no other with it, also when it is loaded again', async () => {
  const pets = Array.from({ length: 10 }, (_, id) => ({
    owner: 1,
    id,
    chip: `c${id === 7 ? 2 : id}`,
  }))
  const port = new MemoryPort()
  const sink = sinkInto('Pet', port)
  for (const kind of ['created', 'already-there']) {
    const answers = await sink.put(pets)
    const wanted = pets.map(({ id }) => (id === 7 ? 'rejected' : kind))
    expect(kinds(answers)).toEqual(wanted)
    expect(answers[7]).toEqual({
      kind: 'rejected',
      reason: expect.stringMatching(/^already-exists: .* ByChip is unique/),
    })
  }
  // A later line may take what an earlier one gives free, and not the other way round.
  const moved = [
    { owner: 1, id: 0, chip: 'c1' },
    { owner: 1, id: 1, chip: 'new' },
    { owner: 1, id: 0, chip: 'c1' },
  ]
  expect(kinds(await sink.put(moved))).toEqual(['rejected', 'changed', 'changed'])
})

test('the sink rejects each wrong row of a batch and stores the others', async () => {
  const good = { owner: 1, id: 1, chip: 'a' }
  const answers = await sinkInto('Pet').put([
    { ...good, id: 0.5 },
    { ...good, chip: '\ud800' },
    { owner: 1, id: 2, chip: 'x'.repeat(2000) },
    good,
    { owner: 1, id: 3, chip: 'a' },
    { owner: 1, id: 4, name: 'n'.repeat(120_000) },
    { ...good, id: 5, chip: 'b' },
    { owner: 'x', id: 6 },
  ])
  expect(kinds(answers)).toEqual([
    ...['rejected', 'rejected', 'rejected', 'created'],
    ...['rejected', 'rejected', 'created', 'rejected'],
  ])
})

test('a row of a wrong form is rejected with its reason, in its place', async () => {
  const [good = {}] = things(1)
  const answers = await sinkInto('Thing').put([{ owner: 1 }, good, { ...good, id: 'x' }])
  expect(answers).toEqual([
    { kind: 'rejected', reason: 'invalid: table Thing: id is absent; it is required' },
    { kind: 'created' },
    { kind: 'rejected', reason: expect.stringMatching(/^invalid: table Thing: id is /) },
  ])
})

test('a cluster error fails the rows, so that the load ends', async () => {
  const port = new MemoryPort()
  port.view = () => Promise.reject(new StoreError('unavailable', 'nobody answers'))
  expect(await sinkInto('Thing', port).put(things(2))).toEqual([
    { kind: 'failed', error: expect.objectContaining({ code: 'unavailable' }) },
    { kind: 'failed', error: expect.objectContaining({ code: 'unavailable' }) },
  ])
})

test('a table whose rows get their numbers at commit is refused', () => {
  expect(() => sinkInto('Note')).toThrow(/^rows of table Note get a number each/)
})

test('rows that the cluster refuses for now are put again, in their order', async () => {
  const port = new MemoryPort()
  let refusals = 3
  const view = port.view.bind(port)
  port.view = (...given) => {
    if (refusals-- > 0) return Promise.reject(new StoreError('overloaded', 'too much to do'))
    return view(...given)
  }
  const waits: number[] = []
  const patience = new Patience({
    ...{ forMs: 1000, onWait: () => undefined, monotonicMs: () => 0 },
    sleep: async (ms) => void waits.push(ms),
  })
  const sink = sinkInto('Thing', port, patience)
  const [one = {}] = things(1)
  const batches = ['b', 'c', 'd'].map((name) => sink.put([{ ...one, name }]))
  expect((await Promise.all(batches)).flatMap(kinds)).toEqual(['created', 'changed', 'changed'])
  expect(waits).toEqual([100, 200, 400])
})
