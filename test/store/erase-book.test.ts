/** Deletions gather in rounds, are kept with the batch, and are forgotten only when their bytes are gone. */
import { expect, test } from 'vitest'
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { EraseBook, roundGroupsMax, type BookStore } from '../../src/store/erase-book.ts'
import type { Range } from '../../src/ports/storage.ts'
import type { OverlayRow, TakenGroup } from '../../src/store/overlay.ts'

class FakeStore implements BookStore {
  readonly names = new Map<string, Uint8Array>()
  readonly keys = new Set<string>()

  meta(name: string): Uint8Array | undefined {
    return this.names.get(name)
  }

  setMeta(name: string, value: Uint8Array): void {
    this.names.set(name, value)
  }

  setRow(key: Uint8Array): void {
    this.keys.add(latin1(key))
  }

  dropRow(key: Uint8Array): void {
    this.keys.delete(latin1(key))
  }

  async rows({ gte, lt }: Range): Promise<readonly { readonly key: Uint8Array }[]> {
    const [from, to] = [gte && latin1(gte), lt && latin1(lt)]
    const isIn = (key: string): boolean => key >= (from ?? '') && (to === undefined || key < to)
    return [...this.keys].filter(isIn).map((key) => ({ key: fromLatin1(key) }))
  }
}

function groupOf(name: string): GroupId {
  return groupOfBytes(Buffer.from(name))
}

/** Versions of one row, the newest first; undefined: it is deleted. */
function rowOf(...values: readonly (string | undefined)[]): OverlayRow {
  const [newest, ...before] = values
  const key = Buffer.from('k')
  return {
    ...{ key, text: latin1(key), position: 1, timestamp: 1, isNew: false },
    value: newest === undefined ? undefined : Buffer.from(newest),
    previous: before.length === 0 ? undefined : rowOf(...before),
  }
}

function taken(name: string, rows: readonly OverlayRow[], isSnapshot = false): TakenGroup {
  const state = new Uint8Array()
  const place = { group: groupOf(name), position: 1, state, horizonBefore: 0, horizon: 0 }
  return { ...place, rows, isSnapshot }
}

test('ERASE-2: a start finds the rounds and groups of all deletions, snapshots included', async () => {
  const store = new FakeStore()
  const book = await EraseBook.open(store)
  book.onBatch([taken('written', [rowOf('new', 'old')])], 5)
  expect(book.rounds, 'ERASE-3: nothing is deleted').toEqual([])
  book.onBatch(
    [taken('deleted', [rowOf(undefined, 'old')]), taken('back', [rowOf('new', undefined)])],
    10,
  )
  book.onBatch([taken('taken', [], true)], 20)
  expect((await EraseBook.open(store)).rounds).toEqual(book.rounds)
  expect(book.rounds).toMatchObject([{ number: 1, openedAtMs: 10, closedAtMs: 0, isAll: false }])
  expect([...(book.rounds[0]?.groups ?? [])]).toEqual(['deleted', 'back', 'taken'].map(groupOf))
  book.close(30)
  book.onBatch([taken('later', [rowOf(undefined)])], 40)
  const again = await EraseBook.open(store)
  expect(again.rounds).toEqual(book.rounds)
  expect(again.closed?.number).toBe(1)
  again.onErased()
  const last = await EraseBook.open(store)
  expect(last.rounds).toMatchObject([{ number: 2, openedAtMs: 40, closedAtMs: 0 }])
  expect([...(last.rounds[0]?.groups ?? [])]).toEqual([groupOf('later')])
  expect(store.keys.size).toBe(1)
})

test('a round of more groups than it names stands for all', async () => {
  const store = new FakeStore()
  const book = await EraseBook.open(store)
  for (let number = 0; number <= roundGroupsMax; number++) {
    book.onBatch([taken(`group ${number}`, [rowOf(undefined)])], 1)
  }
  expect(book.rounds).toMatchObject([{ isAll: true }])
  expect(store.keys.size).toBe(roundGroupsMax)
  expect((await EraseBook.open(store)).rounds).toMatchObject([{ isAll: true }])
  book.close(2)
  book.onErased()
  expect(store.keys.size).toBe(0)
})

test('a record that is not whole, or of a later format, is refused', async () => {
  const store = new FakeStore()
  store.setMeta('erase', Uint8Array.of(0x91, 2))
  await expect(EraseBook.open(store)).rejects.toMatchObject({ code: 'invalid' })
  store.setMeta('erase', Uint8Array.of(0x92, 1, 2))
  await expect(EraseBook.open(store)).rejects.toMatchObject({ code: 'corrupt' })
})
