/**
 * A service that carries out operations on cells (`src/cells/operation.ts`, CELL-1 to CELL-8), as a suite
 * over a way to make one: a node's store, the client library, and what routes between replica sets.
 */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { present } from '../../src/base/assert.ts'
import type { CellName } from '../../src/cells/cell.ts'
import type { Answered, CellOperation } from '../../src/cells/operation.ts'
import { any, current, packed } from '../cells/kit.ts'
import { describeCellLogs } from './cell-logs.ts'
import { asText, CellStory, codeOf, newRowKey, textOfPage, type CellPlace } from './cell-story.ts'

/** The abilities that not every service has. */
export interface CellAbilities {
  /** It can lose its majority. */
  readonly canBeCutOff: boolean
  /** It takes the caller's intents; a client makes its own. */
  readonly takesIntents: boolean
  /** It answers some reads in the call. */
  readonly answersNow: boolean
  /** The end of the names of its datastores, which says how many shards they have: `.8`; absent: 4,096. */
  readonly form?: string
}

export function cellServiceContract(
  name: string,
  makePlace: () => Promise<CellPlace>,
  abilities: CellAbilities,
): void {
  let shared: CellPlace | undefined
  const { form } = abilities
  const story = (): CellStory => new CellStory(present(shared, 'the place is made'), form)

  async function ownStory(): Promise<CellStory> {
    const place = await makePlace()
    onTestFinished(() => place.footing.remove())
    return new CellStory(place, form)
  }

  describe(name, () => {
    beforeAll(async () => {
      shared = await makePlace()
    })
    afterAll(() => shared?.footing.remove())

    describePuts(story, abilities)
    describeReads(story)
    describeProblems(story)
    describeCellLogs(story)
    if (abilities.answersNow) describeAnswersNow(story)
    describeEnds(ownStory, abilities)
  })
}

