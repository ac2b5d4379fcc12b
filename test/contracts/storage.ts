/**
 * The promises of every ordered store (`src/ports/storage.ts`), as a suite over a way to open one. LevelDB
 * and the simulated disk are held to the same claims, so a run in the simulator means something for a node.
 * What a crash leaves behind is not here: only the simulated disk can crash.
 */
import * as fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import { compareBytes } from '../../src/base/bytes.ts'
import type { KeyValue, OrderedStore, Put, Range } from '../../src/ports/storage.ts'

/** A place that keeps what is written to it while stores come and go. */
export interface StorePlace {
  /** Opens the store; the one before has been closed. */
  open(): Promise<OrderedStore>
  remove(): Promise<void>
}

const value = Buffer.from('value')

export function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

export function putOf(key: string, text: string = key): Put {
  return { key: bytesOf(key), value: bytesOf(text) }
}

export async function rowsOf(store: OrderedStore, range: Range = {}): Promise<KeyValue[]> {
  const rows: KeyValue[] = []
  for await (const chunk of store.scan(range)) rows.push(...chunk)
  return rows
}

/** The keys of a range as one text. */
export async function keysOf(store: OrderedStore, range: Range = {}): Promise<string> {
  const rows = await rowsOf(store, range)
  return rows.map(({ key }) => Buffer.from(key).toString('latin1')).join(' ')
}

function textAt(store: OrderedStore, key: string): string | undefined {
  const found = store.getSync(bytesOf(key))
  return found && Buffer.from(found).toString('latin1')
}

interface Opened {
  readonly store: OrderedStore
  /** Closes the store and opens it anew. */
  reopen(): Promise<OrderedStore>
}

/** A check that holds of a store holds again when the store is reopened. */
async function checkTwice(
  { store, reopen }: Opened,
  check: (store: OrderedStore) => Promise<void> | void,
): Promise<void> {
  await check(store)
  await check(await reopen())
}

