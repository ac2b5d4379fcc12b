/**
 * Workers of a service on nodes in memory, under virtual time: which cells they handle, which worker
 * does, and how far.
 */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { putMarked } from '../../src/triggers/offset-rows.ts'
import { markedPageMax } from '../../src/triggers/limits.ts'
import type { TriggerCell, TriggerOptions } from '../../src/triggers/definition.ts'
import { shards, TriggerBench } from './kit.ts'

const [first = 0, second = 0] = shards

interface Handled {
  readonly of: readonly string[]
  readonly trigger: TriggerOptions
}

/** A trigger that notes what it is called for, and does what `act` does. */
function noting(
  act: (cell: TriggerCell, attempt: number) => Promise<void> | void = () => undefined,
  options: Partial<TriggerOptions> = {},
): Handled {
  const of: string[] = []
  const trigger: TriggerOptions = {
    ...{ name: 'bill', column: 'BASE', retryMs: 10, retryMaxMs: 20 },
    handle: async (cell, { attempt }) => {
      of.push(`${cell.shard}/${cell.addedId}`)
      await act(cell, attempt)
    },
    ...options,
  }
  return { of, trigger }
}

test('TRIG-2: every cell of the column is handled, those that were there and new ones', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  await bench.put(first, 'STATUS')
  await bench.put(first)
  const handled = noting()
  const living = bench.start([handled.trigger])
  await bench.until('two cells', () => handled.of.length === 2)
  await bench.put(second)
  await bench.until('three cells', () => handled.of.length === 3)
  expect(handled.of).toEqual([`${first}/1`, `${first}/3`, `${second}/1`])
  await living.stop()
  expect(living.ended()).toBe('well')
  expect(await bench.settle(bench.offsets().current(first))).toMatchObject({ after: 3, marked: 0 })
})

test('TRIG-1: the offset is saved when the handler has ended well, not before', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  let end: () => void = () => undefined
  const handled = noting(() => new Promise<void>((resolve) => (end = resolve)))
  const living = bench.start([handled.trigger])
  await bench.until('a call', () => handled.of.length === 1)
  await bench.pass(2_000)
  expect(await bench.settle(bench.offsets().current(first))).toMatchObject({ after: 0 })
  end()
  await bench.pass(500)
  expect(await bench.settle(bench.offsets().current(first))).toMatchObject({ after: 1 })
  await living.stop()
})

test('TRIG-3: a cell that fails is tried again before the next one, then marked, with a row', async () => {
  const bench = new TriggerBench()
  for (let i = 0; i < 3; i++) await bench.put(first)
  await bench.put(second)
  const handled = noting(
    ({ addedId, shard }) => {
      if (shard === first && addedId === 2) throw new TypeError('no card')
    },
    { attemptsMax: 3 },
  )
  const living = bench.start([handled.trigger])
  await bench.until('all', () => handled.of.includes(`${first}/3`))
  const ofFirst = handled.of.filter((one) => one.startsWith(`${first}/`))
  expect(ofFirst.map((one) => Number(one.split('/')[1]))).toEqual([1, 2, 2, 2, 3])
  await living.stop()
  const marked = await bench.settle(bench.offsets().marked(first))
  expect(marked).toMatchObject([{ addedId: 2, attempts: 3, error: 'TypeError: no card' }])
  expect(await bench.settle(bench.offsets().current(first))).toMatchObject({ after: 3, marked: 1 })
  expect((await bench.settle(bench.serviceStore.view())).triggers).toMatchObject([{ marked: 1 }])
})

test('a handler that hangs is given up when its time is over, and holds up its own shard alone', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  await bench.put(second)
  const handled = noting(
    ({ shard }) => (shard === first ? new Promise<void>(() => undefined) : undefined),
    { timeoutMs: 300, attemptsMax: 2 },
  )
  const living = bench.start([handled.trigger])
  await bench.until('the other shard', () => handled.of.includes(`${second}/1`))
  await bench.until('the mark', () => living.events.some(({ kind }) => kind === 'marked'))
  await living.stop()
  expect(await bench.settle(bench.offsets().marked(first))).toMatchObject([
    { addedId: 1, attempts: 2, error: 'it had not ended after 300 ms' },
  ])
})

