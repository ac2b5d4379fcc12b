/** The promises of shards' logs and of purges: see `cell-service.ts`. */
import { expect, test } from 'vitest'
import type { Answered, GetLog, LogPlace, PurgeCells } from '../../src/cells/operation.ts'
import { current } from '../cells/kit.ts'
import { shardCountOf } from '../../src/cells/datastore-form.ts'
import { newRowKey, textOfCell, type CellStory } from './cell-story.ts'

/** The cells of each page with their numbers, and where to go on. */
function textOfLogs({ answer }: Answered): string {
  if (answer.kind !== 'log') return answer.kind
  const pages = answer.items.map((outcome) => {
    if (outcome.kind === 'problem') return outcome.problem.code
    const { cells, next } = outcome.value
    return [...cells.map((cell) => `${cell.addedId}:${textOfCell(cell)}`), `→ ${next}`].join(' ')
  })
  return pages.join(' | ')
}

function logOf(one: CellStory, items: readonly LogPlace[], limit = 10): GetLog {
  return { kind: 'log', datastore: one.datastore, read: current, items, limit, waitMs: 0 }
}

export function describeCellLogs(story: () => CellStory): void {
  test('CELL-3: a log is read from a place on, in the order of the numbers, page by page', async () => {
    const one = story()
    const rowKey = newRowKey()
    const shard = one.shardOf(rowKey)
    for (const refKey of [8, 4, 6]) await one.put({ rowKey, column: 'A', refKey }, refKey)
    const after = (addedId: number) => ({ kind: 'after', shard, addedId }) as const
    const read = async (items: readonly LogPlace[], limit?: number): Promise<string> =>
      textOfLogs(await one.ask(logOf(one, items, limit), one.other))
    expect(await read([after(0)])).toBe('1:A/8=8 2:A/4=4 3:A/6=6 → 3')
    expect(await read([after(0)], 2)).toBe('1:A/8=8 2:A/4=4 → 2')
    expect(await read([after(2)])).toBe('3:A/6=6 → 3')
    const count = shardCountOf(one.datastore)
    const another = (shard + 1) % count
    const empty = { kind: 'after', shard: another, addedId: 0 } as const
    const none = { kind: 'after', shard: count, addedId: 0 } as const
    expect(await read([empty, after(3), none])).toBe('→ 0 | → 3 | invalid')
    const { createdAt = 0 } = await one.put({ rowKey, column: 'A', refKey: 9 }, 9)
    const since = { kind: 'since', shard } as const
    expect(await read([{ ...since, timestamp: createdAt }])).toBe('4:A/9=9 → 4')
    expect(await read([{ ...since, timestamp: createdAt + 1 }])).toBe('→ 4')
  })

  test('CELL-3: who waits at the end of a log is answered with the next cell, or when the wait ends', async () => {
    const one = story()
    const { footing } = one.place
    const rowKey = newRowKey()
    const shard = one.shardOf(rowKey)
    await one.put({ rowKey, column: 'A', refKey: 1 }, 1)
    const end = { kind: 'after', shard, addedId: 1 } as const
    const wait = { ...logOf(one, [end]), waitMs: 5_000 }
    const waiting = one.service.execute(wait, { timeoutMs: 8_000 })
    await one.passMs(50)
    await one.put({ rowKey, column: 'A', refKey: 2 }, 2, one.other)
    const startMicros = footing.clock.wallMicros()
    expect(textOfLogs(await footing.settled(waiting))).toBe('2:A/2=2 → 2')
    expect(footing.clock.wallMicros() - startMicros).toBeLessThan(4_000_000)
    const last = { kind: 'after', shard, addedId: 2 } as const
    const vain = await one.ask({ ...logOf(one, [last]), waitMs: 50 })
    expect(textOfLogs(vain)).toBe('→ 2')
  })

  test('CELL-7, CELL-8: a purge takes old cells alone, and none of them is written again', async () => {
    const one = story()
    const { datastore } = one
    const rowKey = newRowKey()
    const shard = one.shardOf(rowKey)
    const put = (column: string, refKey: number) => one.put({ rowKey, column, refKey }, refKey)
    for (const refKey of [1, 2, 3]) await put('A', refKey)
    await put('B', 1)
    const { createdAt: before = 0 } = await put('A', 4)
    await put('A', 5)
    const place = { datastore, shard, before, after: 0 }
    const purge: PurgeCells = { kind: 'purge', ...place, keepLatest: true, limit: 100 }
    const first = await one.ask({ ...purge, limit: 2 })
    expect(first.answer).toEqual({ kind: 'purge', purged: 2, next: 2 })
    const rest = await one.ask({ ...purge, after: 2 }, one.other)
    expect(rest.answer).toMatchObject({ kind: 'purge', purged: 1 })
    expect((await one.ask(purge)).answer).toMatchObject({ purged: 0 })
    const whole = { datastore, read: current, rowKey, limit: 10 }
    const versions = { kind: 'versions', ...whole, column: 'A', reverse: false } as const
    expect(await one.page(versions)).toBe('A/4=4 A/5=5')
    expect(await one.get({ rowKey, column: 'B', refKey: 1 })).toBe('B/1=1')
    for (const [refKey, body] of [
      [1, 1],
      [3, 'other'],
      [0, 0],
    ] as const) {
      expect(await one.refused({ rowKey, column: 'A', refKey }, body)).toBe('immutable')
    }
    expect(await one.put({ rowKey, column: 'A', refKey: 4 }, 4)).toMatchObject({ created: false })
  })
}
