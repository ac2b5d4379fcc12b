/** Sessions on typed tables: what a calm run reaches, and that the checker finds what it should. */
import { expect, test } from 'vitest'
import { firstVersion, nextVersion } from '../../schema/version.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { Transaction } from '../../src/group/transaction.ts'
import { rowSpace } from '../../src/tables/row-key.ts'
import { Referee } from '../../sim/checkers/referee.ts'
import { formatMark, TableChecker, type TableReading } from '../../sim/checkers/table-checker.ts'
import { modelRead, modelStep, type TableState } from '../../sim/checkers/table-model.ts'
import { Coverage } from '../../sim/coverage.ts'
import { drawPlan, runPlan } from '../../sim/run.ts'
import { findContradiction } from '../../sim/scenarios/scenario-check.ts'
import { calmOptions } from '../../sim/scenarios/scenario-calm.ts'
import { drawSwarm, type WorkloadOptions } from '../../sim/swarm.ts'
import { offerSeconds, shopSchemas, type ShopVersion } from '../../sim/workloads/table-schema.ts'
import type { TableRead, TableStep } from '../../sim/workloads/table-step.ts'

const store = 'north'
const group = groupOfBytes(Buffer.from('a store'))
const page = { reverse: false, limit: 100, isPaged: true }
const scan: TableRead = { kind: 'scan', table: 'Item', query: { shelf: 1 }, ...page }
const byTag: TableRead = {
  ...{ kind: 'index', table: 'Item', index: 'ItemsByTag', query: { tag: 'x' } },
  ...{ ...page, isWithRows: true },
}

function itemRow(item: string, more: object = {}): { readonly [name: string]: unknown } {
  return { store, shelf: 1, item, price: 1, tag: ['x'], ...more }
}

function insertOf(item: string): TableStep {
  return { kind: 'insert', table: 'Item', row: itemRow(item) }
}

class Court {
  readonly referee = new Referee(() => 0)
  readonly checker = new TableChecker(this.referee, new Coverage())
  #position = 0

  constructor() {
    this.checker.onGroup(group, store)
  }

  get rules(): string[] {
    return [...new Set(this.referee.violations.map((violation) => violation.rule))]
  }

  run(operation: string, steps: readonly TableStep[], results: readonly unknown[]): this {
    this.checker.onRun(operation, store, 1, { version: 1, declared: 1, steps, results })
    return this
  }

