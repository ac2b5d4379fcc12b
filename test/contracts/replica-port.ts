/**
 * The promises of the port of the replica beyond the group port (`src/group/replica-port.ts`), as a suite
 * over a way to make replicas; `group-port.ts` runs on the same replicas through `LocalGroups`.
 */
import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import type { Limits } from '../../src/base/limits.ts'
import { isAtEnd, type LocalReplica, type PageRange } from '../../src/group/replica-port.ts'
import { describeWorklists } from './replica-worklist.ts'
import { firstOf, newGroup, newName, type Footing } from './footings.ts'
import { ReplicaStory } from './replica-story.ts'
import { bytesOf, textOf, textsOf, timeoutMs } from './submissions.ts'

export type MakeFooting = (limits?: Partial<Limits>) => Promise<Footing>

/** Stories on a footing of their own, which the test may end. */
type OwnStory = (limits?: Partial<Limits>) => Promise<ReplicaStory>

export function replicaPortContract(
  name: string,
  makeFooting: MakeFooting,
  { canBeCutOff }: { readonly canBeCutOff: boolean },
): void {
  let shared: Footing | undefined
  const story = (): ReplicaStory => new ReplicaStory(present(shared, 'the footing is made'))

  const ownStory: OwnStory = async (limits) => {
    const footing = await makeFooting(limits)
    onTestFinished(() => footing.remove())
    return new ReplicaStory(footing)
  }

  describe(name, () => {
    beforeAll(async () => {
      shared = await makeFooting()
    })
    afterAll(() => shared?.remove())

    describePoints(story, ownStory)
    describePages(story)
    describeRowsNow(story)
    describeOutcomes(story)
    describeWorklists(story)
    describeEnds(ownStory, canBeCutOff)
  })
}

