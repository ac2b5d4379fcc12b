/** The promises of the group port about commits: see `group-port.ts`. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareText, latin1 } from '../../src/base/bytes.ts'
import { keyBytesMax, transactionBytesMax } from '../../src/base/limits.ts'
import type { Outcome, Submission } from '../../src/group/replica-port.ts'
import { current, type GroupStory } from './group-story.ts'
import {
  bytesOf,
  committedOf,
  mutationsOf,
  rangeOf,
  textsOf,
  timeoutMs,
  type Committed,
} from './submissions.ts'

function send(one: GroupStory, submission: Submission, port = one.place.port): Promise<Outcome> {
  return one.place.settled(port.commit(submission, timeoutMs))
}

export function describeCommits(story: () => GroupStory): void {
  describeConflicts(story)
  describeIntents(story)

  test('LOG-2: numbers rise by one for each counter, and are filled in where rows ask for them', async () => {
    const one = story()
    const slots = [
      { allocation: 1, at: 'key', offset: 1 },
      { allocation: 0, at: 'value', offset: 0 },
    ] as const
    const numbered = [{ key: bytesOf('k........'), value: bytesOf('........'), slots }]
    const change = { allocations: [7, 7, 8], mutations: numbered }
    expect((await one.commit([], change)).sequences).toEqual([1, 2, 1])
    expect((await one.commit([], { ...change, attempt: 5 })).sequences).toEqual([3, 4, 2])
    const zeros = '\0'.repeat(7)
    expect(await one.now()).toBe(`k${zeros}\u0002=${zeros}\u0001 k${zeros}\u0004=${zeros}\u0003`)
  })

  test('of two writes of a key in one commit the later one counts', async () => {
    const one = story()
    await one.commit(['a=1', 'b=1', 'a', 'b=2', 'c', 'c=3'])
    expect(await one.now()).toBe('b=2 c=3')
  })

  test('what exceeds a bound is too large, the limit is named, and nothing happens', async () => {
    const one = story()
    const excesses: readonly (readonly [string, Partial<Submission>])[] = [
      ['keyBytesMax', { reads: [Buffer.alloc(keyBytesMax + 1)] }],
      ['keyBytesMax', { mutations: [{ key: Buffer.alloc(keyBytesMax + 1) }] }],
      ['rangeEndBytesMax', { ranges: [{ gte: bytesOf('a'), lt: Buffer.alloc(keyBytesMax + 2) }] }],
      [
        'transactionBytesMax',
        { mutations: [{ key: bytesOf('a'), value: Buffer.alloc(transactionBytesMax) }] },
      ],
    ]
    for (const [limit, change] of excesses) {
      await expect(send(one, one.submission(['b=1'], change))).rejects.toMatchObject({
        ...{ code: 'too-large', detail: { limit } },
      })
    }
    expect(await one.view(current)).toMatchObject({ position: 0 })
    const largest = Buffer.alloc(keyBytesMax, 'k')
    await one.commit([], { mutations: [{ key: largest, value: bytesOf('v') }] })
    expect(await one.now()).toBe(`${latin1(largest)}=v`)
  })

  test('TXN-1: of callers that count on what they read none loses what another one counted', async () => {
    const one = story()
    const { port, other, settled } = one.place
    await one.commit(['n=0'])
    const increment = async (nth: number): Promise<number> => {
      const way = nth % 2 === 0 ? port : other
      for (let attempt = 1; ; attempt++) {
        const view = await way.view(one.group, current, timeoutMs)
        const rows = await way.get(one.group, view, [bytesOf('n')], timeoutMs)
        const next = Number(textsOf(rows).slice(2)) + 1
        const read = { attempt, readPosition: view.position, reads: [bytesOf('n')] }
        const outcome = await way.commit(one.submission([`n=${next}`], read), timeoutMs)
        if (outcome.kind === 'committed') return next
        expect(outcome.kind).toBe('conflict')
      }
    }
    const all = Promise.all(Array.from({ length: 12 }, (_, nth) => increment(nth)))
    const counted = (await settled(all)).toSorted((a, b) => a - b)
    expect(counted).toEqual(Array.from({ length: 12 }, (_, nth) => nth + 1))
    expect(await one.now()).toBe('n=12')
  })

  test('commits at once all take effect, and their timestamps are in the order of their positions', async () => {
    const one = story()
    const { port, other, settled } = one.place
    const keys = Array.from({ length: 40 }, (_, nth) => `k${String(nth).padStart(2, '0')}`)
    const sent = keys.map((key, nth) =>
      (nth % 2 === 0 ? port : other).commit(one.submission([`${key}=`]), timeoutMs),
    )
    const done = (await settled(Promise.all(sent))).map(committedOf)
    const ordered = done.toSorted((a, b) => a.position - b.position)
    for (const [nth, { position, timestamp }] of ordered.slice(1).entries()) {
      const before = ordered[nth]
      if (before?.position === position) expect(timestamp).toBe(before.timestamp)
      else expect(timestamp).toBeGreaterThan(before?.timestamp ?? 0)
    }
    expect(await one.now()).toBe(keys.map((key) => `${key}=`).join(' '))
  })

  test('TXN-1: drawn reads and commits go as with a list of states', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(someStep, { maxLength: 12 }), async (steps) => {
        const one = story()
        const model = new Model()
        for (const step of steps) await check(one, model, step)
        expect(await one.now()).toBe(model.rows(model.states.length - 1))
      }),
      { numRuns: 15 },
    )
  })
}

function describeConflicts(story: () => GroupStory): void {
  test('TXN-1: a key that was written since its read is a conflict, which names the last write', async () => {
    const one = story()
    await one.commit(['a=1'])
    const { position: readPosition } = await one.view(current)
    await one.commit(['a=2'])
    const last = one.submission(['b=1', 'c'])
    const { position } = committedOf(await send(one, last))
    const { session, sequence } = last.intent
    const reads: readonly (readonly [string[], Partial<Outcome>])[] = [
      [['a'], { position: position - 1, key: bytesOf('a') }],
      // Neither was there when it was read; the second one is not there now.
      [['b'], { position, key: bytesOf('b'), by: { session, sequence } }],
      [['c'], { position, key: bytesOf('c'), by: { session, sequence } }],
      [['x', 'a', 'b'], { position, key: bytesOf('b'), by: { session, sequence } }],
    ]
    for (const [keys, named] of reads) {
      const read = { readPosition, reads: keys.map(bytesOf) }
      const outcome = await send(one, one.submission(['d=1'], read))
      expect(plain(outcome)).toEqual(plain({ by: expect.anything(), ...named, kind: 'conflict' }))
    }
    expect(await one.now()).toBe('a=2 b=1')
  })

  test('TXN-2: a range that was written into since its read is a conflict', async () => {
    const one = story()
    await one.commit(['a=1', 'm=1'])
    const { position: readPosition } = await one.view(current)
    const last = one.submission(['g=1', 'm'])
    const { position } = committedOf(await send(one, last))
    const { session, sequence } = last.intent
    const by = { session, sequence }
    for (const [ranges, key] of [
      [[rangeOf('b', 'h')], 'g'],
      [[rangeOf('g', 'h')], 'g'],
      [[rangeOf('x', 'z'), rangeOf('h', 'n')], 'm'],
    ] as const) {
      const outcome = await send(one, one.submission(['d=1'], { readPosition, ranges }))
      expect(plain(outcome)).toEqual(plain({ kind: 'conflict', position, key: bytesOf(key), by }))
    }
    for (const ranges of [[rangeOf('a', 'g')], [rangeOf('h', 'm'), rangeOf('n', 'z')], []]) {
      const outcome = await send(one, one.submission(['e=1'], { readPosition, ranges }))
      expect(outcome.kind).toBe('committed')
    }
    expect(await one.now()).toBe('a=1 e=1 g=1')
  })

  test('TXN-1: what was read and not written since is no conflict, nor is a write without a read', async () => {
    const one = story()
    await one.commit(['a=1', 'b=1'])
    const { position: readPosition } = await one.view(current)
    await one.commit(['a=2'])
    expect(await one.commit(['a=3'], { readPosition })).toMatchObject({ position: 3 })
    const read = { readPosition, reads: ['b', 'x'].map(bytesOf), ranges: [rangeOf('b', 'c')] }
    expect(await one.commit(['a=4'], read)).toMatchObject({ position: 4 })
    expect(await one.now()).toBe('a=4 b=1')
  })

  test('TXN-1: a read that is ahead of all commits never takes effect', async () => {
    const one = story()
    await one.commit(['a=1'])
    const ahead = { readPosition: 100, reads: [bytesOf('a')] }
    const outcome = await send(one, one.submission(['a=2'], ahead))
    expect(['conflict', 'unknown']).toContain(outcome.kind)
    expect(await one.now()).toBe('a=1')
  })
}

function describeIntents(story: () => GroupStory): void {
  test('LOG-3: an intent takes effect once, and each copy and attempt is told of the first', async () => {
    const one = story()
    const { port, other } = one.place
    const sent = one.submission(['a=1'], { attempt: 3, allocations: [1] })
    const first = committedOf(await send(one, sent))
    expect(first).toMatchObject({ attempt: 3, sequences: [1] })
    await one.commit(['a=2'])
    const again = { ...sent, attempt: 4, mutations: mutationsOf(['a=3']) }
    for (const way of [port, other]) {
      expect(await send(one, sent, way)).toEqual(first)
      expect(await send(one, again, way)).toEqual(first)
    }
    expect(await one.now()).toBe('a=2')
  })

  test('LOG-3: copies at once take effect once', async () => {
    const one = story()
    const { port, other, settled } = one.place
    const sent = one.submission(['a=1'], { allocations: [1] })
    const copies = [port, other, port, other].map((way) => way.commit(sent, timeoutMs))
    const [first, ...others] = await settled(Promise.all(copies))
    expect(first).toMatchObject({ kind: 'committed', sequences: [1] })
    for (const copy of others) expect(copy).toEqual(first)
    expect((await one.commit(['b='], { allocations: [1] })).sequences).toEqual([2])
  })

  test('LOG-3: a copy below the floor of its session is expired', async () => {
    const one = story()
    const first = one.submission(['a=1'])
    const second = one.submission(['a=2'])
    committedOf(await send(one, first))
    await one.commit(['a=3'], { intent: one.intent(3, { floor: 3 }) })
    for (const late of [first, second]) expect(await send(one, late)).toEqual({ kind: 'expired' })
    expect(await one.now()).toBe('a=3')
  })

  test('LOG-3: an intent whose time has passed never takes effect', async () => {
    const one = story()
    const { timestamp: expiresAt } = await one.commit(['a=1'])
    const late = one.submission(['a=2'], { intent: one.intent(2, { expiresAt }) })
    expect(await send(one, late)).toEqual({ kind: 'expired' })
    expect(await send(one, late, one.place.other)).toEqual({ kind: 'expired' })
    expect(await one.now()).toBe('a=1')
  })
}

/** With texts for bytes: a `Buffer` and a `Uint8Array` of the same bytes are the same key. */
function plain(outcome: object): object {
  const key: unknown = Reflect.get(outcome, 'key')
  return { ...outcome, key: key instanceof Uint8Array ? latin1(key) : key }
}

