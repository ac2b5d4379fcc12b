/**
 * The promises of every journal (`src/ports/journal.ts`), as a suite over a way to open one. LevelDB, segment files and
 * both simulated disks are held to the same claims.
 */
import { randomBytes } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AssertionError } from '../../src/base/assert.ts'
import type { Journal, JournalRecord } from '../../src/ports/journal.ts'
import {
  appendAll,
  bytesOf,
  checkTwice,
  flushOf,
  flushesIn,
  openAt,
  recordOf,
  textOf,
  type JournalPlace,
  type Opened,
} from './journal-kit.ts'

export function journalContract(name: string, makePlace: () => Promise<JournalPlace>): void {
  const openJournal = async (): Promise<Opened> => openAt(await makePlace())

  describe(name, () => {
    test('a new journal is empty', async () => {
      await checkTwice(await openJournal(), async (journal) => {
        expect(journal.lost).toBeUndefined()
        expect(journal.record('meta')).toBeUndefined()
        expect(journal.read(1)).toBeUndefined()
        expect(await journal.last()).toBe(0)
        expect((await flushesIn(journal)).size).toBe(0)
      })
    })

    test('flushes and records are there, and still there when the journal is opened again', async () => {
      const opened = await openJournal()
      const { journal } = opened
      await journal.append(flushOf(1), [recordOf('meta', 'a'), recordOf('peers', 'b')])
      await journal.append(flushOf(2))
      await journal.checkpoint([recordOf('peers', 'c')])
      await checkTwice(opened, async (again) => {
        expect(textOf(again.read(1))).toBe('flush 1')
        expect(textOf(again.read(2))).toBe('flush 2')
        expect(again.read(0)).toBeUndefined()
        expect(again.read(3)).toBeUndefined()
        expect(textOf(again.record('meta'))).toBe('a')
        expect(textOf(again.record('peers'))).toBe('c')
        expect(again.record('pee')).toBeUndefined()
        expect(await again.last()).toBe(2)
      })
    })

    test('flushes that are given up can be erased, and all others stay', async () => {
      const opened = await openJournal()
      const { journal } = opened
      await appendAll(journal, 1, 40)
      journal.separate?.()
      await appendAll(journal, 41, 41)
      await journal.drop(41)
      let number = 41
      for (let tries = 0; tries < 5 && (await journal.erased?.()) === false; tries++) {
        number += 1
        await journal.append(flushOf(number))
      }
      expect((await journal.erased?.()) ?? true).toBe(true)
      await checkTwice(opened, async (again) => {
        expect([...(await flushesIn(again)).keys()].at(0)).toBe(41)
        expect(await again.last()).toBe(number)
        expect(textOf(again.read(41))).toBe('flush 41')
      })
    })

    test('the names of all records are known', async () => {
      const opened = await openJournal()
      expect(await opened.journal.recordNames()).toEqual([])
      await opened.journal.append(flushOf(1), [recordOf('meta', 'a'), recordOf('zeal', 'b')])
      await opened.journal.checkpoint([recordOf('a', 'c'), recordOf('meta', 'd')])
      await checkTwice(opened, async (journal) => {
        expect((await journal.recordNames()).toSorted()).toEqual(['a', 'meta', 'zeal'])
      })
    })

    test('many flushes and records are written at once, and the first may have any number', async () => {
      const opened = await openJournal()
      const write = (from: number, to: number, text: string): Promise<void> => {
        const flushes = Array.from({ length: to - from + 1 }, (_, at) => flushOf(from + at))
        return opened.journal.write({ flushes, records: [recordOf('meta', text)] })
      }
      await write(41, 940, 'a')
      await write(941, 941, 'b')
      await checkTwice(opened, async (journal) => {
        expect([...(await flushesIn(journal)).keys()].length).toBe(901)
        expect(textOf(journal.read(41))).toBe('flush 41')
        expect(textOf(journal.read(941))).toBe('flush 941')
        expect(await journal.last()).toBe(941)
        expect(textOf(journal.record('meta'))).toBe('b')
      })
    })

    test('a scan gives the flushes from a number on, in order', async () => {
      const opened = await openJournal()
      await appendAll(opened.journal, 1, 300)
      await checkTwice(opened, async (journal) => {
        expect((await flushesIn(journal)).size).toBe(300)
        expect([...(await flushesIn(journal, 298)).values()]).toEqual(
          [298, 299, 300].map((one) => `flush ${one}`),
        )
        expect((await flushesIn(journal, 301)).size).toBe(0)
      })
    })

    test('a scan gives the flushes as of its call, whatever is written meanwhile', async () => {
      const { journal } = await openJournal()
      await appendAll(journal, 1, 3)
      const scan = journal.scan(2)
      await appendAll(journal, 4, 5)
      const numbers: number[] = []
      for await (const flushes of scan) numbers.push(...flushes.map((flush) => flush.number))
      expect(numbers).toEqual([2, 3])
    })

    test('a scan that is left early, or never begun, does not keep the journal from closing', async () => {
      const { journal, reopen } = await openJournal()
      await appendAll(journal, 1, 50)
      const late = journal.scan(1)
      for await (const [first] of journal.scan(1)) {
        expect(first?.number).toBe(1)
        break
      }
      expect((await flushesIn(await reopen())).size).toBe(50)
      await expect(late[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'closed' })
    })

    test('an empty flush and an empty record are not absent ones', async () => {
      const opened = await openJournal()
      await opened.journal.append(flushOf(1, ''), [recordOf('meta', '')])
      await checkTwice(opened, async (journal) => {
        expect(journal.read(1)).toHaveLength(0)
        expect(journal.record('meta')).toHaveLength(0)
        expect([...(await flushesIn(journal))]).toEqual([[1, '']])
      })
    })

    test('flushes of a byte to some megabytes come back whole', async () => {
      const opened = await openJournal()
      const lengths = [1, 70, 500, 4096, 65_537, 3_000_000, 9, 200_000]
      const contents = lengths.map((length, at) => Buffer.alloc(length, `content ${at}`))
      for (const [at, bytes] of contents.entries()) {
        await opened.journal.append({ number: at + 1, bytes }, [recordOf('at', String(at))])
      }
      await checkTwice(opened, async (journal) => {
        for (const [at, bytes] of contents.entries()) {
          expect(bytes.equals(journal.read(at + 1) ?? Buffer.alloc(0))).toBe(true)
        }
        expect([...(await flushesIn(journal)).values()].map((text) => text.length)).toEqual(lengths)
        expect(textOf(journal.record('at'))).toBe('7')
      })
    })

    test('bytes that were given out, or written, belong to the caller', async () => {
      const { journal } = await openJournal()
      const [bytes, value] = [bytesOf('flush'), bytesOf('record')]
      await journal.append({ number: 1, bytes }, [{ name: 'meta', value }])
      bytes.fill(0)
      value.fill(0)
      journal.read(1)?.fill(0)
      journal.record('meta')?.fill(0)
      for await (const flushes of journal.scan(1)) flushes[0]?.bytes.fill(0)
      expect(textOf(journal.read(1))).toBe('flush')
      expect(textOf(journal.record('meta'))).toBe('record')
    })

    test('a write under way is read whole or not at all, and is read whole once it resolves', async () => {
      const { journal } = await openJournal()
      await journal.append(flushOf(1), [recordOf('meta', 'old')])
      const written = journal.append(flushOf(2), [recordOf('meta', 'new')])
      expect([undefined, 'flush 2']).toContain(textOf(journal.read(2)))
      expect(['old', 'new']).toContain(textOf(journal.record('meta')))
      await written
      expect([textOf(journal.read(2)), textOf(journal.record('meta'))]).toEqual(['flush 2', 'new'])
    })

    test('a second write before the first has resolved is a bug of the caller', async () => {
      const { journal } = await openJournal()
      const first = journal.append(flushOf(1))
      expect(() => journal.append(flushOf(2))).toThrow(AssertionError)
      await first
      await journal.append(flushOf(2))
      expect(await journal.last()).toBe(2)
    })

    test('a drop keeps the flushes from its number on, and all records', async () => {
      const opened = await openJournal()
      const { journal } = opened
      await journal.append(flushOf(1), [recordOf('meta', 'kept')])
      await appendAll(journal, 2, 200)
      await journal.drop(150)
      await appendAll(journal, 201, 400)
      await journal.drop(350)
      await appendAll(journal, 401, 420)
      await checkTwice(opened, async (again) => {
        await again.drop(350)
        const found = await flushesIn(again, 350)
        expect([...found.keys()]).toEqual(Array.from({ length: 71 }, (_, at) => 350 + at))
        expect(textOf(again.read(350))).toBe('flush 350')
        expect(textOf(again.record('meta'))).toBe('kept')
        expect(await again.last()).toBe(420)
      })
    })

    test('the size of flushes is that of the disk', async () => {
      const opened = await openJournal()
      const bytes = randomBytes(100_000)
      for (let number = 1; number <= 10; number++) await opened.journal.append({ number, bytes })
      const journal = await opened.reopen()
      const all = await journal.sizeOf(1, 10)
      expect(all).toBeGreaterThan(900_000)
      expect(all).toBeLessThan(1_200_000)
      expect(await journal.sizeOf(6, 10)).toBeLessThan(0.7 * all)
      expect(await journal.sizeOf(11, 20)).toBeLessThan(0.1 * all)
    })

    test('a closed journal answers nothing, says so, and may be closed once more', async () => {
      const { journal } = await openJournal()
      await journal.append(flushOf(1))
      await journal.close()
      await journal.close()
      expect(() => journal.read(1)).toThrow(/is closed/)
      expect(() => journal.record('meta')).toThrow(/is closed/)
      await expect(journal.append(flushOf(2))).rejects.toMatchObject({ code: 'closed' })
      await expect(journal.checkpoint([])).rejects.toMatchObject({ code: 'closed' })
      await expect(journal.last()).rejects.toMatchObject({ code: 'closed' })
      await expect(flushesIn(journal)).rejects.toMatchObject({ code: 'closed' })
    })

    test('closing waits for the write that is under way', async () => {
      const { journal, reopen } = await openJournal()
      const outcome = journal.append(flushOf(1)).then(() => 'written')
      const again = await reopen()
      expect(await outcome).toBe('written')
      expect(textOf(again.read(1))).toBe('flush 1')
    })

    test('a check of a sound journal finds nothing, and tells how far it is', async () => {
      const { journal, reopen } = await openJournal()
      await appendAll(journal, 1, 100)
      const again = await reopen()
      await appendAll(again, 101, 120)
      const parts: number[] = []
      const pace = {
        bytesPerSecond: () => 100_000_000,
        isOver: () => false,
        onProgress: (_: number, part: number) => parts.push(part),
      }
      await again.check()
      await again.check(pace)
      if (parts.length > 0) expect(parts.at(-1)).toBe(1)
      expect(parts).toEqual(parts.toSorted((one, other) => one - other))
    })

    test('any sequence of writes, drops, reopenings and crashes goes as with a plain list', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
          const place = await makePlace()
          const run = new Run(place)
          try {
            await run.start()
            for (const one of steps) await run.do(one)
            await run.check()
          } finally {
            await run.end()
            await place.remove()
          }
        }),
        { numRuns: 40 },
      )
    })
  })
}

