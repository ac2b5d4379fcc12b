/** Handlers that fail: back-off, who is held up, dead letters, and how they are brought back. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { messageBytesMax, retryMsMax } from '../../src/queues/limits.ts'
import type { Taken } from '../../src/queues/take.ts'
import type { RawTransaction } from '../../src/txn/raw-transaction.ts'
import { bytes, group, Post, textOf } from './post.ts'

/** Fails with what is bad, and notes what it did in the group. */
class Clerk {
  readonly calls: string[][] = []
  readonly times: number[] = []
  readonly #post: Post
  isBad = (body: string): boolean => body.startsWith('bad')

  constructor(post: Post) {
    this.#post = post
  }

  handle = async (transaction: RawTransaction, messages: readonly Taken[]): Promise<void> => {
    const bodies = messages.map(textOf)
    this.calls.push(bodies)
    this.times.push(this.#post.clock.monotonicMs())
    const bad = bodies.find((body) => this.isBad(body))
    if (bad !== undefined) throw new Error(`cannot do ${bad}`)
    const key = bytes('done')
    const before = Buffer.from((await transaction.get(key))?.value ?? []).toString()
    transaction.put(key, bytes([before, ...bodies].filter(Boolean).join(' ')))
  }
}

async function done(post: Post): Promise<string> {
  const { value } = await post.transact(group('r'), async (tx) => tx.get(bytes('done')))
  return Buffer.from(value?.value ?? []).toString()
}

const quick = { attemptsMax: 3, retryMs: 1_000, retryMaxMs: 60_000 }

test('QUE-3: a failing message holds up only those of its sender', async () => {
  const post = new Post()
  const clerk = new Clerk(post)
  for (const [from, body] of [
    ['a', 'a1'],
    ['a', 'bad'],
    ['a', 'a2'],
    ['b', 'b1'],
  ] as const) {
    await post.send(group(from), [{ to: group('r'), body }])
    await post.pass(200)
  }
  post.handle({ ...quick, handle: clerk.handle })
  await post.pass(900)
  expect(await done(post)).toBe('a1 b1')
  // The batch first, then each by itself.
  expect(clerk.calls[0]).toEqual(['a1', 'bad', 'a2', 'b1'])
  expect(clerk.calls.slice(1, 4)).toEqual([['a1'], ['bad'], ['b1']])
  await post.pass(10_000)
  expect(await done(post)).toBe('a1 b1 a2')
})

test('QUE-6: a failure before messages are taken counts against none of them', async () => {
  const post = new Post()
  const clerk = new Clerk(post)
  let failures = 0
  const prepare = async (): Promise<void> => {
    if (failures++ < 3) throw new Error('a schema could not be looked at')
  }
  await post.send(group('a'), [{ to: group('r'), body: 'a1' }])
  const { counts } = post.handle({ ...quick, attemptsMax: 1, prepare, handle: clerk.handle })
  await post.until(() => counts.handled > 0)
  expect(failures).toBeGreaterThan(3)
  expect(counts).toEqual({ handled: 1, failures: 0, dead: 0 })
})

test('QUE-6: after its attempts a message is dead, listed, and handled once when it is redriven', async () => {
  const post = new Post()
  const clerk = new Clerk(post)
  const told: unknown[] = []
  const handling = post.handle({
    ...quick,
    handle: clerk.handle,
    onFailed: (_group, error) => told.push(error),
  })
  await post.send(group('a'), [{ to: group('r'), body: 'bad' }])
  await post.pass(20_000)
  const tries = clerk.calls.filter(([body]) => body === 'bad')
  expect(tries).toHaveLength(3)
  expect(told).toHaveLength(3)
  expect(handling.counts).toEqual({ handled: 0, failures: 3, dead: 1 })
  const letters = post.client.queues.deadLetters('work')
  const [letter] = await post.settle(letters.list(10))
  expect(letter).toMatchObject({
    group: group('r'),
    message: { sender: group('a'), failures: 3, error: 'Error: cannot do bad' },
  })
  const [sum] = await post.settle(post.client.queues.list())
  expect(sum).toMatchObject({ queue: 'work', waiting: { messages: 0 }, dead: { messages: 1 } })

  clerk.isBad = () => false
  expect(await post.settle(letters.redrive(group('r'), [letter?.id ?? 0, 77]))).toBe(1)
  expect(await post.settle(letters.redriveAll())).toBe(0)
  await post.pass(5_000)
  expect(await done(post)).toBe('bad')
  expect(await post.worklistRows(group('r'))).toBe(0)
})

/** Twenty of one group, each as large as a message may be, and one of another group. */
async function withLargeDeadLetters(): Promise<Post> {
  const post = new Post()
  const clerk = new Clerk(post)
  clerk.isBad = () => true
  const handling = post.handle({ ...quick, attemptsMax: 1, batch: 1, handle: clerk.handle })
  for (let i = 0; i < 20; i++) {
    await post.send(group('a'), [{ to: group('r'), body: 'x'.repeat(messageBytesMax) }])
  }
  await post.send(group('a'), [{ to: group('s'), body: 'behind' }])
  await post.until(() => handling.counts.dead === 21)
  await post.settle(handling.stop())
  return post
}

test('QUE-6: dead letters that are too large for one transaction are redriven by several', async () => {
  const post = await withLargeDeadLetters()
  const letters = post.client.queues.deadLetters('work')
  const [first, second] = await post.settle(letters.list(2))
  expect(await post.settle(letters.list(Infinity))).toHaveLength(21)
  expect(await post.settle(letters.of(group('r'), Infinity))).toHaveLength(20)
  const named = [first?.id ?? 0, first?.id ?? 0, 7_777, second?.id ?? 0]
  expect(await post.settle(letters.redrive(group('r'), named))).toBe(2)
  expect(await post.settle(letters.redriveAll())).toBe(19)
  const sums = await post.settle(post.client.queues.list())
  expect(sums).toMatchObject([{ waiting: { messages: 21 }, dead: { messages: 0 } }])
})

test('a redrive that is given up between two of its transactions says that it has written', async () => {
  const post = await withLargeDeadLetters()
  const letters = post.client.queues.deadLetters('work')
  const controller = new AbortController()
  const { frames } = post.cluster
  const begin = frames.length
  const call = letters.redriveAll(undefined, { signal: controller.signal })
  const ended = post.settle(call.catch((error: unknown) => error))
  void post.cluster.bench.world.sleep(0).then(async function look(): Promise<void> {
    const answered = frames
      .slice(begin)
      .flatMap(({ frame }) => (frame.kind === 'responses' ? frame.responses : []))
      .filter(({ answer }) => answer.kind === 'commit-group')
    if (answered.length > 1) controller.abort(new Error('the page was left'))
    else await post.sleep(0.1).then(look)
  })
  const error = await ended
  expect(error).toMatchObject({ code: 'unknown-outcome', retry: 'check-first' })
  expect(error).toMatchObject({ cause: { message: 'the page was left' } })
  const left = (await post.settle(letters.list(Infinity))).length
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(21)
  expect(await post.settle(letters.redriveAll())).toBe(left)
})

test.each([
  [Object.create(null), 'it threw what has no words'],
  [Object.assign(new Error('x'), { message: Symbol('s') }), 'it threw what has no words'],
  [undefined, 'it threw undefined'],
  [new Error('🙂'.repeat(2_000)), `Error: ${'🙂'.repeat(496)}`],
])('QUE-6: whatever a handler throws is a failure with some text: %#', async (thrown, error) => {
  const post = new Post()
  const handled: string[] = []
  const handle = (_: RawTransaction, messages: readonly Taken[]): Promise<void> => {
    const bodies = messages.map(textOf)
    if (bodies.includes('bad')) throw thrown
    handled.push(...bodies)
    return Promise.resolve()
  }
  const handling = post.handle({ ...quick, attemptsMax: 2, handle })
  await post.send(group('a'), [{ to: group('r'), body: 'bad' }])
  await post.send(group('a'), [{ to: group('r'), body: 'good' }])
  await post.pass(20_000)
  expect(handling.counts).toMatchObject({ failures: 2, dead: 1 })
  expect(handled).toEqual(['good'])
  const [letter] = await post.settle(post.client.queues.deadLetters('work').list(10))
  expect(letter?.message.error).toBe(error)
})

test('waits between attempts double, and outlive the process that failed', async () => {
  const post = new Post()
  const first = new Clerk(post)
  const handling = post.handle({ ...quick, attemptsMax: 9, handle: first.handle })
  await post.send(group('a'), [{ to: group('r'), body: 'bad' }])
  await post.pass(800)
  await post.settle(handling.stop())
  expect(first.calls).toHaveLength(1)
  const second = new Clerk(post)
  post.handle({ ...quick, attemptsMax: 9, handle: second.handle }, post.cluster.client({}, 'other'))
  // The first one is missed for a while, and then its groups go to the others.
  await post.until(() => second.calls.length >= 3)
  const [one = 0, two = 0, three = 0] = second.times
  expect(two - one).toBeGreaterThanOrEqual(2_000)
  expect(two - one).toBeLessThan(3_500)
  expect(three - two).toBeGreaterThanOrEqual(4_000)
  expect(three - two).toBeLessThan(5_500)
})

test('QUE-6: a listener that throws ends no handling, and the attempt still counts', async () => {
  for (const isAsync of [false, true]) {
    const post = new Post()
    const clerk = new Clerk(post)
    const told: unknown[] = []
    const tell = (what: unknown): unknown => {
      told.push(what)
      const fault = new Error('a fault of who is told')
      if (isAsync) return Promise.reject(fault)
      throw fault
    }
    const handling = post.handle({
      ...{ ...quick, handle: clerk.handle },
      onFailed: (_group, error) => tell(error),
      onHandled: (_group, messages) => tell(messages.map(textOf)),
    })
    await post.send(group('a'), [{ to: group('r'), body: 'bad' }])
    await post.send(group('a'), [{ to: group('r'), body: 'good' }])
    await post.until(() => handling.counts.handled === 1)
    expect(handling.counts).toEqual({ handled: 1, failures: 3, dead: 1 })
    expect(clerk.calls.filter((bodies) => bodies.length === 1 && bodies[0] === 'bad')).toHaveLength(
      3,
    )
    expect(told.map(String)).toEqual([
      ...Array.from({ length: 3 }, () => 'Error: cannot do bad'),
      ...['good', 'Error: a fault of who is told'],
    ])
    await post.settle(handling.stop())
  }
})

test('a stopped handler that works message by message ends with the one at work', async () => {
  const post = new Post()
  const calls: string[][] = []
  for (const body of ['a', 'b', 'c', 'd']) {
    await post.send(group('a'), [{ to: group('r'), body }])
  }
  await post.pass(1_000)
  const handling = post.handle({
    ...quick,
    handle: async (_transaction, messages) => {
      calls.push(messages.map(textOf))
      await post.sleep(100)
      if (messages.length > 1) throw new Error('not all at once')
    },
  })
  await post.until(() => calls.length === 2)
  await post.settle(handling.stop())
  expect(calls).toEqual([['a', 'b', 'c', 'd'], ['a']])
  expect(handling.counts).toEqual({ handled: 1, failures: 0, dead: 0 })
})

test('a handler that does not end in its time has failed', async () => {
  const post = new Post()
  const errors: unknown[] = []
  post.handle({
    ...{ attemptsMax: 2, retryMs: 100, timeoutMs: 500 },
    handle: () => new Promise(() => undefined),
    onFailed: (_group, error) => errors.push(error),
  })
  await post.send(group('a'), [{ to: group('r'), body: 'x' }])
  await post.pass(20_000)
  const dead = await post.settle(post.client.queues.deadLetters('work').list(10))
  expect(dead.map(({ message }) => message.error)).toEqual([
    'Error: the handler did not end within 500 ms',
  ])
  expect(errors).toHaveLength(2)
})

test('a cluster that does not answer is no failure of the handler', async () => {
  const post = new Post()
  const clerk = new Clerk(post)
  post.handle({ ...quick, attemptsMax: 1, handle: clerk.handle })
  await post.send(group('a'), [{ to: group('r'), body: 'x' }])
  for (const { replica } of post.cluster.nodes.values()) replica.isCutOff = true
  await post.pass(30_000)
  for (const { replica } of post.cluster.nodes.values()) replica.isCutOff = false
  await post.pass(30_000)
  expect(await done(post)).toBe('x')
  expect(await post.settle(post.client.queues.deadLetters('work').list(10))).toEqual([])
})

test('QUE-6: an error that the function throws counts, even with a code its transaction ignores', async () => {
  for (const code of ['immutable', 'forbidden', 'expired', 'corrupt'] as const) {
    const post = new Post()
    const handled: string[] = []
    const { counts } = post.handle({
      ...{ ...quick, retryMs: 100 },
      handle: async (_transaction, [first]) => {
        const body = first === undefined ? '' : textOf(first)
        if (body === 'bad') throw new StoreError(code, 'of a cell that it put elsewhere')
        handled.push(body)
      },
      batch: 1,
    })
    await post.send(group('a'), [{ to: group('r'), body: 'bad' }])
    await post.send(group('a'), [{ to: group('r'), body: 'behind' }])
    await post.until(() => handled.length === 1)
    expect(counts, code).toEqual({ handled: 1, failures: 3, dead: 1 })
  }
})

test('an outage that the function meets elsewhere counts no attempt', async () => {
  const post = new Post()
  const codes = [
    ...(['unavailable', 'unknown-outcome', 'timeout', 'overloaded', 'closed'] as const),
    ...(['contention', 'snapshot-too-old'] as const),
  ] as const
  const met: string[] = [...codes]
  const { counts } = post.handle({
    ...{ ...quick, attemptsMax: 1 },
    handle: async () => {
      const code = codes.find((one) => one === met.shift())
      if (code !== undefined) throw new StoreError(code, 'of a node that is asked for something')
    },
  })
  await post.send(group('a'), [{ to: group('r'), body: 'x' }])
  await post.until(() => counts.handled === 1)
  expect(counts).toEqual({ handled: 1, failures: 0, dead: 0 })
})

test('waits between attempts that are too long to be written down are refused', async () => {
  const post = new Post()
  const clerk = new Clerk(post)
  const handle = (retryMs: number, retryMaxMs: number): (() => unknown) => {
    return () => post.handle({ handle: clerk.handle, retryMs, retryMaxMs })
  }
  const detail = { limit: 'retryMsMax', limitValue: retryMsMax }
  for (const long of [retryMsMax + 1, 9e12, Infinity]) {
    expect(handle(long, 60_000)).toThrow(
      expect.objectContaining({ code: 'invalid', detail: { ...detail, actual: long } }),
    )
    expect(handle(500, long)).toThrow(`after ${retryMsMax} milliseconds at most`)
  }
  handle(retryMsMax, retryMsMax)()
  await post.send(group('a'), [{ to: group('r'), body: 'bad' }])
  await post.until(() => clerk.calls.length > 0)
  await post.pass(1_000)
  const [waiting] = await post.settle(post.client.queues.waiting('work', 10))
  expect(waiting?.message.failures).toBe(1)
})

test('a message whose handler writes too much is dead, and the rest of its batch is handled', async () => {
  const post = new Post()
  post.handle({
    ...{ attemptsMax: 1, batch: 10 },
    handle: async (transaction, messages) => {
      for (const one of messages) {
        const count = textOf(one) === 'much' ? 20_000 : 1
        for (let i = 0; i < count; i++) transaction.put(bytes(`${one.id}/${i}`), bytes('x'))
      }
    },
  })
  await post.send(group('a'), [{ to: group('r'), body: 'little' }])
  await post.send(group('a'), [{ to: group('r'), body: 'much' }])
  await post.pass(10_000)
  const dead = await post.settle(post.client.queues.deadLetters('work').list(10))
  expect(dead.map(({ message }) => Buffer.from(message.body).toString())).toEqual(['much'])
  const { value } = await post.transact(group('r'), async (tx) => tx.get(bytes('1/0')))
  expect(value).toBeDefined()
})