function describePoints(story: () => ReplicaStory, ownStory: OwnStory): void {
  test('a read ends at a point, and the rows that are read after it are of that point at least', async () => {
    const one = story()
    const { group, replica, other } = one
    for (const level of ['snapshot', 'current'] as const) {
      expect(await one.read(level)).toEqual({ position: 0, timestamp: 0 })
    }
    for (const value of ['1', '2']) {
      const { position, timestamp } = await one.commit([`a=${value}`])
      for (const through of [replica, other]) {
        expect(await one.read('current', through)).toEqual({ position, timestamp })
        expect(textOf(through.get(group, bytesOf('a')))).toBe(`a=${value}`)
      }
    }
    expect(replica.get(group, bytesOf('x'))).toBeUndefined()
    expect(replica.holds(group)).toBe(true)
  })

  test('CELL-5: a read that is to be of a position waits for it, at any replica', async () => {
    const one = story()
    for (const value of ['1', '2', '3']) {
      const { position, timestamp } = await one.commit([`a=${value}`])
      const point = await one.read('snapshot', one.other, position)
      expect(point).toEqual({ position, timestamp })
      expect(textOf(one.other.get(one.group, bytesOf('a')))).toBe(`a=${value}`)
    }
    await expect(one.read('snapshot', one.other, 1_000)).rejects.toMatchObject({ code: 'invalid' })
  })

  test('a position that is known at once is the one that a read of any state gives', async () => {
    const one = story()
    const { group, replica } = one
    for (const value of ['1', '2', '3']) {
      await one.commit([`a=${value}`])
      const here = replica.positionHere(group)
      expect(here).toBe((await one.read('snapshot')).position)
      expect(here).toBe(Number(value))
    }
    const unknown = replica.positionHere(newGroup())
    expect([undefined, 0]).toContain(unknown)
  })

  test('MVCC-1: a point of the past has the rows of its timestamp, one of the future the newest', async () => {
    const one = story()
    const { group, replica, other, footing } = one
    const { timestamp: first } = await one.commit(['a=1', 'b=1'])
    const { timestamp: second } = await one.commit(['a=2', 'b'])
    for (const [at, timestamp, rows] of [
      ...[[first - 1, first - 1, 'none none'] as const, [first, first, 'a=1 b=1'] as const],
      ...[[second - 1, second - 1, 'a=1 b=1'] as const, [second, second, 'a=2 none'] as const],
      [second + 10 ** 12, second, 'a=2 none'] as const,
    ]) {
      for (const through of [replica, other]) {
        const point = await footing.settled(through.readAt(group, at, timeoutMs))
        expect(point.timestamp).toBe(timestamp)
        const keys = ['a', 'b'].map(bytesOf)
        const found = await footing.settled(through.getAt(group, keys, timestamp))
        expect(textsOf(found)).toBe(rows)
      }
    }
  })

  test('MVCC-2: rows of a timestamp that is not applied here are unavailable, half of one is invalid', async () => {
    const one = story()
    const { group, replica, footing } = one
    const { timestamp } = await one.commit(['a=1'])
    for (const [at, code] of [
      [timestamp + 1, 'unavailable'],
      [timestamp - 0.5, 'invalid'],
      [-1, 'invalid'],
    ] as const) {
      const rows = replica.getAt(group, [bytesOf('a')], at)
      await expect(footing.settled(rows)).rejects.toMatchObject({ code })
      const page = replica.scan(group, {}, at)
      await expect(footing.settled(page)).rejects.toMatchObject({ code })
    }
  })

  test('MVCC-1: a state behind the horizon is too old, unless it was being read before', async () => {
    const one = await ownStory({ historyMs: 1 })
    const { group, replica, footing } = one
    const times: number[] = []
    for (const value of ['1', '2', '3', '4']) {
      const { timestamp } = await one.commit([`a=${value}`])
      times.push(timestamp)
      if (value === '2') await footing.settled(replica.readAt(group, timestamp, timeoutMs))
      await one.passMs(4)
    }
    const [first = 0, held = 0, , newest = 0] = times
    const gone = { code: 'snapshot-too-old' }
    const keys = [bytesOf('a')]
    await expect(footing.settled(replica.readAt(group, first, timeoutMs))).rejects.toMatchObject(
      gone,
    )
    await expect(footing.settled(replica.getAt(group, keys, first))).rejects.toMatchObject(gone)
    await expect(footing.settled(replica.scan(group, {}, first))).rejects.toMatchObject(gone)
    for (const [at, row] of [[held, 'a=2'] as const, [newest, 'a=4'] as const]) {
      expect(textsOf(await footing.settled(replica.getAt(group, keys, at)))).toBe(row)
    }
  })

  test('a watcher is woken once, when its group has passed the position', async () => {
    const one = story()
    const { group, replica, other, footing } = one
    const woken: string[] = []
    const note = (text: string) => () => void woken.push(text)
    for (const through of [replica, other]) await one.read('current', through)
    const passed = new Promise<void>((resolve) => void other.watch(group, 1, resolve))
    replica.watch(group, 0, note('0'))
    replica.watch(group, 1, note('1'))
    const cancel = replica.watch(group, 0, note('cancelled'))
    cancel()
    cancel()
    replica.watch(newGroup(), 0, note('another group'))
    await one.commit(['a=1'])
    await one.until(() => woken.length > 0)
    expect(woken).toEqual(['0'])
    await one.commit(['a=2'])
    await footing.settled(passed)
    await one.until(() => woken.length > 1)
    expect(woken).toEqual(['0', '1'])
  })

  test('LOG-8: groups are listed by their names as soon as a write to them is acknowledged', async () => {
    const one = story()
    const { replica, other, footing } = one
    const prefix = newName('listed')
    const groups = ['d', 'a', 'c', 'b'].map((name) => newGroup(`${prefix} ${name}`))
    for (const group of groups) await one.commit(['a=1'], { group })
    const sorted = groups.toSorted()
    for (const through of [replica, other]) {
      const list = (...asked: [number, string?]) =>
        footing.settled(through.groups(prefix, sorted[Number(asked[1])], asked[0], timeoutMs))
      expect(await list(10)).toEqual(sorted)
      expect(await list(3)).toEqual(sorted.slice(0, 3))
      expect(await list(2, '0')).toEqual(sorted.slice(1, 3))
      expect(await list(2, '3')).toEqual([])
    }
  })
}