export type Step =
  | { readonly kind: 'append'; readonly length: number; readonly records: readonly string[] }
  | { readonly kind: 'checkpoint'; readonly records: readonly string[] }
  | { readonly kind: 'drop'; readonly share: number }
  | { readonly kind: 'reopen' }
  | { readonly kind: 'crash'; readonly draw: number; readonly length: number }

const someNames = fc.uniqueArray(fc.constantFrom('meta', 'peers', 'damages'), { maxLength: 3 })
const someLength = fc.oneof(
  { weight: 6, arbitrary: fc.nat({ max: 400 }) },
  { weight: 2, arbitrary: fc.nat({ max: 3000 }) },
  { weight: 1, arbitrary: fc.nat({ max: 20_000 }) },
)
const someDraw = fc.nat({ max: 2 ** 30 - 1 })
export const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      length: someLength,
      records: someNames,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('checkpoint' as const), records: someNames }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('drop' as const), share: fc.nat({ max: 100 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('crash' as const),
      draw: someDraw,
      length: someLength,
    }),
  },
)

/** A journal beside the plainest one there is: a map of flushes and a map of records. */
export class Run {
  readonly #place: JournalPlace
  #journal: Journal | undefined
  readonly flushes: Map<number, string> = new Map()
  readonly records: Map<string, string> = new Map()
  #last = 0
  #droppedBelow = 0
  #writes = 0