type Step =
  | { readonly kind: 'read'; readonly back: number; readonly keys: readonly string[] }
  | {
      readonly kind: 'commit'
      readonly writes: readonly string[]
      /** States before the newest one that were committed since the reads. */
      readonly back: number
      readonly reads: readonly string[]
      readonly range: readonly [string, string] | undefined
    }

/** Few keys, so that they meet. */
const someKey = fc.constantFrom('a', 'b', 'ba', 'c', 'd')
const someWrite = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(someKey, fc.nat(9)).map(([key, n]) => `${key}=${n}`) },
  { weight: 1, arbitrary: someKey },
)
const someStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('read' as const),
    back: fc.nat(4),
    keys: fc.array(someKey, { maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant('commit' as const),
    writes: fc.array(someWrite, { minLength: 1, maxLength: 3 }),
    back: fc.nat(3),
    reads: fc.array(someKey, { maxLength: 2 }),
    range: fc.option(fc.tuple(someKey, someKey), { nil: undefined }),
  }),
)

/** Every state of a group, by position. */
class Model {
  readonly states: Map<string, string>[] = [new Map()]
  readonly commits: { readonly timestamp: number; readonly keys: readonly string[] }[] = []

  commit(writes: readonly string[], { timestamp }: Committed): void {
    const state = new Map(this.states.at(-1))
    for (const write of writes) {
      const [key = '', value] = write.split('=')
      if (value === undefined) state.delete(key)
      else state.set(key, value)
    }
    this.states.push(state)
    this.commits.push({ timestamp, keys: writes.map((write) => write.split('=')[0] ?? '') })
  }