export function storageContract(name: string, makePlace: () => Promise<StorePlace>): void {
  /** A store on a place of its own, closed and removed after the test. */
  async function openStore(): Promise<Opened> {
    const place = await makePlace()
    let opened = await place.open()
    onTestFinished(async () => {
      await opened.close()
      await place.remove()
    })
    const reopen = async (): Promise<OrderedStore> => {
      await opened.close()
      opened = await place.open()
      return opened
    }
    return { store: opened, reopen }
  }

  describe(name, () => {
    test('a new store is empty', async () => {
      const { store } = await openStore()
      expect(store.getSync(bytesOf('a'))).toBeUndefined()
      expect(await rowsOf(store)).toEqual([])
    })

    test('what was written is there, and still there when the store is opened again', async () => {
      const opened = await openStore()
      await opened.store.write([putOf('a', '1'), putOf('b', '2')])
      await opened.store.write([putOf('b', '3'), { key: bytesOf('a') }])
      await checkTwice(opened, async (store) => {
        expect(textAt(store, 'a')).toBeUndefined()
        expect(textAt(store, 'b')).toBe('3')
        expect(await keysOf(store)).toBe('b')
      })
    })

    test('the puts of one write take effect in their order', async () => {
      const opened = await openStore()
      const gone = { key: bytesOf('gone') }
      const back = { key: bytesOf('back') }
      const puts = [putOf('gone'), gone, back, putOf('back', '1'), putOf('back', '2')]
      await opened.store.write(puts)
      await checkTwice(opened, (store) => {
        expect(textAt(store, 'gone')).toBeUndefined()
        expect(textAt(store, 'back')).toBe('2')
      })
    })

    test('a write of nothing and a deletion of what is not there are writes like others', async () => {
      const { store } = await openStore()
      await store.write([])
      await store.write([{ key: bytesOf('never') }])
      expect(await rowsOf(store)).toEqual([])
    })

    test('rows come in the unsigned order of their bytes, a prefix first', async () => {
      const { store } = await openStore()
      const keys = ['\xff', 'b', '\x00', 'a\x00', '\x7f', 'a', 'aa', '\x80', '\xff\xff', '\x00\x00']
      await store.write(keys.map((key) => putOf(key)))
      const ordered = '\x00 \x00\x00 a a\x00 aa b \x7f \x80 \xff \xff\xff'
      expect(await keysOf(store)).toBe(ordered)
      expect(await keysOf(store, { reverse: true })).toBe(ordered.split(' ').reverse().join(' '))
    })

    test('bounds: gte takes its key in, gt and lt leave theirs out, both lower ones hold', async () => {
      const { store } = await openStore()
      await store.write('abcdef'.split('').map((key) => putOf(key)))
      const [b, c, e] = [bytesOf('b'), bytesOf('c'), bytesOf('e')]
      expect(await keysOf(store, { gte: b })).toBe('b c d e f')
      expect(await keysOf(store, { gt: b })).toBe('c d e f')
      expect(await keysOf(store, { lt: e })).toBe('a b c d')
      expect(await keysOf(store, { gte: b, lt: e })).toBe('b c d')
      expect(await keysOf(store, { gt: b, lt: e })).toBe('c d')
      expect(await keysOf(store, { gte: b, gt: c })).toBe('d e f')
      expect(await keysOf(store, { gte: c, gt: b })).toBe('c d e f')
      expect(await keysOf(store, { gte: c, gt: c })).toBe('d e f')
    })

    test('erasing changes no row, while others are written', async () => {
      const opened = await openStore()
      const { store } = opened
      await store.write('abcdef'.split('').map((key) => putOf(key)))
      await store.write([{ key: bytesOf('b') }, putOf('c', 'new'), { key: bytesOf('e') }])
      const erased = store.erase?.([{ gte: bytesOf('b'), lt: bytesOf('d') }])
      await store.write([putOf('b', 'again'), { key: bytesOf('f') }])
      expect(await erased).toBeUndefined()
      expect(await store.erase?.('all')).toBeUndefined()
      await checkTwice(opened, async (one) => {
        expect(await keysOf(one)).toBe('a b c d')
        expect([textAt(one, 'b'), textAt(one, 'c')]).toEqual(['again', 'new'])
      })
    })

    test('bounds need not be keys, and a range that ends before it begins is empty', async () => {
      const { store } = await openStore()
      await store.write([putOf('b'), putOf('d')])
      expect(await keysOf(store, { gt: bytesOf('a'), lt: bytesOf('c') })).toBe('b')
      expect(await keysOf(store, { gte: bytesOf('b\x00') })).toBe('d')
      expect(await keysOf(store, { gte: bytesOf('d'), lt: bytesOf('b') })).toBe('')
      expect(await keysOf(store, { gte: bytesOf('b'), lt: bytesOf('b') })).toBe('')
      expect(await keysOf(store, { gt: bytesOf('d'), reverse: true })).toBe('')
    })

    test('a limit counts from the end that the scan begins at', async () => {
      const { store } = await openStore()
      await store.write('abcdef'.split('').map((key) => putOf(key)))
      const [b, e] = [bytesOf('b'), bytesOf('e')]
      expect(await keysOf(store, { limit: 2 })).toBe('a b')
      expect(await keysOf(store, { limit: 2, reverse: true })).toBe('f e')
      expect(await keysOf(store, { gt: b, lt: e, limit: 1, reverse: true })).toBe('d')
      expect(await keysOf(store, { gte: b, limit: 100 })).toBe('b c d e f')
      expect(await keysOf(store, { limit: 0 })).toBe('')
    })

    test('a scan shows the store as of its call, whatever is written before and while it is read', async () => {
      const { store } = await openStore()
      await store.write([putOf('a', 'old'), putOf('b', 'old'), putOf('c', 'old')])
      const scan = store.scan({})
      await store.write([putOf('a', 'new'), { key: bytesOf('b') }, putOf('d', 'new')])
      const seen: string[] = []
      for await (const rows of scan) {
        for (const row of rows) {
          seen.push(`${Buffer.from(row.key).toString()} ${Buffer.from(row.value).toString()}`)
          await store.write([putOf('c', 'newer'), putOf(`e${seen.length}`, 'newer')])
        }
      }
      expect(seen).toEqual(['a old', 'b old', 'c old'])
      expect(await keysOf(store)).toBe('a c d e1 e2 e3')
    })

    test('a scan that is left early, or never begun, does not keep the store from closing', async () => {
      const { store, reopen } = await openStore()
      await store.write(Array.from({ length: 1000 }, (_, i) => putOf(`key ${i}`)))
      const late = store.scan({})
      for await (const [first] of store.scan({})) {
        expect(Buffer.from(first?.key ?? []).toString()).toBe('key 0')
        break
      }
      expect((await rowsOf(await reopen())).length).toBe(1000)
      await expect(late[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'closed' })
    })

    test('an empty value is a value, not an absent one', async () => {
      const opened = await openStore()
      await opened.store.write([{ key: bytesOf('a'), value: new Uint8Array() }])
      await checkTwice(opened, async (store) => {
        expect(store.getSync(bytesOf('a'))).toHaveLength(0)
        const [row] = await rowsOf(store)
        expect(row?.value).toHaveLength(0)
      })
    })

    test('keys of 2 KiB and values of 1 MiB come back whole, also many in one scan', async () => {
      const { store, reopen } = await openStore()
      const large = Buffer.alloc(1024 * 1024, 'large value')
      const keys = Array.from({ length: 20 }, (_, i) => Buffer.alloc(2048, 97 + i))
      await store.write(keys.map((key) => ({ key, value: large })))
      const again = await reopen()
      const rows = await rowsOf(again)
      expect(rows.map(({ key }) => key[0])).toEqual(keys.map((key) => key[0]))
      for (const row of rows) expect(large.equals(row.value)).toBe(true)
    })

    test('a scan of many small rows gives each of them once', async () => {
      const { store } = await openStore()
      const names = Array.from({ length: 3000 }, (_, i) => String(i).padStart(5, '0'))
      await store.write(names.map((key) => putOf(key)))
      expect(await keysOf(store)).toBe(names.join(' '))
      expect(await keysOf(store, { reverse: true })).toBe(names.toReversed().join(' '))
    })

    test('bytes belong to whoever has them: changing them changes nothing in the store', async () => {
      const { store } = await openStore()
      const key = Buffer.from('key')
      const content = Buffer.from(value)
      const written = store.write([{ key, value: content }])
      key.fill(0)
      content.fill(0)
      await written
      expect(await keysOf(store)).toBe('key')
      store.getSync(bytesOf('key'))?.fill(0)
      const [row] = await rowsOf(store)
      row?.value.fill(0)
      row?.key.fill(0)
      expect(textAt(store, 'key')).toBe('value')
    })

    test('a read beside a write that is under way sees all of it or nothing', async () => {
      const { store } = await openStore()
      await store.write([putOf('a', 'old'), putOf('b', 'old')])
      const written = store.write([putOf('a', 'new'), putOf('b', 'new')])
      const rows = await rowsOf(store)
      const texts = rows.map((row) => Buffer.from(row.value).toString())
      expect(['old old', 'new new']).toContain(texts.join(' '))
      await written
      expect([textAt(store, 'a'), textAt(store, 'b')]).toEqual(['new', 'new'])
    })

    test('DISK: a second write before the first has resolved is a bug of the caller', async () => {
      const { store } = await openStore()
      const first = store.write([putOf('a')])
      expect(() => store.write([putOf('b')])).toThrow(AssertionError)
      await first
      await store.write([putOf('c')])
      expect(await keysOf(store)).toBe('a c')
    })

    test('a closed store answers nothing, says so, and may be closed once more', async () => {
      const { store } = await openStore()
      await store.write([putOf('a')])
      await store.close()
      await store.close()
      expect(() => store.getSync(bytesOf('a'))).toThrow(/is closed/)
      await expect(store.write([putOf('b')])).rejects.toMatchObject({ code: 'closed' })
      await expect(rowsOf(store)).rejects.toMatchObject({ code: 'closed' })
    })

    test('closing waits for the write that is under way', async () => {
      const { store, reopen } = await openStore()
      const outcome = store.write([putOf('a')]).then(() => 'written')
      const again = await reopen()
      expect(await outcome).toBe('written')
      expect(await keysOf(again)).toBe('a')
    })

    test('any sequence of writes, reopenings and scans goes as with a sorted list', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
          const place = await makePlace()
          let store = await place.open()
          const model = new Model()
          try {
            for (const one of steps) {
              if (one.kind === 'reopen') {
                await store.close()
                store = await place.open()
              } else if (one.kind === 'write') {
                await store.write(one.puts)
                model.write(one.puts)
              } else {
                expect(hexOf(await rowsOf(store, one.range))).toEqual(model.rows(one.range))
              }
              for (const key of one.kind === 'write' ? one.puts.map((put) => put.key) : []) {
                expect(hex(store.getSync(key))).toBe(hex(model.get(key)))
              }
            }
            expect(hexOf(await rowsOf(store))).toEqual(model.rows({}))
          } finally {
            await store.close()
            await place.remove()
          }
        }),
        { numRuns: 60 },
      )
    })
  })
}

