/** The way into one group of a global index, where thousands of changes wait: a node that comes back has them. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import type { GroupId } from '../../src/base/ids.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Submission } from '../../src/group/replica-port.ts'
import { encodeEntryState } from '../../src/tables/index-worklist.ts'
import { IndexBatcher, type BatcherParts } from '../../src/tables/index-batcher.ts'
import { keysATurn } from '../../src/ports/turns.ts'
import { Sessions } from '../../src/txn/session.ts'
import { group } from '../log/log-fixture.ts'

test('LIVE-6: two thousand changes of ten groups are looked up over many turns, and go as one', async () => {
  const target = group('index')
  let turn = 0
  const looked = new Map<number, number>()
  const clock: Clock = {
    ...systemClock,
    defer: (work) =>
      void setImmediate(() => {
        turn += 1
        work()
      }),
  }
  const submissions: Submission[] = []
  const unused = { attempt: 1, sequences: [] }
  const parts: BatcherParts = {
    ...{ clock, random: systemRandom, sessions: new Sessions(clock, systemRandom) },
    replica: {
      read: () => Promise.resolve({ position: 1, timestamp: 1 }),
      get: (_, key) => {
        looked.set(turn, (looked.get(turn) ?? 0) + 1)
        const { value } = encodeEntryState({ target, key, value: Buffer.from('entry') })
        return { key, value, timestamp: 1 }
      },
    },
    groups: {
      view: () => Promise.resolve({ position: 1, asOf: 1 }),
      commit: (submission) => {
        submissions.push(submission)
        return Promise.resolve({ kind: 'committed', position: 2, timestamp: 2, ...unused })
      },
    },
  }
  const batcher = new IndexBatcher(target, parts, () => undefined)
  const keysOf = (source: number): Uint8Array[] =>
    Array.from({ length: 200 }, (_, at) => {
      const key = Buffer.from(`${source} ${at}`)
      return encodeEntryState({ target, key, value: undefined }).key
    })
  const sources = Array.from({ length: 10 }, (_, at): [GroupId, Uint8Array[]] => [
    group(`source ${at}`),
    keysOf(at),
  ])
  const relayed = await Promise.all(sources.map(([source, keys]) => batcher.relay(source, keys)))
  expect(relayed.map((changes) => changes.length)).toEqual(sources.map(() => 200))
  expect(submissions.map(({ mutations }) => mutations.length)).toEqual([2_000])
  expect(Math.max(...looked.values())).toBeLessThanOrEqual(keysATurn)
  expect([...looked.values()].reduce((sum, count) => sum + count, 0)).toBe(2_000)
})
