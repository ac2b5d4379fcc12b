/** A signal ends long work of a command in order, and the command reports how far it came. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { purgeShards, type ShardPurged } from '../../src/cli/cells-purge.ts'
import { CliError } from '../../src/cli/exit.ts'
import { progressWords } from '../../src/cli/index-maintenance.ts'
import { interruptible } from '../../src/cli/interruptible.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const work = { name: 'the purge', done: () => '3 cells had been purged', advice: 'run it again' }

function quiet(): { readonly said: () => string } {
  let text = ''
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((piece) => {
    text += String(piece)
    return true
  })
  onTestFinished(() => {
    write.mockRestore()
    for (const signal of signals) process.removeAllListeners(signal)
  })
  return { said: () => text }
}

test.each(signals)(
  '%s ends work, and the command reports how far it came and how to go on',
  async (name) => {
    const { said } = quiet()
    const ended = interruptible(work, async (signal) => {
      process.emit(name, name)
      if (signal.aborted) throw new StoreError('closed', 'given up')
      return 1
    })
    await expect(ended).rejects.toThrow('interrupted; 3 cells had been purged; run it again')
    await expect(ended).rejects.toBeInstanceOf(CliError)
    expect(said()).toContain(`${name}: the purge ends after the step that it is at`)
  },
)

test('work that comes to its end all the same is whole, and other errors stay what they are', async () => {
  quiet()
  const whole = interruptible(work, async () => {
    process.emit('SIGINT', 'SIGINT')
    return 'whole'
  })
  expect(await whole).toBe('whole')
  const damaged = new StoreError('corrupt', 'damaged')
  const broken = interruptible(work, async () => {
    throw damaged
  })
  await expect(broken).rejects.toBe(damaged)
})

test('a purge that is ended in the middle of a shard tells what that shard lost', async () => {
  const abort = new AbortController()
  const told: ShardPurged[] = []
  const pages: (readonly [number, number | undefined])[] = []
  const cells = {
    purgeShard: async (shard: number, { after }: { readonly after?: number }) => {
      pages.push([shard, after])
      if (pages.length === 3) abort.abort()
      return shard === 1 ? { purged: 2 } : { purged: 2, cursor: (after ?? 0) + 10 }
    },
  }
  const asked = { before: 5, keepLatest: true }
  const purge = purgeShards(cells, {
    ...{ shards: [1, 2, 3], asked, signal: abort.signal },
    tell: (one) => void told.push(one),
  })
  await expect(purge).rejects.toMatchObject({ code: 'closed' })
  expect(pages).toEqual([
    ...[
      [1, 0],
      [2, 0],
      [2, 10],
    ],
  ])
  expect(told).toEqual([
    { shard: 1, purged: 2 },
    { shard: 2, purged: 4 },
  ])
})

test('how far work on an index had come is said by its phase', () => {
  expect(progressWords(undefined)).toBe('nothing had been done')
  expect(progressWords({ phase: 'filling', done: 12, total: 4096 })).toBe(
    'filling had come to 12 of 4,096',
  )
  expect(progressWords({ phase: 'clearing', done: 7 })).toBe('clearing had come to 7')
})