type Step =
  | { readonly kind: 'write'; readonly puts: readonly Put[] }
  | { readonly kind: 'scan'; readonly range: Range }
  | { readonly kind: 'reopen' }

/** Few and short keys, so that they meet. */
const someKey = fc
  .array(fc.constantFrom(0, 1, 0x61, 0x7f, 0x80, 0xff), { minLength: 1, maxLength: 3 })
  .map((bytes) => Buffer.from(bytes))
const someValue = fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes))
const somePut: fc.Arbitrary<Put> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ key: someKey, value: someValue }) },
  { weight: 1, arbitrary: fc.record({ key: someKey }) },
)
const someRange: fc.Arbitrary<Range> = fc.record(
  {
    gte: someKey,
    gt: someKey,
    lt: someKey,
    reverse: fc.boolean(),
    limit: fc.nat({ max: 6 }),
  },
  { requiredKeys: [] },
)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      puts: fc.array(somePut, { maxLength: 8 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('scan' as const), range: someRange }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
)

/** The plainest ordered store there is: a list that is filtered and sorted for each question. */
class Model {
  readonly #rows = new Map<string, KeyValue>()

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(hex(key))?.value
  }

  write(puts: readonly Put[]): void {
    for (const { key, value: content } of puts) {
      if (content === undefined) this.#rows.delete(hex(key))
      else this.#rows.set(hex(key), { key, value: content })
    }
  }

  rows({ gte, gt, lt, reverse, limit }: Range): string[] {
    const rows = [...this.#rows.values()]
      .filter(({ key }) => gte === undefined || compareBytes(key, gte) >= 0)
      .filter(({ key }) => gt === undefined || compareBytes(key, gt) > 0)
      .filter(({ key }) => lt === undefined || compareBytes(key, lt) < 0)
      .sort((a, b) => compareBytes(a.key, b.key))
    if (reverse === true) rows.reverse()
    return hexOf(limit === undefined ? rows : rows.slice(0, limit))
  }
}

function hex(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? 'absent' : Buffer.from(bytes).toString('hex')
}

function hexOf(rows: readonly KeyValue[]): string[] {
  return rows.map((row) => `${hex(row.key)}=${hex(row.value)}`)
}
