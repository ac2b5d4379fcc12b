/** When a peer that lacks entries is offered a snapshot of the group in their place. */
import { expect, test } from 'vitest'
import type { Position } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { CatchUpReplies } from '../../src/peers/replies.ts'
import { Slices } from '../../src/peers/slices.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { Entries } from '../../src/replication/message.ts'
import { HandClock } from '../ports/hand-clock.ts'
import { a, peer } from './snapshot-kit.ts'

const limits = { ...defaultLimits, snapshotAfterEntries: 100, catchUpEntriesMax: 4 }

/** The answer of a node whose log begins at a position, and whose data store has the group as far as that. */
function answerOf(
  has: { readonly logFrom: Position; readonly durable: Position },
  from: Position,
  through: Position,
): Entries {
  const clock = new HandClock()
  const value = Buffer.from('entry')
  const sent: Entries[] = []
  const onFailed = (error: unknown): void => expect.fail(String(error))
  const replies = new CatchUpReplies({
    ...{ limits, trace: silentTrace },
    slices: new Slices({ clock, trace: silentTrace, limits, foreground: () => 0, onFailed }),
    snapshots: { durable: () => has.durable },
    log: {
      chosen: (_, position) =>
        position < has.logFrom
          ? undefined
          : { ballot: { epoch: 1, round: 0, node: peer, incarnation: 1 }, value },
      *since() {
        yield 0
        return { through: 0, isWhole: true, groups: [] }
      },
    },
    send: (_, message) => void (message.kind === 'entries' && sent.push(message)),
    hasRoomFor: () => true,
  })
  replies.ask({
    ...{ kind: 'send-entries', to: peer, group: a, epoch: 1 },
    ...{ from, through, committed: through, isAwaited: false },
  })
  for (let turn = 0; turn < 100 && clock.turn(); turn++);
  const [answer] = sent
  if (answer === undefined || sent.length > 1) throw new Error(`${sent.length} answers`)
  return answer
}

test('a peer that lacks fewer entries than the limit gets entries', () => {
  const answer = answerOf({ logFrom: 1, durable: 500 }, 401, 500)
  expect(answer.entries.map(({ position }) => position)).toEqual([401, 402, 403, 404])
  expect(answer).not.toHaveProperty('snapshot')
})

test('a peer that lacks as many entries as the limit says is offered a snapshot, and no entry', () => {
  expect(answerOf({ logFrom: 1, durable: 500 }, 400, 500)).toEqual({
    ...{ kind: 'entries', group: a, epoch: 1, from: 400, entries: [], committed: 500 },
    snapshot: 500,
  })
})

test('a peer gets entries where the snapshot would save too few of them', () => {
  const answer = answerOf({ logFrom: 1, durable: 150 }, 100, 500)
  expect(answer.entries).toHaveLength(4)
  expect(answer).not.toHaveProperty('snapshot')
})

test('a peer is offered a snapshot of any size where the log has not the first entry that it lacks', () => {
  expect(answerOf({ logFrom: 12, durable: 12 }, 10, 12)).toMatchObject({
    ...{ entries: [], snapshot: 12 },
  })
  expect(answerOf({ logFrom: 12, durable: 10 }, 10, 12)).toMatchObject({ snapshot: 10 })
})

test('a peer is offered nothing that it has already', () => {
  const answer = answerOf({ logFrom: 12, durable: 9 }, 10, 12)
  expect(answer.entries).toEqual([])
  expect(answer).not.toHaveProperty('snapshot')
  expect(answerOf({ logFrom: 12, durable: 0 }, 1, 500)).not.toHaveProperty('snapshot')
})