function describePuts(story: () => CellStory, { takesIntents }: CellAbilities): void {
  test('CELL-1: a cell is put once: equal again it is found, with another body it is refused', async () => {
    const one = story()
    const name = { rowKey: newRowKey(), column: 'BASE', refKey: 7 }
    const first = await one.put(name, { fare: 1 })
    expect(first).toMatchObject({ created: true, addedId: 1, shard: one.shardOf(name.rowKey) })
    for (const service of [one.service, one.other]) {
      expect(await one.put(name, { fare: 1 }, service)).toEqual({ ...first, created: false })
      expect(await one.refused(name, { fare: 2 }, service)).toBe('immutable')
      expect(await one.get(name, current, service)).toBe('BASE/7={"fare":1}')
    }
  })

  test('CELL-1: of puts of a cell at once one creates it, and equal ones are told of the same', async () => {
    const one = story()
    const name = { rowKey: newRowKey(), column: 'BASE', refKey: 0 }
    const puts = [one.service, one.other, one.service, one.other].map((service) =>
      one.send(name, 'same', service),
    )
    const written = await one.place.footing.settled(Promise.all(puts))
    expect(written.filter(({ created }) => created === true)).toHaveLength(1)
    expect(new Set(written.map(({ addedId }) => addedId)).size).toBe(1)
  })

  test('CELL-3: numbers are dense in each shard, and times rise with them', async () => {
    const one = story()
    const rowKey = newRowKey()
    const names = Array.from({ length: 12 }, (_, refKey) => ({ rowKey, column: 'A', refKey }))
    const puts = names.map((name, nth) =>
      one.send(name, nth, nth % 2 === 0 ? one.service : one.other),
    )
    const written = await one.place.footing.settled(Promise.all(puts))
    const ordered = written.toSorted((a, b) => (a.addedId ?? 0) - (b.addedId ?? 0))
    expect(ordered.map(({ addedId }) => addedId)).toEqual(names.map((_, nth) => nth + 1))
    const times = ordered.map(({ createdAt }) => createdAt ?? 0)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  test('items of a batch succeed and fail by themselves, in their order', async () => {
    const one = story()
    const [first, second] = [newRowKey(), newRowKey()]
    await one.put({ rowKey: first, column: 'A', refKey: 0 }, 'old')
    const bodies: readonly (readonly [CellName, string])[] = [
      [{ rowKey: second, column: 'A', refKey: 0 }, 'new'],
      [{ rowKey: first, column: 'A', refKey: 0 }, 'other'],
      [{ rowKey: 'no uuid', column: 'A', refKey: 0 }, 'new'],
      [{ rowKey: first, column: '1', refKey: 0 }, 'new'],
      [{ rowKey: first, column: 'A', refKey: -1 }, 'new'],
      [{ rowKey: first, column: 'A', refKey: 0 }, 'old'],
    ]
    const items = bodies.map(([name, body]) => ({ ...name, body: packed(body) }))
    const { answer } = await one.ask({ kind: 'put', datastore: one.datastore, items })
    const told = answer.kind === 'put' ? answer.items.map(codeOf) : answer
    expect(told).toEqual(['ok', 'immutable', 'invalid', 'invalid', 'invalid', 'ok'])
    const read = { kind: 'get', datastore: one.datastore, read: current } as const
    const got = await one.ask({ ...read, items: bodies.map(([name]) => name) })
    const found = got.answer.kind === 'get' ? got.answer.items.map(asText) : got.answer
    expect(found).toEqual([
      ...['A/0="new"', 'A/0="old"', 'invalid', 'invalid', 'invalid', 'A/0="old"'],
    ])
  })

  test.runIf(takesIntents)(
    'CELL-4: a put that is sent again under its intent creates its cell once, and is told so again',
    async () => {
      const one = story()
      const name = { rowKey: newRowKey(), column: 'A', refKey: 0 }
      const options = { intents: one.intents(1) }
      const first = await one.put(name, 'body', one.service, options)
      expect(first.created).toBe(true)
      for (const service of [one.service, one.other]) {
        expect(await one.put(name, 'body', service, options)).toEqual(first)
      }
      const stranger = { intents: one.intents(1) }
      expect((await one.put(name, 'body', one.other, stranger)).created).toBe(false)
    },
  )
}

function describeReads(story: () => CellStory): void {
  test('CELL-5: what an answer is of a position of is seen there by any replica', async () => {
    const one = story()
    const name = { rowKey: newRowKey(), column: 'A', refKey: 0 }
    for (let refKey = 0; refKey < 3; refKey++) {
      const { positions } = await one.ask({
        ...{ kind: 'put', datastore: one.datastore },
        items: [{ ...name, refKey, body: packed(refKey) }],
      })
      expect(positions).toEqual([[one.shardOf(name.rowKey), refKey + 1]])
      const seen = { level: 'snapshot', atLeast: positions } as const
      expect(await one.get({ ...name, refKey }, seen, one.other)).toBe(`A/${refKey}=${refKey}`)
    }
    const ahead = { level: 'snapshot', atLeast: [[one.shardOf(name.rowKey), 10 ** 9]] } as const
    expect(await one.get(name, ahead)).toBe('invalid')
  })

  test('CELL-2: the latest cell is the one with the highest ref key, whichever came last', async () => {
    const one = story()
    const rowKey = newRowKey()
    for (const refKey of [5, 9, 7]) await one.put({ rowKey, column: 'A', refKey }, refKey)
    await one.put({ rowKey, column: 'B', refKey: 1 }, 'b')
    for (const service of [one.service, one.other]) {
      expect(await one.get({ rowKey, column: 'A' }, current, service)).toBe('A/9=9')
      expect(await one.get({ rowKey, column: 'C' }, current, service)).toBe('none')
      expect(await one.get({ rowKey: newRowKey(), column: 'A' }, current, service)).toBe('none')
    }
    expect(await one.get({ rowKey: rowKey.toUpperCase(), column: 'B', refKey: 1 })).toBe('B/1="b"')
  })

  test('CELL-2: versions and columns come in their order, page by page', async () => {
    const one = story()
    const { datastore } = one
    const rowKey = newRowKey()
    for (const refKey of [5, 9, 7]) await one.put({ rowKey, column: 'B', refKey }, refKey)
    await one.put({ rowKey, column: 'A', refKey: 1 }, 'a')
    await one.put({ rowKey, column: 'C', refKey: 2 }, 'c')
    const whole = { datastore, read: current, rowKey, limit: 2 }
    const versions = { kind: 'versions', ...whole, column: 'B', reverse: false } as const
    expect(await one.page(versions)).toBe('B/5=5 B/7=7 → 9')
    expect(await one.page({ ...versions, from: 9 })).toBe('B/9=9')
    expect(await one.page({ ...versions, reverse: true })).toBe('B/9=9 B/7=7 → 5')
    expect(await one.page({ ...versions, reverse: true, from: 6 })).toBe('B/5=5')
    const row = { kind: 'row', ...whole } as const
    expect(await one.page(row)).toBe('A/1="a" B/9=9 → C')
    expect(await one.page({ ...row, from: 'C' })).toBe('C/2="c"')
    expect(await one.page({ ...row, read: any, limit: 10 }, one.service)).toMatch(/^A.* B.* C/)
  })
}

function describeProblems(story: () => CellStory): void {
  test('what is wrong with an operation is a problem of its answer, and nothing is thrown', async () => {
    const one = story()
    const { datastore } = one
    const rowKey = newRowKey()
    const row = { kind: 'row', datastore, read: current, rowKey, limit: 1 } as const
    const item = { rowKey, column: 'A', refKey: 0, body: packed(1) }
    const wrong: readonly (readonly [CellOperation, string])[] = [
      [{ ...row, datastore: 'Trips' }, 'invalid'],
      [{ ...row, limit: 0 }, 'invalid'],
      [{ ...row, limit: 1_001 }, 'invalid'],
      [{ kind: 'put', datastore, items: [] }, 'invalid'],
      [{ kind: 'put', datastore, items: Array.from({ length: 1_001 }, () => item) }, 'too-large'],
      [
        {
          ...{ kind: 'log', datastore, read: current, limit: 1, waitMs: 60_001 },
          items: [{ kind: 'after', shard: 0, addedId: 0 }],
        },
        'invalid',
      ],
      [
        {
          ...{ kind: 'index', datastore, read: current, name: 'none', where: [], limit: 1 },
          ...{ reverse: false, verify: true },
        },
        'not-found',
      ],
    ]
    for (const [operation, code] of wrong) {
      expect(problemOf(await one.ask(operation))).toBe(code)
    }
    for (const timeoutMs of [0, 300_001]) {
      expect(problemOf(await one.ask(row, one.service, { timeoutMs }))).toBe('invalid')
    }
    expect(textOfPage(await one.ask(row))).toBe('')
  })
}

function problemOf({ answer }: Answered): string {
  return answer.kind === 'problem' ? answer.problem.code : answer.kind
}

function describeAnswersNow(story: () => CellStory): void {
  test('CELL-1: a cell that is answered in the call is the one that a call gives that waits', async () => {
    const one = story()
    const { datastore, service } = one
    const [rowKey, empty] = [one.ownRowKey(), one.ownRowKey()]
    for (const refKey of [0, 3]) await one.put({ rowKey, column: 'A', refKey }, { refKey })
    const { positions } = await one.ask({
      ...{ kind: 'get', datastore, read: current },
      items: [{ rowKey, column: 'A', refKey: 0 }],
    })
    const items = [
      ...[rowKey, rowKey.toUpperCase()].map((key) => ({ rowKey: key, column: 'A', refKey: 3 })),
      ...[
        { rowKey, column: 'A', refKey: 1 },
        { rowKey, column: 'A' },
      ],
      ...[
        { rowKey: empty, column: 'A', refKey: 0 },
        { rowKey: 'none', column: 'A', refKey: 0 },
      ],
    ]
    let answered = 0
    for (const item of items) {
      for (const read of [current, any, { level: 'snapshot', atLeast: positions } as const]) {
        const operation = { kind: 'get', datastore, read, items: [item] } as const
        const now = present(service.answerNow, 'it answers in the call').call(service, operation)
        if (now === undefined) continue
        answered += 1
        expect(plain(now)).toEqual(plain(await one.ask(operation)))
      }
    }
    expect(answered).toBeGreaterThanOrEqual(6)
    const ahead = { level: 'snapshot', atLeast: [[one.shardOf(rowKey), 10 ** 9]] } as const
    const operation = { kind: 'get', datastore, read: ahead, items: items.slice(0, 1) } as const
    expect(service.answerNow?.(operation)).toBeUndefined()
  })
}

/** Bytes as texts, whichever class they are of. The leaders of shards are hints. */
function plain({ answer, positions }: Answered): unknown {
  if (answer.kind !== 'get') return answer
  const rows = answer.items.map((item) => (item.kind === 'ok' ? item.value?.rowKey : undefined))
  return { positions, rows, items: answer.items.map(asText) }
}

function describeEnds(ownStory: () => Promise<CellStory>, { canBeCutOff }: CellAbilities): void {
  test.runIf(canBeCutOff)(
    'CELL-4: without a majority a current read is unavailable, and a put is so or unsure',
    async () => {
      const one = await ownStory()
      const name = { rowKey: newRowKey(), column: 'A', refKey: 0 }
      await one.put(name, 1)
      one.place.footing.cutOff?.()
      await one.passMs(3_000)
      expect(await one.get(name, current, one.service, { timeoutMs: 1_000 })).toBe('unavailable')
      expect(await one.get(name, any)).toBe('A/0=1')
      const refused = one.refused({ ...name, refKey: 1 }, 2, one.service, { timeoutMs: 1_000 })
      expect(await refused).toMatch(/^(unknown-outcome|unavailable)$/)
    },
  )

  test('a service that has ended answers each operation with the problem closed', async () => {
    const one = await ownStory()
    const { service, datastore, place } = one
    const name = { rowKey: newRowKey(), column: 'A', refKey: 0 }
    await one.put(name, 1)
    const read = { datastore, read: current }
    const wait = { kind: 'log', ...read, limit: 1, waitMs: 60_000 } as const
    const shard = one.shardOf(name.rowKey)
    const startMicros = place.footing.clock.wallMicros()
    const waiting = service.execute(
      { ...wait, items: [{ kind: 'after', shard, addedId: 1 }] },
      { timeoutMs: 65_000 },
    )
    await one.passMs(50)
    await place.footing.settled(place.close())
    // A call that waits ends with the pages that it found, or with the same problem.
    expect(['log', 'closed']).toContain(problemOf(await place.footing.settled(waiting)))
    expect(place.footing.clock.wallMicros() - startMicros).toBeLessThan(30_000_000)
    const get = { kind: 'get', ...read, items: [name] } as const
    for (const operation of [
      ...[get, { kind: 'row', ...read, rowKey: name.rowKey, limit: 1 } as const],
      { kind: 'put', datastore, items: [{ ...name, body: packed(1) }] } as const,
    ]) {
      expect(problemOf(await one.ask(operation))).toBe('closed')
      expect(service.answerNow?.(operation)).toBeUndefined()
    }
  })
}