test('TRIG-6: with more marked cells than its threshold a trigger stops, says so, and can be resumed', async () => {
  const bench = new TriggerBench()
  for (let i = 0; i < 6; i++) await bench.put(first)
  let isBroken = true
  const handled = noting(
    () => {
      if (isBroken) throw new Error('broken')
    },
    { attemptsMax: 1, marksMax: 2 },
  )
  const living = bench.start([handled.trigger])
  const stopped = (): boolean =>
    living.events.some((event) => event.kind === 'state' && event.state === 'stopped')
  await bench.until('it stops', stopped)
  await bench.pass(3_000)
  expect(handled.of).toHaveLength(3)
  const [row] = (await bench.settle(bench.serviceStore.view())).triggers
  expect(row).toMatchObject({ state: 'stopped', marked: 3 })
  expect(row?.reason).toContain('3 cells are marked, more than 2')

  isBroken = false
  await bench.settle(bench.admin.resume('bill'))
  await bench.until('the rest', () => handled.of.includes(`${first}/6`))
  expect(await bench.settle(bench.admin.marked('bill'))).toHaveLength(3)
  expect(await bench.settle(bench.admin.marked('bill', Infinity))).toHaveLength(3)
  const none = { code: 'not-found', message: 'trigger bill has no marked cell of added id 77' }
  await expect(bench.settle(bench.admin.retry('bill', { addedId: 77 }))).rejects.toMatchObject(none)
  expect(await bench.settle(bench.admin.retry('bill'))).toBe(3)
  await bench.until(
    'those marked',
    () => living.events.filter(({ kind }) => kind === 'unmarked').length === 3,
  )
  await bench.pass(500)
  expect(await bench.settle(bench.admin.marked('bill'))).toEqual([])
  await living.stop()
})

test('TRIG-4: a worker that was displaced moves no offset, and finds out', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  let end: () => void = () => undefined
  const handled = noting(() => new Promise<void>((resolve) => (end = resolve)))
  const living = bench.start([handled.trigger])
  await bench.until('a call', () => handled.of.length === 1)
  const other = { shard: first, generation: 1_000, owner: 'another' }
  const claimed = await bench.settle(bench.offsets().claim(other, 0))
  expect(claimed).toMatchObject({ kind: 'done', offset: { owner: 'another', after: 0 } })
  end()
  await bench.pass(3_000)
  expect(await bench.settle(bench.offsets().current(first))).toEqual(claimed.offset)
  expect(handled.of).toHaveLength(1)

  const late = { shard: first, generation: 999, owner: 'late' }
  expect(await bench.settle(bench.offsets().claim(late, 0))).toMatchObject({ kind: 'displaced' })
  expect(await bench.settle(bench.offsets().save(late, claimed.offset, 1))).toMatchObject({
    kind: 'displaced',
  })
  // A generation has one owner.
  const twin = { ...other, owner: 'twin' }
  expect(await bench.settle(bench.offsets().claim(twin, 0))).toMatchObject({ kind: 'displaced' })
  await living.stop()
})

test('workers share the shards, and take over a dead worker’s from the stored offset', async () => {
  const bench = new TriggerBench()
  const a = noting()
  const b = noting()
  const one = bench.start([a.trigger])
  const two = bench.start([b.trigger])
  const sizes = (): number[] =>
    [one, two].map(({ events }) => {
      const last = events.findLast((event) => event.kind === 'assigned')
      return last?.kind === 'assigned' ? last.shards : 0
    })
  await bench.until('two shards each', () => sizes().join() === '2,2')
  for (const shard of shards) await bench.put(shard)
  await bench.until('all four', () => a.of.length + b.of.length === 4)
  expect([a.of.length, b.of.length]).toEqual([2, 2])
  await bench.pass(500)
  one.kill()
  for (const shard of shards) await bench.put(shard)
  await bench.until('the other one has all', () => b.of.length === 6)
  expect(b.of.filter((cell) => cell.endsWith('/1'))).toHaveLength(2)
  await two.stop()
})

test('TRIG-8: a worker that leaves hands its shards over at once, and no cell is handled twice', async () => {
  const bench = new TriggerBench()
  const a = noting(() => bench.cluster.bench.world.sleep(50_000))
  const b = noting()
  const one = bench.start([a.trigger])
  await bench.until('one has all', () => one.events.some(({ kind }) => kind === 'assigned'))
  const two = bench.start([b.trigger])
  for (let i = 0; i < 5; i++) for (const shard of shards) await bench.put(shard)
  const before = bench.cluster.bench.world.nowMicros
  await one.stop()
  await bench.until('all', () => a.of.length + b.of.length >= 20)
  expect(bench.cluster.bench.world.nowMicros - before).toBeLessThan(2_000_000)
  expect(new Set([...a.of, ...b.of]).size).toBe(20)
  expect(a.of.length + b.of.length).toBe(20)
  await two.stop()
})