  constructor(place: JournalPlace) {
    this.#place = place
  }

  async start(): Promise<void> {
    this.#journal = await this.#place.open()
  }

  async end(): Promise<void> {
    await this.journal.close()
  }

  get journal(): Journal {
    if (this.#journal === undefined) throw new Error('not started')
    return this.#journal
  }

  async do(one: Step): Promise<void> {
    switch (one.kind) {
      case 'append': {
        const write = this.#draw(one.length, one.records)
        await this.journal.append(flushOf(write.number, write.text), write.records)
        this.#take(write)
        break
      }
      case 'checkpoint': {
        const { records } = this.#draw(0, one.records)
        await this.journal.checkpoint(records)
        this.#takeRecords(records)
        break
      }
      case 'drop':
        await this.#drop(Math.floor((this.#last * one.share) / 100))
        break
      case 'reopen':
        await this.journal.close()
        await this.#openAgain()
        break
      case 'crash':
        await this.#crash(one.draw, one.length)
        break
    }
    await this.checkSome()
  }

  #draw(length: number, names: readonly string[]): Write {
    this.#writes += 1
    const text = `${this.#writes} `.padEnd(length, `${this.#writes},`)
    const records = names.map((name) => recordOf(name, `${name} ${this.#writes}`))
    return { number: this.#last + 1, text, records }
  }

  #take({ number, text, records }: Write): void {
    this.flushes.set(number, text)
    this.#last = number
    this.#takeRecords(records)
  }