/** Few keys; values that are longer than a page, and empty ones. */
const someRow = fc.tuple(
  fc.constantFrom('a', 'b', 'ba', 'c', 'd', 'e'),
  fc.constantFrom('', 'x', 'x'.repeat(20), 'x'.repeat(50)),
)
const someEnd = fc.constantFrom('a', 'b', 'bb', 'd', 'f').map(bytesOf)
const someRange: fc.Arbitrary<PageRange> = fc.record(
  {
    ...{ gte: someEnd, gt: someEnd, lt: someEnd, reverse: fc.boolean() },
    ...{ limit: fc.integer({ min: 1, max: 4 }), bytesMax: fc.integer({ min: 1, max: 60 }) },
  },
  { requiredKeys: [] },
)

function describePages(story: () => ReplicaStory): void {
  test('a page ends where its rows or bytes do, and what is behind the pages joins up', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(someRow, { maxLength: 8 }),
        someRange,
        fc.boolean(),
        async (rows, range, isPast) => {
          const one = story()
          const { group, replica, footing } = one
          const model = new Map(rows)
          const { timestamp } = await one.commit(rows.map(([key, value]) => `${key}=${value}`))
          if (isPast) await one.commit(['a', 'b=new', 'f=new'])
          const at = isPast ? timestamp : undefined
          const found: string[] = []
          for (let ends: PageRange = range, isEnd = false; !isEnd;) {
            const page = await footing.settled(replica.scan(group, ends, at))
            expectFull(page.map(textOf), range, isAtEnd(page, range))
            found.push(...page.map(textOf))
            const last = page.at(-1)?.key
            if (last !== undefined) {
              ends = { ...ends, ...(range.reverse === true ? { lt: last } : { gt: last }) }
            }
            isEnd = isAtEnd(page, range)
          }
          expect(found).toEqual(expected(model, range))
        },
      ),
      { numRuns: 20 },
    )
  })
}

/** A page is no longer than it may be, and one that does not end its range is no shorter either. */
function expectFull(rows: readonly string[], range: PageRange, isEnd: boolean): void {
  const { limit = Infinity, bytesMax = Infinity } = range
  const bytesOfPage = (page: readonly string[]): number =>
    page.reduce((bytes, row) => bytes + row.length - 1, 0)
  expect(rows.length).toBeLessThanOrEqual(limit)
  expect(bytesOfPage(rows.slice(0, -1))).toBeLessThanOrEqual(bytesMax)
  if (!isEnd) expect(rows.length === limit || bytesOfPage(rows) > bytesMax).toBe(true)
}

function expected(model: ReadonlyMap<string, string>, range: PageRange): string[] {
  const { gte, gt, lt, reverse } = range
  const text = (end: Uint8Array | undefined): string | undefined => end && String(end)
  const rows = [...model.keys()]
    .filter((key) => gte === undefined || key >= (text(gte) ?? ''))
    .filter((key) => gt === undefined || key > (text(gt) ?? ''))
    .filter((key) => lt === undefined || key < (text(lt) ?? ''))
    .sort()
    .map((key) => `${key}=${model.get(key)}`)
  return reverse === true ? rows.toReversed() : rows
}

type Step =
  | { readonly kind: 'commit'; readonly writes: readonly string[]; readonly isOther: boolean }
  | { readonly kind: 'read'; readonly isOther: boolean }
  | {
      readonly kind: 'look'
      readonly isOther: boolean
      readonly from: 'current' | 'snapshot' | number
      readonly atLeast: number
      readonly keys: readonly string[]
    }

const keyArbitrary = fc.constantFrom('a', 'b', 'c')
const someStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    ...{ kind: fc.constant('commit' as const), isOther: fc.boolean() },
    writes: fc.array(
      fc.oneof(
        keyArbitrary,
        fc.tuple(keyArbitrary, fc.nat(9)).map(([key, n]) => `${key}=${n}`),
      ),
      { minLength: 1, maxLength: 2 },
    ),
  }),
  fc.record({ kind: fc.constant('read' as const), isOther: fc.boolean() }),
  {
    weight: 2,
    arbitrary: fc.record({
      ...{ kind: fc.constant('look' as const), isOther: fc.boolean() },
      // A number counts commits back from the newest.
      from: fc.constantFrom('current' as const, 'snapshot' as const, 0, 1),
      ...{ atLeast: fc.nat(2), keys: fc.array(keyArbitrary, { maxLength: 3 }) },
    }),
  },
)

