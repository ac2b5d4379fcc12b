/**
 * The promises of the group port about reads (`src/group/group-port.ts`), as a suite over a way to make one;
 * `group-commits.ts` is the same of commits. The port of a node, the client's, and those in memory that other
 * tests stand on are held to the same claims.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import type { RowRange } from '../../src/group/replica-port.ts'
import { describeCommits } from './group-commits.ts'
import {
  current,
  GroupStory,
  snapshot,
  type GroupAbilities,
  type GroupPlace,
} from './group-story.ts'
import { allRows, bytesOf, textOf, textsOf, timeoutMs } from './submissions.ts'

export function groupPortContract(
  name: string,
  makePlace: () => Promise<GroupPlace>,
  abilities: GroupAbilities,
): void {
  let shared: GroupPlace | undefined
  const story = (): GroupStory => new GroupStory(present(shared, 'the place is made'))

  /** At a place of its own, which the test may end. */
  async function ownStory(): Promise<GroupStory> {
    const place = await makePlace()
    onTestFinished(() => place.remove())
    return new GroupStory(place)
  }

  describe(name, () => {
    beforeAll(async () => {
      shared = await makePlace()
    })
    afterAll(() => shared?.remove())

    describeReads(story)
    describePages(story, abilities)
    describeCommits(story)
    describeEnds(ownStory, abilities)
    if (abilities.isClient) describeClients(story, ownStory)
  })
}

function describeReads(story: () => GroupStory): void {
  test('a group without a commit has no row, and each of its views is of position 0', async () => {
    const one = story()
    const views = [current, snapshot, { kind: 'at', timestamp: 10 ** 15 } as const]
    for (const from of views) {
      const view = await one.view(from)
      expect(view).toEqual({ position: 0, asOf: 0 })
      expect(await one.get(view, ['a'])).toBe('none')
      expect(await one.page(view, {})).toBe('')
    }
  })

  test('a current view sees each acknowledged commit, whichever way it was made', async () => {
    const one = story()
    for (const value of ['1', '2', '3']) {
      const { position, timestamp } = await one.commit([`a=${value}`])
      for (const port of [one.place.other, one.place.port]) {
        expect(await one.view(current, port)).toEqual({ position, asOf: timestamp })
        expect(await one.rows(await one.view(current, port), port)).toBe(`a=${value}`)
      }
    }
  })

  test('a row has the timestamp of its commit, and these rise with the positions', async () => {
    const one = story()
    const first = await one.commit(['a=1', 'b=1'])
    const second = await one.commit(['b=2'])
    expect([first.position, second.position]).toEqual([1, 2])
    expect(second.timestamp).toBeGreaterThan(first.timestamp)
    const asked = one.place.port.get(
      one.group,
      await one.view(current),
      ['a', 'b'].map(bytesOf),
      timeoutMs,
    )
    const rows = await one.place.settled(asked)
    expect(rows.map((row) => row?.timestamp)).toEqual([first.timestamp, second.timestamp])
  })

  test('MVCC-1: a view stays as it is while others commit, read through either port', async () => {
    const one = story()
    await one.commit(['a=1', 'b=1', 'c=1'])
    const view = await one.view(current)
    await one.commit(['a=2', 'b', 'd=2'])
    for (const port of [one.place.port, one.place.other]) {
      expect(await one.rows(view, port)).toBe('a=1 b=1 c=1')
      expect(await one.get(view, ['a', 'b', 'd'], port)).toBe('a=1 b=1 none')
    }
    expect(await one.now()).toBe('a=2 c=1 d=2')
  })

  test('CELL-5: a snapshot that is to be of a position at least sees that commit', async () => {
    const one = story()
    for (const value of ['1', '2', '3']) {
      const { position } = await one.commit([`a=${value}`])
      const view = await one.view(snapshot, one.place.other, position)
      expect(view.position).toBeGreaterThanOrEqual(position)
      expect(await one.get(view, ['a'], one.place.other)).toBe(`a=${value}`)
    }
  })

  test('no group gets to a position that no commit had: such a view is invalid', async () => {
    const one = story()
    await one.commit(['a=1'])
    for (const from of [current, snapshot]) {
      await expect(one.view(from, one.place.port, 1_000)).rejects.toMatchObject({ code: 'invalid' })
    }
  })

  test('MVCC-1: a view at a timestamp is the state of that moment, or the newest one', async () => {
    const one = story()
    const times: number[] = []
    for (const texts of [['a=1', 'b=1'], ['a=2'], ['b', 'c=3']]) {
      times.push((await one.commit(texts)).timestamp)
    }
    const [first = 0, second = 0, third = 0] = times
    const seen = [
      ...[[first - 1, ''] as const, [first, 'a=1 b=1'] as const, [second, 'a=2 b=1'] as const],
      ...[[third - 1, 'a=2 b=1'] as const, [third, 'a=2 c=3'] as const],
    ]
    for (const [timestamp, rows] of seen) {
      for (const port of [one.place.port, one.place.other]) {
        const view = await one.view({ kind: 'at', timestamp }, port)
        expect(view.asOf).toBe(timestamp)
        expect(await one.rows(view, port)).toBe(rows)
      }
    }
    const future = { kind: 'at', timestamp: third + 10 ** 12 } as const
    expect(await one.view(future)).toEqual({ position: 3, asOf: third })
  })

  test('an inconsistent view is of no moment, and shows the newest rows', async () => {
    const one = story()
    await one.commit(['a=1', 'b=1'])
    const view = await one.view({ kind: 'inconsistent' })
    expect(view).toEqual({ position: 1, asOf: undefined })
    await one.commit(['a=2'])
    expect(await one.rows(view)).toBe('a=2 b=1')
    expect(await one.get(view, ['b', 'a'])).toBe('b=1 a=2')
  })
}