  #takeRecords(records: readonly JournalRecord[]): void {
    for (const { name, value } of records) this.records.set(name, Buffer.from(value).toString())
  }

  async #drop(first: number): Promise<void> {
    if (first < 1) return
    this.#droppedBelow = Math.max(this.#droppedBelow, first)
    await this.journal.drop(first)
  }

  async #openAgain(): Promise<void> {
    this.#journal = await this.#place.open()
    checkSame(this.journal.lost, undefined)
    if (this.#droppedBelow > 0) await this.journal.drop(this.#droppedBelow)
  }

  /** While a write is under way. It is there whole afterwards, or as if it had never been. */
  async #crash(draw: number, length: number): Promise<void> {
    const { crash } = this.#place
    if (crash === undefined) return
    const write = this.#draw(length, draw % 2 === 0 ? ['meta'] : [])
    const outcome = this.journal.append(flushOf(write.number, write.text), write.records)
    outcome.catch(() => undefined)
    for (let turn = draw % 5; turn > 0; turn--)
      await new Promise((resolve) => setImmediate(resolve))
    crash.call(this.#place, draw)
    await this.#openAgain()
    if ((await this.journal.last()) === write.number) this.#take(write)
    await this.check()
  }

  /** The flushes and records that the last steps touched. */
  async checkSome(): Promise<void> {
    checkSame(await this.journal.last(), this.#last)
    if (this.#last > 0)
      checkSame(textOf(this.journal.read(this.#last)), this.flushes.get(this.#last))
    checkSame(this.journal.read(this.#last + 1), undefined)
    for (const name of ['meta', 'peers', 'damages']) {
      checkSame(textOf(this.journal.record(name)), this.records.get(name))
    }
  }

  async check(): Promise<void> {
    await this.checkSome()
    const found = await flushesIn(this.journal)
    for (const [number, text] of found) checkSame(text, this.flushes.get(number))
    for (const [number, text] of this.flushes) {
      if (number < this.#droppedBelow) continue
      checkSame(found.get(number), text)
      checkSame(textOf(this.journal.read(number)), text)
    }
    await this.journal.check()
  }
}

interface Write {
  readonly number: number
  readonly text: string
  readonly records: readonly JournalRecord[]
}

function checkSame(found: unknown, expected: unknown): void {
  expect(found).toBe(expected)
}