function describeRowsNow(story: () => ReplicaStory): void {
  test('MVCC-1: rows at once are those of a read and a look-up, of the same point', async () => {
    const answered = { current: 0, snapshot: 0, at: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(someStep, { maxLength: 12 }), async (steps) => {
        const one = story()
        const times: number[] = []
        for (const step of steps) {
          const through = step.isOther ? one.other : one.replica
          if (step.kind === 'commit') {
            times.push((await one.commit(step.writes, {}, through)).timestamp)
          } else if (step.kind === 'read') await one.read('current', through)
          else {
            const { from, keys } = step
            const level = typeof from === 'number' ? (times.at(-1 - from) ?? 0) : from
            const atLeast = Math.max(0, times.length - step.atLeast)
            const isNow = await compare(one, through, level, atLeast, keys)
            if (isNow) answered[typeof from === 'number' ? 'at' : from] += 1
          }
        }
      }),
      { numRuns: 40 },
    )
    // The drawing reaches answers of each kind; a current one needs a lease.
    expect(answered.snapshot).toBeGreaterThan(0)
    expect(answered.at).toBeGreaterThan(0)
  })

  test('rows at once are left to a read where that has to wait or is of the past', async () => {
    const one = story()
    const { group, replica } = one
    const { timestamp: first } = await one.commit(['a=1'])
    const { position, timestamp } = await one.commit(['a=2'])
    const keys = [bytesOf('a'), bytesOf('x')]
    for (const from of ['snapshot', timestamp] as const) {
      const { point, rows } = replica.rowsNow(group, from, position, keys) ?? {}
      expect(point).toEqual({ position, timestamp })
      expect(textsOf(rows ?? [])).toBe('a=2 none')
      expect(replica.rowsNow(group, from, position + 1, keys)).toBeUndefined()
    }
    for (const from of [first, timestamp - 1, timestamp + 1]) {
      expect(replica.rowsNow(group, from, 0, keys)).toBeUndefined()
    }
  })
}

/** Whether there were rows at once. */
async function compare(
  one: ReplicaStory,
  replica: LocalReplica,
  from: 'current' | 'snapshot' | number,
  atLeast: number,
  keys: readonly string[],
): Promise<boolean> {
  const { group, footing } = one
  const asked = keys.map(bytesOf)
  const now = replica.rowsNow(group, from, atLeast, asked)
  if (now === undefined) return false
  const point =
    typeof from === 'number'
      ? await footing.settled(replica.readAt(group, from, timeoutMs))
      : await one.read(from, replica, atLeast)
  const rows = await footing.settled(replica.getAt(group, asked, point.timestamp))
  expect(now.point).toEqual(point)
  expect(now.point.position).toBeGreaterThanOrEqual(atLeast)
  expect(textsOf(now.rows)).toBe(textsOf(rows))
  expect(now.rows.map((row) => row?.timestamp)).toEqual(rows.map((row) => row?.timestamp))
  return true
}

function describeOutcomes(story: () => ReplicaStory): void {
  test('LOG-3: the outcome of an intent is what its submission was told, at any replica', async () => {
    const one = story()
    const { group, replica, other, footing } = one
    const sent = one.submission(['a=1'], { attempt: 4, allocations: [1] })
    const told = await footing.settled(replica.submit(sent, timeoutMs))
    expect(told.kind).toBe('committed')
    const { position, timestamp } = await one.read('current')
    const point = { position, timestamp }
    const open = one.intent(2)
    for (const through of [replica, other]) {
      const ask = (intent: Parameters<LocalReplica['outcome']>[1]) =>
        footing.settled(through.outcome(group, intent, timeoutMs))
      expect(await ask(sent.intent)).toEqual(told)
      expect(await ask(open)).toEqual({ kind: 'none', ...point })
      const { session, sequence } = open
      expect(await ask({ session, sequence })).toEqual({ kind: 'forgotten', ...point })
      expect(await ask({ ...open, expiresAt: timestamp - 1 })).toEqual({
        ...{ kind: 'forgotten', ...point },
      })
    }
  })

  test('LOG-3: the outcome of an intent below its floor is forgotten, of a late one expired', async () => {
    const one = story()
    const { group, other, footing } = one
    const first = one.submission(['a=1'])
    const { timestamp: expiresAt } = await one.commit([], first)
    const late = one.submission(['a=2'], { intent: one.intent(2, { expiresAt }) })
    await footing.settled(one.replica.submit(late, timeoutMs))
    const lateNow = footing.settled(other.outcome(group, late.intent, timeoutMs))
    expect((await lateNow).kind).toMatch(/^(expired|forgotten)$/)
    await one.commit(['a=3'], { intent: one.intent(3, { floor: 3 }) })
    const outcome = await footing.settled(other.outcome(group, first.intent, timeoutMs))
    expect(outcome).toMatchObject({ kind: 'forgotten' })
  })
}