test('cells are handled while there is no leader, and while the service cannot be reached', async () => {
  const bench = new TriggerBench()
  const a = noting()
  const b = noting()
  const one = bench.start([a.trigger])
  const two = bench.start([b.trigger])
  await bench.until('both have shards', () =>
    [one, two].every(({ events }) => events.some(({ kind }) => kind === 'assigned')),
  )
  await bench.pass(2_000)
  const leads = [one, two].find(({ events }) => events.some(({ kind }) => kind === 'elected'))
  const other = leads === one ? two : one
  const handled = leads === one ? b : a
  bench.breakService()
  leads?.kill()
  await bench.pass(300)
  const count = handled.of.length
  for (const shard of shards) await bench.put(shard)
  await bench.until('its own shards', () => handled.of.length === count + 2)
  expect(other.events.some((event) => event.kind === 'reach' && !event.isReached)).toBe(true)
  bench.mendService()
  await bench.until('all shards, by a new leader', () => handled.of.length === count + 4)
  expect(other.events.some(({ kind }) => kind === 'elected')).toBe(true)
  await other.stop()
})

test('shards that cannot be reached, more than are opened at once, keep no other one from being opened', async () => {
  const bench = new TriggerBench()
  const unreachable = shards.slice(0, 3)
  const [reachable = 0] = shards.slice(3)
  for (const shard of unreachable) bench.breakShard(shard)
  for (const shard of shards) await bench.put(shard)
  const handled = noting()
  const living = bench.start([handled.trigger], { opensMax: 2 })
  await bench.until('the shard that is there', () => handled.of.length === 1, 3_000)
  expect(handled.of).toEqual([`${reachable}/1`])
  for (const shard of unreachable) bench.mendShard(shard)
  await bench.until('the others', () => handled.of.length === 4, 3_000)
  await living.stop()
})

test('TRIG-7: by hand: pause, resume, skip and replay, from any place', async () => {
  const bench = new TriggerBench()
  const { admin } = bench
  const handled = noting(
    ({ addedId }) => {
      if (addedId === 1) throw new Error('stuck')
    },
    { attemptsMax: Infinity },
  )
  await bench.put(first)
  await bench.put(first)
  const living = bench.start([handled.trigger])
  await bench.until('it is stuck', () => handled.of.length > 3)
  expect(await bench.settle(admin.skip('bill', first))).toMatchObject({ addedId: 1 })
  await bench.until('it goes on', () => handled.of.includes(`${first}/2`))
  expect(await bench.settle(admin.marked('bill'))).toMatchObject([
    { shard: first, addedId: 1, error: 'skipped by hand' },
  ])

  await bench.settle(admin.pause('bill'))
  await bench.pass(500)
  const count = handled.of.length
  await bench.put(first)
  await bench.pass(3_000)
  expect(handled.of).toHaveLength(count)
  await bench.settle(admin.resume('bill'))
  await bench.until('the third', () => handled.of.at(-1) === `${first}/3`)
  await bench.pass(500)

  const times = (id: number): number => handled.of.filter((one) => one === `${first}/${id}`).length
  expect(await bench.settle(admin.replay('bill', { shard: first, after: 1 }))).toEqual([first])
  await bench.until('two again', () => times(2) === 2 && times(3) === 2)
  // Not forward: nothing is left out.
  expect(await bench.settle(admin.replay('bill', { shard: first, after: 50 }))).toEqual([])
  expect(await bench.settle(admin.shards('bill'))).toMatchObject([
    { shard: first, last: 3, marked: 1 },
  ])
  await living.stop()
})

test('a new trigger begins where it says: cells before are none of its business', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  await bench.pass(1_000)
  const since = bench.wallMicros()
  await bench.pass(1_000)
  await bench.put(first)
  const handled = noting(undefined, { since })
  const living = bench.start([handled.trigger])
  await bench.until('the second', () => handled.of.length === 1)
  expect(handled.of).toEqual([`${first}/2`])
  await living.stop()
})

test('idle shards cost a heartbeat a worker, and one call for all of them', async () => {
  const bench = new TriggerBench()
  const handled = noting()
  const living = bench.start([handled.trigger], {
    tails: 1,
    waitMs: 10_000,
    heartbeatMs: 1_000,
    leaseMs: 3_000,
  })
  await bench.pass(15_000)
  const count = (): number =>
    bench.cluster.frames.filter(({ from }) => from.startsWith('worker')).length
  const before = count()
  await bench.pass(60_000)
  // A heartbeat is a commit and a read or three; a tail call and a probe come every ten seconds.
  expect(count() - before).toBeLessThan(60 * 6)
  await living.stop()
})