  chosen(operation: string): this {
    this.#position += 1
    const value = Buffer.from(`.. ${formatMark(operation, 1)} ..`)
    const transaction: Transaction = {
      ...{ session: 's', sequence: this.#position, floor: 1, attempt: 1, expiresAt: 1 },
      ...{ allocations: [], mutations: [{ key: Buffer.of(rowSpace, 1), value }] },
    }
    const timestamp = this.#position * 10
    this.checker.onEffect({ group, position: this.#position, timestamp, transaction })
    return this
  }

  read(step: TableRead, result: unknown, more: Partial<TableReading> = {}): this {
    this.checker.onRead({
      ...{
        client: 'table-1',
        store,
        asOf: this.#position * 10,
        level: 'at',
        atLeast: 0,
        atMost: 20,
      },
      run: { version: 1, declared: 1, steps: [step], results: [result] },
      ...more,
    })
    return this
  }
}

function inserted(): Court {
  return new Court().run('t.1', [scan, insertOf('a')], [[], 'done']).chosen('t.1')
}

test('TXN-1: a replay that agrees with the reported results is clean', () => {
  const court = inserted()
    .run('t.2', [scan, insertOf('b')], [[itemRow('a')], 'done'])
    .chosen('t.2')
  court.read(scan, [itemRow('a'), itemRow('b')]).read(scan, [itemRow('a')], { asOf: 19 })
  const numbers = [] as const
  court.checker.onCommitted(
    't',
    't.2',
    { value: 1, position: 2, timestamp: 20, numbers, runs: 1 },
    10,
  )
  expect(court.rules).toEqual([])
})

test('TXN-2: a range in which a row had come into being is found', () => {
  expect(
    inserted()
      .run('t.2', [scan, insertOf('b')], [[], 'done'])
      .chosen('t.2').rules,
  ).toEqual(['TXN-2'])
})

test('TXN-2: a key that was read as absent, and was there, is found', () => {
  const get: TableStep = { kind: 'get', table: 'Item', keys: [{ shelf: 1, item: 'a' }] }
  expect(
    inserted()
      .run('t.2', [get], [[undefined]])
      .chosen('t.2').rules,
  ).toEqual(['TXN-2'])
})

const offer = { store, offer: 'offer-a', who: 'left' }
const offers: TableRead = { kind: 'scan', table: 'Offer', query: {}, ...page }
/** The moment at which an offer of the first position expires. */
const gone = 10 + offerSeconds * 1e6

function offered(): Court {
  return new Court()
    .run('t.1', [{ kind: 'insert', table: 'Offer', row: offer }], ['done'])
    .chosen('t.1')
}

test('TTL-1: a row that is shown when it has expired, and one that is left out before, are found', () => {
  const at = (asOf: number, shown: readonly unknown[]): readonly string[] =>
    offered().read(offers, shown, { asOf, atMost: asOf }).rules
  expect(at(gone - 1, [offer])).toEqual([])
  expect(at(gone, [])).toEqual([])
  expect(at(gone - 1, [])).toEqual(['TTL-1'])
  expect(at(gone, [offer])).toEqual(['TTL-1'])
})

test('TTL-2: a row that is removed before it has expired is found', () => {
  const removed = (timestamp: number): readonly string[] => {
    const court = offered()
    court.checker.onEffect({
      ...{ group, position: 2, timestamp },
      transaction: {
        ...{ session: 's', sequence: 9, floor: 1, attempt: 1, expiresAt: 1, allocations: [] },
        mutations: [{ key: Buffer.from('\u0001 offer-a') }],
      },
    })
    return court.rules
  }
  expect(removed(gone)).toEqual([])
  expect(removed(gone - 1)).toEqual(['TTL-2'])
})

test('TXN-1: a lost update, and an insert over a row, are found', () => {
  const count: TableStep = { kind: 'count', key: { store } }
  const lost = new Court().run('t.1', [count], [0]).chosen('t.1').run('t.2', [count], [0])
  expect(lost.chosen('t.2').rules).toEqual(['TXN-1'])
  expect(
    inserted()
      .run('t.2', [insertOf('a')], ['done'])
      .chosen('t.2').rules,
  ).toEqual(['TXN-1'])
})

test('TXN-4: the checker finds a transaction that no client made', () => {
  expect(new Court().chosen('t.9').rules).toEqual(['TXN-4'])
})

test('TXN-5: the checker finds a commit that is double, refused or not as reported', () => {
  expect(new Court().run('t.1', [], []).chosen('t.1').chosen('t.1').rules).toEqual(['TXN-5'])
  const refused = new Court().run('t.1', [], [])
  refused.checker.onRefused('t', 't.1', 'contention')
  expect(refused.chosen('t.1').rules).toEqual(['TXN-5'])
  const visit: TableStep = { kind: 'insert', table: 'Visit', row: { store, who: 't' } }
  const numbered = new Court().run('t.1', [visit], ['done']).chosen('t.1')
  const told = { value: 1, position: 1, timestamp: 10, runs: 1 }
  const numbers = [{ table: 'Visit', number: 2 }]
  numbered.checker.onCommitted('t', 't.1', { ...told, numbers }, 0)
  expect(numbered.rules).toEqual(['TXN-5'])
})

test('LEASE-3, LEASE-4: the checker finds a read that shows less than its level promises', () => {
  const old = { asOf: 9, atLeast: 10 }
  expect(inserted().read(scan, [], { level: 'current', ...old }).rules).toEqual(['LEASE-3'])
  expect(inserted().read(scan, [], { level: 'snapshot', ...old }).rules).toEqual(['LEASE-4'])
})

test('MVCC-1, IDX-1: rows and entries of another moment are found', () => {
  expect(inserted().read(scan, [itemRow('a')], { asOf: 9 }).rules).toEqual(['MVCC-1'])
  const later = { asOf: 10, atLeast: 5, atMost: 5 }
  expect(inserted().read(scan, [itemRow('a')], later).rules).toEqual(['MVCC-1'])
  expect(inserted().read(byTag, { items: [], rows: [] }).rules).toEqual(['IDX-1'])
})

test('the model answers queries in the order of keys and of entries, DESC turned around', () => {
  let state: TableState = new Map()
  for (const [item, price] of [
    ['b', 2],
    ['a', 5],
    ['c', 2],
  ] as const) {
    const step: TableStep = { kind: 'put', table: 'Item', row: itemRow(item, { price }) }
    ;({ state } = modelStep(state, step, 1))
  }
  const query = { price: { gte: 2, lt: 6 } }
  const index = { kind: 'index', table: 'Item', index: 'ItemsByPrice', isWithRows: false } as const
  const byPrice = modelRead(state, { ...index, query, ...page }, 1, 0)
  expect(byPrice).toMatchObject({ items: [{ item: 'a' }, { item: 'b' }, { item: 'c' }] })
  const last = modelRead(state, { ...scan, reverse: true, limit: 1, isPaged: false }, 1, 0)
  expect(last).toMatchObject([{ item: 'c' }])
})

test('SCH-14: the second version follows the first', () => {
  expect(nextVersion(firstVersion(shopSchemas[1]), shopSchemas[2])).toMatchObject({ kind: 'next' })
  const versions: readonly ShopVersion[] = [1, 2]
  expect(versions.map((version) => shopSchemas[version].tables.length)).toEqual([6, 7])
})

const busy: Partial<WorkloadOptions> = {
  ...{ tableSessionCount: 4, tableOperations: 30, tableStoreCount: 2, schemaChanges: 1 },
}

test('a calm run of sessions on tables is clean, and reaches every kind of thing', async () => {
  const calm = calmOptions(3)
  const options = { ...calm, workload: { ...calm.workload, ...busy } }
  const { outcome, violations, coverage } = await runPlan({ options, faults: [] })
  expect(violations).toEqual([])
  expect(outcome).toBe('clean')
  const reads = ['get', 'scan', 'tree', 'index', 'read at', 'read current', 'read snapshot']
  const writes = ['insert', 'put', 'update', 'delete', 'count', 'run again', 'committed']
  const others = ['read held open', 'opened version 1', 'opened version 2']
  for (const kind of [...reads, ...writes, ...others]) {
    expect(coverage[`tables: ${kind}`] ?? 0, kind).toBeGreaterThan(0)
  }
})

test('IDX-14: a calm run builds later indexes, and asks the local one as of before that', async () => {
  const calm = calmOptions(3)
  const indexed: Partial<WorkloadOptions> = {
    ...{ hasGlobalIndexes: true, schemaTrustMs: 100, timeoutMs: 1_000 },
    ...{ tableSessionCount: 2, tableOperations: 20 },
  }
  const options = { ...calm, workload: { ...calm.workload, ...busy, ...indexed } }
  const { outcome, violations, coverage } = await runPlan({ options, faults: [] })
  expect(violations).toEqual([])
  expect(outcome).toBe('clean')
  const built = ['a local index built', 'a global index built']
  for (const kind of [...built, 'read of before it was filled unavailable']) {
    expect(coverage[`tables: ${kind}`] ?? 0, kind).toBeGreaterThan(0)
  }
})

test('LIVE-1: programs build the indexes that are left when a world of slow disks and links has healed', async () => {
  const calm = calmOptions(3)
  const impatient: Partial<WorkloadOptions> = {
    ...{ hasGlobalIndexes: true, schemaTrustMs: 100, timeoutMs: 400, tryTimeoutMs: 100 },
    ...{ tableSessionCount: 2, tableOperations: 12, tableStoreCount: 1 },
  }
  const options = {
    ...{ ...calm, workload: { ...calm.workload, ...busy, ...impatient } },
    link: { ...calm.link, delayMeanMicros: 10_000 },
    disk: { ...calm.disk, writeMeanMicros: 50_000 },
  }
  const { violations, coverage } = await runPlan({ options, faults: [] })
  expect(violations).toEqual([])
  expect(coverage['tables: build unknown-outcome']).toBeGreaterThan(0)
})

test('tables are off in some seeds, and a plan has as many stores as there are', () => {
  const counts = Array.from({ length: 40 }, (_, i) => drawSwarm(i + 1).workload.tableSessionCount)
  expect(new Set(counts)).toEqual(new Set([0, 2, 3, 4]))
  const plan = drawPlan(1)
  const withStores = (tableStoreCount: number): string | undefined => {
    const workload = { ...plan.options.workload, tableStoreCount }
    return findContradiction({ ...plan, options: { ...plan.options, workload } })
  }
  expect([1, 3].map(withStores)).toEqual([undefined, undefined])
  const reason = 'plan.options.workload.tableStoreCount: expected 1 to 3'
  expect([0, 4].map(withStores)).toEqual([reason, reason])
})