function describeEnds(ownStory: OwnStory, canBeCutOff: boolean): void {
  test.runIf(canBeCutOff)(
    'LIVE-1: without a majority every question is unavailable in its time, but for what is here',
    async () => {
      const one = await ownStory()
      const { group, replica, footing } = one
      const { position, timestamp } = await one.commit(['a=1'])
      footing.cutOff?.()
      // Leases that the others gave have ended by then.
      await one.passMs(3_000)
      const questions: readonly (() => Promise<unknown>)[] = [
        () => replica.read(group, 'current', 500),
        () => replica.readAt(group, timestamp + 10 ** 12, 500),
        () => replica.outcome(group, one.intent(2), 500),
        () => replica.groups('', undefined, 10, 500),
      ]
      for (const ask of questions) {
        const startMicros = footing.clock.wallMicros()
        await expect(footing.settled(ask())).rejects.toMatchObject({ code: 'unavailable' })
        expect(footing.clock.wallMicros() - startMicros).toBeLessThan(800_000)
      }
      expect(await one.read('snapshot')).toEqual({ position, timestamp })
      const rows = replica.getAt(group, [bytesOf('a')], timestamp)
      expect(textsOf(await footing.settled(rows))).toBe('a=1')
    },
  )

  test.runIf(canBeCutOff)('what waits for a majority ends when the node does', async () => {
    const one = await ownStory()
    const { group, replica, footing } = one
    await one.commit(['a=1'])
    footing.cutOff?.()
    await one.passMs(3_000)
    const read = replica.read(group, 'current', 60_000).catch((error: unknown) => error)
    const sent = replica.submit(one.submission(['a=2']), 60_000)
    const startMicros = footing.clock.wallMicros()
    await footing.settled(firstOf(footing).stop())
    expect(await footing.settled(read)).toMatchObject({ code: 'closed' })
    expect(await footing.settled(sent)).toEqual({ kind: 'unknown' })
    expect(footing.clock.wallMicros() - startMicros).toBeLessThan(10_000_000)
  })

  test('a replica that has ended answers nothing at once, and refuses every question', async () => {
    const one = await ownStory()
    const { group, replica, footing } = one
    const { timestamp } = await one.commit(['a=1'])
    const late = one.submission(['a=2'])
    await footing.settled(firstOf(footing).stop())
    expect(await footing.settled(replica.submit(late, timeoutMs))).toEqual({ kind: 'unknown' })
    expect(replica.positionHere(group)).toBeUndefined()
    expect(replica.rowsNow(group, 'snapshot', 0, [])).toBeUndefined()
    const questions: readonly (() => Promise<unknown>)[] = [
      () => replica.read(group, 'snapshot', timeoutMs),
      () => replica.read(group, 'current', timeoutMs),
      () => replica.readAt(group, timestamp, timeoutMs),
      () => replica.getAt(group, [bytesOf('a')], timestamp),
      () => replica.scan(group, {}, timestamp),
      () => replica.outcome(group, late.intent, timeoutMs),
      () => replica.groups('', undefined, 10, timeoutMs),
    ]
    for (const ask of questions) {
      await expect(footing.settled(ask())).rejects.toMatchObject({ code: 'closed' })
    }
  })
}