  get(position: number, keys: readonly string[]): string {
    return keys
      .map((key) => {
        const value = this.states[position]?.get(key)
        return value === undefined ? 'none' : `${key}=${value}`
      })
      .join(' ')
  }

  rows(position: number): string {
    const keys = [...(this.states[position]?.keys() ?? [])].sort(compareText)
    return this.get(position, keys)
  }

  /** The last position after `readPosition` that wrote what was read; undefined: there is none. */
  conflict(
    readPosition: number,
    { reads, range: [gte, lt] = ['', ''] }: Step & { readonly kind: 'commit' },
  ): number | undefined {
    const isRead = (key: string): boolean => reads.includes(key) || (key >= gte && key < lt)
    const last = this.commits.findLastIndex(({ keys }) => keys.some(isRead)) + 1
    return last > readPosition ? last : undefined
  }
}

async function check(one: GroupStory, model: Model, step: Step): Promise<void> {
  const newest = model.states.length - 1
  const position = Math.max(0, newest - step.back)
  if (step.kind === 'read') {
    const timestamp = model.commits[position - 1]?.timestamp ?? 0
    const port = step.back % 2 === 0 ? one.place.port : one.place.other
    const view = await one.view({ kind: 'at', timestamp }, port)
    expect(await one.get(view, step.keys, port)).toBe(model.get(position, step.keys))
    expect(await one.rows(view, port)).toBe(model.rows(position))
    return
  }
  const { writes, reads, range } = step
  const conflict = model.conflict(position, step)
  const read = {
    readPosition: position,
    reads: reads.map(bytesOf),
    ranges: range === undefined ? [] : [rangeOf(...range)],
  }
  const outcome = await send(one, one.submission(writes, read))
  if (conflict !== undefined) {
    expect(outcome).toMatchObject({ kind: 'conflict', position: conflict })
    return
  }
  expect(outcome).toMatchObject({ kind: 'committed', position: newest + 1 })
  model.commit(writes, committedOf(outcome))
}