function describePages(story: () => GroupStory, { isHeavy = false }: GroupAbilities): void {
  test('rows by keys come in the order of the keys, as often as each is named', async () => {
    const one = story()
    await one.commit(['a=1', 'b=', 'c=3'])
    const view = await one.view(current)
    expect(await one.get(view, ['c', 'x', 'a', 'c', 'b'])).toBe('c=3 none a=1 c=3 b=')
    expect(await one.get(view, [])).toBe('')
  })

  test('a range is between its ends, in its order, up to its limit', async () => {
    const one = story()
    await one.commit(['a=', 'b=', 'c=', 'd=', 'e='])
    await one.commit(['c', 'f='])
    const [b, d, e] = [bytesOf('b'), bytesOf('d'), bytesOf('e')]
    const ranges: readonly (readonly [RowRange, string])[] = [
      ...[[{}, 'a= b= d= e= f='] as const, [{ gte: b }, 'b= d= e= f='] as const],
      ...[[{ gt: b }, 'd= e= f='] as const, [{ lt: e }, 'a= b= d='] as const],
      ...[[{ gte: b, gt: b, lt: e }, 'd='] as const, [{ gt: d, lt: d }, ''] as const],
      ...[[{ gte: b, reverse: true }, 'f= e= d= b='] as const, [{ limit: 2 }, 'a= b='] as const],
      ...[[{ gt: b, lt: e, reverse: true, limit: 1 }, 'd='] as const],
      ...[
        [{ gte: e, limit: 2 }, 'e= f='] as const,
        [{ gte: b, limit: 100 }, 'b= d= e= f='] as const,
      ],
    ]
    const views = [current, { kind: 'inconsistent' }] as const
    for (const from of views) {
      const view = await one.view(from)
      for (const [range, rows] of ranges) expect(await one.page(view, range)).toBe(rows)
    }
  })

  test('a page that is full says so, and the pages of a range join up', async () => {
    const one = story()
    const keys = Array.from({ length: 1_500 }, (_, at) => String(at).padStart(4, '0'))
    await one.commit(keys.map((key) => `${key}=`))
    const view = await one.view(current)
    for (const reverse of [false, true]) {
      const found: string[] = []
      const sizes: number[] = []
      for (let ends: RowRange = {}, isEnd = false; !isEnd;) {
        const asked = one.place.port.scan(one.group, view, { reverse, ...ends }, timeoutMs)
        const { rows, isWhole } = await one.place.settled(asked)
        found.push(...rows.map(textOf))
        sizes.push(rows.length)
        const last = rows.at(-1)?.key
        ends = last === undefined ? {} : reverse ? { lt: last } : { gt: last }
        isEnd = isWhole
      }
      expect(sizes).toEqual([1_000, 500])
      const all = keys.map((key) => `${key}=`)
      expect(found).toEqual(reverse ? all.toReversed() : all)
    }
  })

  test.runIf(isHeavy)(
    'rows that are too large for one answer are all there, by keys and page by page',
    async () => {
      const one = story()
      const value = 'x'.repeat(512 * 1024)
      const keys = Array.from({ length: 10 }, (_, at) => `k${String(at).padStart(2, '0')}`)
      for (const from of [0, 5]) {
        await one.commit(keys.slice(from, from + 5).map((key) => `${key}=${value}`))
      }
      const view = await one.view(current)
      const { group, place } = one
      const byKeys = await place.settled(place.port.get(group, view, keys.map(bytesOf), timeoutMs))
      const first = await place.settled(place.port.scan(group, view, {}, timeoutMs))
      expect(first.isWhole).toBe(false)
      expect(first.rows.length).toBeLessThan(keys.length)
      const inPages = await place.settled(allRows(place.port, group, view))
      for (const rows of [byKeys, inPages]) {
        expect(rows.map((row) => row && textOf(row).slice(0, 3))).toEqual(keys)
        expect(rows.every((row) => row?.value.length === value.length)).toBe(true)
      }
    },
  )
}

