import { expect, test } from 'vitest'
import { clusterId, groupOfBytes, nodeId, storeId } from '../../src/base/ids.ts'
import { flushKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { encodeFlush, type FlushRecord } from '../../src/log/flush.ts'
import { metaRecords } from '../../src/log/log-meta.ts'
import { LogEndChecker } from '../../sim/checkers/log-end-checker.ts'
import { Referee } from '../../sim/checkers/referee.ts'

const group = groupOfBytes(Buffer.from('group'))
const ballot = { epoch: 1, round: 0, node: nodeId('n1'), incarnation: 1 }
const never = Number.MAX_SAFE_INTEGER
const valueBytes = 1_000
const all = ['n1', 'n2', 'n3']

/** The log of n1, with a flush of each position; what n2 and n3 have applied is as the test says. */
class Court {
  readonly referee = new Referee(() => 0)
  readonly applied: Record<string, number> = { n1: 100, n2: 100, n3: 0 }
  nowMs = 0
  readonly checker: LogEndChecker
  #crcs = [0]

  constructor(limits: { readonly logRetainBytes?: number; readonly logRetainMs?: number } = {}) {
    this.checker = new LogEndChecker({
      referee: this.referee,
      findPosition: (node) => this.applied[node] ?? 0,
      isForgotten: () => false,
      others: (node) => all.filter((one) => one !== node),
      limits: { logRetainBytes: never, logRetainMs: never, ...limits },
      monotonicMs: () => this.nowMs,
    })
    this.checker.onStart('n1')
    for (const peer of ['n2', 'n3']) this.tell(peer)
  }

  get broken(): readonly string[] {
    return this.referee.violations.map(({ rule }) => rule)
  }

  tell(peer: string): void {
    this.checker.onDelivered(peer, 'n1', { kind: 'durable-mark', through: 0 })
  }

  write(flush: number): void {
    const value = Buffer.alloc(valueBytes)
    const record: FlushRecord = { kind: 'accept', group, position: flush, ballot, value }
    const stamp = { number: flush, incarnation: 1, previousCrc: this.#crcs[flush - 1] ?? 0 }
    const content = { records: [record], groupNumbers: [0], previous: [flush - 1] }
    const { bytes, crc } = encodeFlush(stamp, content)
    this.#crcs[flush] = crc
    this.checker.onLogDurable('n1', { key: flushKey(flush), value: bytes }, [record])
  }

  giveUpBefore(firstFlush: number): void {
    const [meta] = metaRecords({
      ...{
        storeId: storeId('00000000-0000-4000-8000-000000000000'),
        incarnation: 1,
        cluster: clusterId('sim'),
      },
      ...{ node: nodeId('n1'), firstFlush, seat: 0, epoch: 1, longestLeaseMs: 0 },
      previousCrc: this.#crcs[firstFlush - 1] ?? 0,
    })
    this.checker.onLogDurable('n1', { key: recordKey(meta.name), value: meta.value }, [])
  }
}

function courtOf(
  limits: ConstructorParameters<typeof Court>[0],
  flushes: number,
  afterMs = 0,
): Court {
  const court = new Court(limits)
  for (let flush = 1; flush <= flushes; flush++) court.write(flush)
  court.nowMs = afterMs
  return court
}

test('LOG-16: a log gives up what a peer lacks that holds up more than the budget, and nothing before', () => {
  const behind = courtOf({ logRetainBytes: 3 * valueBytes }, 4)
  behind.giveUpBefore(3)
  expect(behind.broken).toEqual([])
  const within = courtOf({ logRetainBytes: 6 * valueBytes }, 4)
  within.giveUpBefore(3)
  expect(within.broken).toEqual(['LOG-16', 'LOG-16'])
})

test('LOG-16: a log gives up what a peer lacks once that is too old, by the clock of its node', () => {
  const behind = courtOf({ logRetainMs: 700 }, 4, 700)
  behind.giveUpBefore(2)
  expect(behind.broken).toEqual([])
  const within = courtOf({ logRetainMs: 700 }, 4, 699)
  within.giveUpBefore(2)
  expect(within.broken).toEqual(['LOG-16'])
})

test('LOG-16: a peer that has told nothing since the start is behind after a minute, and not before', () => {
  const early = courtOf({ logRetainBytes: 1 }, 4, 59_999)
  early.checker.onStart('n1')
  early.tell('n2')
  early.giveUpBefore(2)
  expect(early.broken).toEqual(['LOG-16'])
  const late = courtOf({ logRetainBytes: 1 }, 4)
  late.checker.onStart('n1')
  late.nowMs = 60_000
  late.giveUpBefore(2)
  expect(late.broken).toEqual([])
})

test('LOG-16: a log never gives up what its own node has not applied, even where all peers are behind', () => {
  const court = courtOf({ logRetainBytes: 1 }, 4)
  court.applied['n1'] = 1
  // A later flush names the group: its records of these positions are gone all the same.
  court.giveUpBefore(5)
  expect(court.broken).toEqual(['LOG-16', 'LOG-16', 'LOG-16'])
})
