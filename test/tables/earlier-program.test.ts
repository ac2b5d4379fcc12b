/** Programs of an earlier version than the cluster: properties unknown to them stay in rows. */
import { expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { firstVersion, nextVersion, type SchemaVersion } from '../../schema/version.ts'
import { noLives } from '../../src/tables/index-life.ts'
import { SchemaWatch } from '../../src/tables/schema-watch.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { typed } from '../../src/tables/types.ts'
import { readMoment } from '../../src/time/moments.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock } from '../txn/test-ports.ts'
import { tablesBench } from './bench.ts'

const Team = table('Team', { team: t.string() }).key('team').root()

const early = {
  number: t.int32(),
  name: t.string(),
  home: t.message({ city: t.string() }).optional(),
  pet: t.message({ name: t.string() }).repeated(),
}
const EarlyMember = table('Member', { team: t.string(), ...early })
  .key('team', 'number')
  .in(Team)
const earlyTeams = defineSchema('Teams', [Team, EarlyMember])

const Member = table('Member', {
  team: t.string(),
  ...early,
  home: t.message({ city: t.string(), street: t.string().optional() }).optional(),
  pet: t.message({ name: t.string(), age: t.int32().optional() }).repeated(),
  mail: t.string().optional(),
  rank: t.int32().default(7),
})
  .key('team', 'number')
  .in(Team)
const teams = defineSchema('Teams', [Team, Member])

const first = firstVersion(earlyTeams.model)
const second = secondVersion()

function secondVersion(): SchemaVersion {
  const step = nextVersion(first, teams.model)
  if (step.kind !== 'next') throw new Error('the second version follows the first')
  return step.version
}

/** One that goes by the second version, and one that began when there was the first, and has heard of it since. */
function earlyWatch(): SchemaWatch {
  const clock = new TestClock()
  const view = { version: second, lives: noLives }
  const declared = earlyTeams.model
  const own = { clock, opened: first, declared, view, askedAt: readMoment(clock) }
  return new SchemaWatch({ ...own, trustMs: 1e9, look: () => Promise.resolve(view) })
}

const red = rootKey(Team, { team: 'red' })
const one = { team: 'red', number: 1 }
const whole = {
  ...one,
  name: 'ann',
  home: { city: 'Oslo', street: 'Kirkegata' },
  pet: [{ name: 'rex', age: 3 }],
  mail: 'ann@x.org',
  rank: 2,
}

test.each([
  ['began after the second version', { version: second }],
  ['began before it', { version: first, watch: earlyWatch() }],
])('TAB-7: put and update keep what a program that %s does not know', async (_, how) => {
  const port = new MemoryPort()
  const late = tablesBench(teams, { version: second }, port).db
  const old = tablesBench(earlyTeams, how, port).db
  const row = async (): Promise<unknown> =>
    (await late.read(red, 'current', (rows) => rows.get(Member, one))).value
  await late.transaction(red, (tx) => tx.insert(Member, whole))
  const given = { ...one, name: 'bea', home: { city: 'Bergen' }, pet: [{ name: 'rex' }] }
  await old.transaction(red, (tx) => tx.put(EarlyMember, given))
  const kept = { ...whole, ...given, home: { city: 'Bergen', street: 'Kirkegata' } }
  // The program cannot know which element of a list was which.
  expect(await row()).toEqual(kept)
  await old.transaction(red, (tx) => tx.update(EarlyMember, one, { home: { city: 'Hamar' } }))
  expect(await row()).toEqual({ ...kept, home: { city: 'Hamar', street: 'Kirkegata' } })
  await old.transaction(red, (tx) => tx.update(EarlyMember, one, { home: null }))
  const { home: _home, ...without } = kept
  expect(await row()).toEqual(without)
  // A new property has the default, and a row made anew has nothing of the old one.
  await old.transaction(red, (tx) => tx.delete(EarlyMember, one))
  await old.transaction(red, (tx) => tx.put(EarlyMember, given))
  expect(await row()).toEqual({ ...given, rank: 7 })
})

/** Gives one value once, and other ones from then on. */
function changing(values: readonly unknown[], name: string, members: object): object {
  let reads = 0
  const get = (): unknown => values[Math.min(reads++, values.length - 1)]
  return Object.defineProperty({ ...members }, name, { enumerable: true, get })
}

test.each([
  ['a row that is there', true],
  ['a row that is new', false],
])('TAB-7: an earlier program stores of %s what was checked, at one read', async (_, isThere) => {
  const port = new MemoryPort()
  const late = tablesBench(teams, { version: second }, port).db
  const old = tablesBench(earlyTeams, { version: second }, port).db
  if (isThere) await late.transaction(red, (tx) => tx.insert(Member, whole))
  const home = changing(['Bergen', 5], 'city', {})
  const members = { ...one, home, pet: [{ name: 'rex' }] }
  const given = changing(['bea', 7], 'name', members)
  await old.transaction(red, (tx) => tx.put(EarlyMember, typed(given)))
  const { value } = await late.read(red, 'current', (rows) => rows.get(Member, one))
  expect(value).toEqual({
    ...{ ...one, name: 'bea', pet: [{ name: 'rex' }] },
    ...(isThere
      ? { home: { city: 'Bergen', street: 'Kirkegata' }, mail: whole.mail, rank: whole.rank }
      : { home: { city: 'Bergen' }, rank: 7 }),
  })
})

test('TAB-7: a program that knows a property takes it away', async () => {
  const port = new MemoryPort()
  const { db } = tablesBench(teams, { version: second }, port)
  await db.transaction(red, (tx) => tx.insert(Member, whole))
  await db.transaction(red, (tx) => tx.put(Member, { ...one, name: 'bea' }))
  const { value } = await db.read(red, 'current', (rows) => rows.get(Member, one))
  expect(value).toEqual({ ...one, name: 'bea', pet: [], rank: 7 })
})

test('TAB-7: an earlier program that replaces a row just as another writes it loses nothing', async () => {
  const port = new MemoryPort()
  const late = tablesBench(teams, { version: second }, port).db
  const old = tablesBench(earlyTeams, { version: second }, port).db
  let isFirst = true
  port.beforeCommit = async () => {
    if (isFirst) {
      isFirst = false
      await late.transaction(red, (tx) => tx.put(Member, whole))
    }
    return undefined
  }
  await old.transaction(red, (tx) => tx.put(EarlyMember, { ...one, name: 'bea' }))
  const { value } = await late.read(red, 'current', (rows) => rows.get(Member, one))
  expect(value).toMatchObject({ name: 'bea', mail: whole.mail, rank: whole.rank })
})

test('TAB-7: a row that is read before it is replaced keeps what the program has not heard of yet', async () => {
  const port = new MemoryPort()
  const earlier = EarlyMember.localIndex('ByName', ['name'])
  const later = Member.localIndex('ByName', ['name'])
  const old = tablesBench(defineSchema('Teams', [Team, earlier]), {}, port).db
  const step = nextVersion(
    firstVersion(defineSchema('Teams', [Team, earlier]).model),
    defineSchema('Teams', [Team, later]).model,
  )
  if (step.kind !== 'next') throw new Error('the second version follows the first')
  const late = tablesBench(defineSchema('Teams', [Team, later]), { version: step.version }, port).db
  await late.transaction(red, (tx) => tx.insert(Member, whole))
  await old.transaction(red, (tx) => tx.put(EarlyMember, { ...one, name: 'bea' }))
  const { value } = await late.read(red, 'current', (rows) => rows.get(Member, one))
  expect(value).toMatchObject({ name: 'bea', mail: whole.mail, rank: whole.rank })
})

test('TAB-3: a put takes its row when it is called, whatever the caller does with it later', async () => {
  const port = new MemoryPort()
  const late = tablesBench(teams, { version: second }, port).db
  const old = tablesBench(earlyTeams, { version: second }, port).db
  const two = { ...one, number: 2 }
  await late.transaction(red, async (tx) => {
    await tx.insert(Member, whole)
    await tx.insert(Member, { ...whole, ...two, mail: 'two@x.org' })
  })
  await old.transaction(red, async (tx) => {
    const row = { ...one, name: 'bea', pet: [{ name: 'rex' }] }
    const put = tx.put(EarlyMember, row)
    row.number = 2
    row.team = 'blue'
    row.pet[0] = { name: 'max' }
    await put
  })
  const { value } = await late.read(red, 'current', (rows) => rows.getMany(Member, [one, two]))
  expect(value[0]).toMatchObject({ ...one, name: 'bea', mail: whole.mail, pet: [{ name: 'rex' }] })
  expect(value[1]).toMatchObject({ ...two, name: 'ann', mail: 'two@x.org' })
})