test('a worker refuses the same trigger for other cells, and the admin refuses an unknown trigger', async () => {
  const bench = new TriggerBench()
  const living = bench.start([noting().trigger])
  await bench.until('it runs', () => living.events.some(({ kind }) => kind === 'assigned'))
  const other = bench.start([noting(undefined, { column: 'STATUS' }).trigger])
  await bench.until('it is refused', () => other.ended() !== 'no')
  const ended = other.ended()
  expect(ended instanceof StoreError && ended.message).toContain('give the new one another name')
  await expect(bench.settle(bench.admin.pause('sell'))).rejects.toThrow(
    'service billing has no trigger sell; it has bill',
  )
  await living.stop()
})

test('a failed worker leaves its shards to others at once, and its stop gives the reason', async () => {
  const bench = new TriggerBench()
  const a = noting()
  const b = noting()
  const one = bench.start([a.trigger])
  const two = bench.start([b.trigger])
  const shardsOf = ({ events }: typeof one): number => {
    const last = events.findLast((event) => event.kind === 'assigned')
    return last?.kind === 'assigned' ? last.shards : 0
  }
  await bench.until('two shards each', () => shardsOf(one) === 2 && shardsOf(two) === 2)
  bench.damageFor(one.worker.name)
  for (const shard of shards) await bench.put(shard)
  await bench.until('its end', () => one.ended() !== 'no', 1_000)
  await bench.until('the other one has all', () => shardsOf(two) === 4, 1_000)
  await bench.until('all are handled', () => b.of.length === 4)
  expect(one.ended()).toMatchObject({ code: 'corrupt' })
  await expect(one.stop()).rejects.toMatchObject({ code: 'corrupt' })
  await two.stop()
  expect(two.ended()).toBe('well')
})

test('a worker whose client was closed ends with that, and does not call its handlers over and over', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  let calls = 0
  let close: () => Promise<void> = () => Promise.resolve()
  const trigger: TriggerOptions = {
    ...{ name: 'bill', column: 'BASE', attemptsMax: 1 },
    handle: async () => {
      calls += 1
      // Else this test would not end.
      if (calls > 50) return new Promise(() => undefined)
      await close()
      throw new TypeError('no card')
    },
  }
  const living = bench.start([trigger])
  close = () => living.client.close()
  await bench.until('its end', () => living.ended() !== 'no')
  await bench.pass(1_000)
  expect(living.ended()).toMatchObject({ code: 'closed' })
  expect(calls).toBe(1)
})

test('marked cells are given over the pages of a shard, as many as are wanted', async () => {
  const bench = new TriggerBench()
  await bench.put(first)
  const handled = noting()
  const living = bench.start([handled.trigger])
  await bench.until('the cell', () => handled.of.length === 1)
  await living.stop()
  const count = markedPageMax + 2
  const name = { service: bench.serviceStore.service, trigger: 'bill' }
  const cellOf = (addedId: number): Parameters<typeof putMarked>[3] => ({
    ...{ addedId, rowKey: '22222222-2222-4222-8222-222222222221', column: 'BASE', refKey: addedId },
    ...{ attempts: 1, error: 'no card', isRetried: false },
  })
  for (let from = 1; from <= count; from += 300) {
    const to = Math.min(from + 300, count + 1)
    await bench.settle(
      bench.offsets().byHand(first, async (tx, of, before) => {
        for (let id = from; id < to; id++) await putMarked(tx, of, name, cellOf(id))
        return before
      }),
    )
  }
  await bench.settle(bench.serviceStore.report('bill', first, count))
  const all = Array.from({ length: count }, (_, i) => i + 1)
  for (const limit of [Infinity, count, count - 1, 1]) {
    const found = await bench.settle(bench.admin.marked('bill', limit))
    expect(found.map(({ addedId }) => addedId)).toEqual(all.slice(0, limit))
  }
  expect(await bench.settle(bench.admin.marked('bill'))).toHaveLength(markedPageMax)
})

test('TRIG-7: one of two concurrent skips skips its cell, and the other fails', async () => {
  const bench = new TriggerBench()
  const handled = noting(
    () => {
      throw new Error('stuck')
    },
    { attemptsMax: Infinity },
  )
  await bench.put(first)
  await bench.put(first)
  const living = bench.start([handled.trigger])
  await bench.until('it is stuck', () => handled.of.length > 3)
  const { admin } = bench
  const both = Promise.allSettled([admin.skip('bill', first), admin.skip('bill', first)])
  const ended = await bench.settle(both)
  expect(ended.filter(({ status }) => status === 'fulfilled')).toMatchObject([
    { value: { addedId: 1 } },
  ])
  expect(ended.filter(({ status }) => status === 'rejected')).toMatchObject([
    { reason: { code: 'expired', retry: 'never' } },
  ])
  expect(await bench.settle(admin.marked('bill'))).toMatchObject([{ addedId: 1 }])
  await living.stop()
})