function describeEnds(
  ownStory: () => Promise<GroupStory>,
  { canBeCutOff, isClient }: GroupAbilities,
): void {
  test.runIf(canBeCutOff)(
    'LIVE-1: without a majority a read is unavailable, and no commit is acknowledged, both in time',
    async () => {
      const one = await ownStory()
      const { place } = one
      await one.commit(['a=1'])
      place.cutOff?.()
      const read = place.port.view(one.group, current, 1_000)
      await expect(place.settled(read)).rejects.toMatchObject({ code: 'unavailable' })
      for (const ms of [1_000, 500]) {
        const micros = place.clock.wallMicros()
        const told = one.told(place.port.commit(one.submission(['a=2']), ms))
        // A client that reached no node knows that nothing happened.
        expect(isClient ? ['unknown', 'unavailable'] : ['unknown']).toContain(await told)
        expect(place.clock.wallMicros() - micros).toBeLessThan((ms + 300) * 1_000)
      }
    },
  )

  test('a port that has ended refuses reads as closed, and promises no commit', async () => {
    const one = await ownStory()
    const { place } = one
    await one.commit(['a=1'])
    const view = await one.view(current)
    const late = one.submission(['a=2'])
    await place.settled(place.close())
    const reads: readonly (() => Promise<unknown>)[] = [
      () => place.port.view(one.group, current, timeoutMs),
      () => place.port.view(one.group, snapshot, timeoutMs),
      () => place.port.get(one.group, view, [bytesOf('a')], timeoutMs),
      () => place.port.scan(one.group, view, {}, timeoutMs),
    ]
    for (const read of reads) {
      const ended = Promise.resolve().then(read)
      await expect(place.settled(ended)).rejects.toMatchObject({ code: 'closed' })
    }
    const commit = place.port.commit(late, timeoutMs)
    expect(['unknown', 'closed']).toContain(await one.told(commit))
    const { checkOpen } = place.port
    const isOpen = (): void => checkOpen?.call(place.port)
    if (isClient) expect(isOpen).toThrow(expect.objectContaining({ code: 'closed' }))
  })
}

function describeClients(story: () => GroupStory, ownStory: () => Promise<GroupStory>): void {
  test('rows that are read first are those of their view', async () => {
    const one = story()
    const { port, settled } = one.place
    const { timestamp } = await one.commit(['a=1', 'b=1', 'c=1'])
    await one.commit(['a=2', 'b'])
    const froms = [current, snapshot, { kind: 'at', timestamp }, { kind: 'inconsistent' }] as const
    const range = { gt: bytesOf('a'), limit: 1 }
    for (const from of froms) {
      const asked = { keys: ['b', 'a'].map(bytesOf), range }
      const begun = present(port.begin, 'a client begins').call(
        port,
        one.group,
        from,
        asked,
        timeoutMs,
        2,
      )
      const { view, rows, page } = await settled(begun)
      expect(view).toEqual(await one.view(from, port, 2))
      expect(textsOf(rows)).toBe(await one.get(view, ['b', 'a']))
      expect(textsOf(page?.rows ?? [])).toBe(await one.page(view, range))
    }
  })

  test('what a signal gives up before it is sent is closed, and a commit that was sent is unknown', async () => {
    const one = await ownStory()
    const { place } = one
    await one.commit(['a=1'])
    const until = present(place.port.until, 'a client takes a signal').bind(place.port)
    const gone = until(AbortSignal.abort())
    const read = gone.view(one.group, current, timeoutMs)
    await expect(place.settled(read)).rejects.toMatchObject({ code: 'closed' })
    // Nothing is sent, so it says that nothing happened.
    const unsent = gone.commit(one.submission(['a=2']), timeoutMs)
    await expect(place.settled(unsent)).rejects.toMatchObject({ code: 'closed' })
    const going = new AbortController()
    const port = until(going.signal)
    expect((await place.settled(port.view(one.group, current, timeoutMs))).position).toBe(1)
    const sent = port.commit(one.submission(['a=3']), timeoutMs)
    going.abort()
    // Sent by now, so it may have happened.
    expect(await place.settled(sent)).toEqual({ kind: 'unknown' })
  })
}
