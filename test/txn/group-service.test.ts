/** Rows that a node reads at once, and the same by the way of all others. */
import { expect, test } from 'vitest'
import { groupOfBytes } from '../../src/base/ids.ts'
import type { ReadGroup } from '../../src/txn/group-operation.ts'
import { GroupService } from '../../src/txn/group-service.ts'
import { createBench, settled, type Bench } from '../cells/kit.ts'
import type { MemoryReplica } from '../cells/memory-replica.ts'

const group = groupOfBytes(Buffer.from('g'))
const [key, other] = [Buffer.from('k'), Buffer.from('none')]

interface Written extends Pick<Bench, 'world'> {
  readonly replica: MemoryReplica
  readonly service: GroupService
  readonly timestamp: number
}

async function written(): Promise<Written> {
  const { world, node, clockOf } = createBench()
  const { replica } = node('n1')
  const clock = clockOf('n1')
  const expiresAt = clock.wallMicros() + 60_000_000
  const outcome = await settled(
    world,
    replica.submit(
      {
        ...{ group, readPosition: 0, reads: [], ranges: [], allocations: [], attempt: 1 },
        intent: { session: 's', sequence: 1, floor: 1, expiresAt },
        mutations: [{ key, value: Buffer.from('v') }],
      },
      1_000,
    ),
  )
  if (outcome.kind !== 'committed') throw new Error(outcome.kind)
  replica.isAtOnce = true
  const service = new GroupService({ replica, clock })
  return { world, replica, service, timestamp: outcome.timestamp }
}

function readOf(from: ReadGroup['from'], rest: Partial<ReadGroup> = {}): ReadGroup {
  return { kind: 'read-group', group, from, atLeast: 0, keys: [key, other], ...rest }
}

test('MVCC-1: rows that are read at once are those of a read that waits, and so is their view', async () => {
  const { world, service, timestamp } = await written()
  const froms = [{ kind: 'current' }, { kind: 'snapshot' }, { kind: 'at', timestamp }] as const
  for (const from of froms) {
    for (const keys of [[key, other], [other], []]) {
      const now = service.answerNow(readOf(from, { keys }))
      expect(now).toMatchObject({ kind: 'read-group', view: { position: 1, asOf: timestamp } })
      expect(now).toStrictEqual(
        await settled(world, service.execute(readOf(from, { keys }), 1_000)),
      )
    }
  }
})

test('MVCC-1: of the past, of ranges and of what has to be waited for nothing is read at once', async () => {
  const { replica, service, timestamp } = await written()
  const current = { kind: 'current' } as const
  const open = [
    readOf({ kind: 'at', timestamp: timestamp - 1 }),
    ...[readOf({ kind: 'inconsistent' }), readOf(current, { range: {} })],
    ...[readOf(current, { atLeast: 2 }), readOf({ kind: 'at', timestamp }, { atLeast: 2 })],
    readOf(current, { keys: Array.from({ length: 17 }, () => key) }),
    { kind: 'list-groups', group, limit: 1 } as const,
  ]
  for (const operation of open) expect(service.answerNow(operation)).toBeUndefined()
  replica.isAtOnce = false
  expect(service.answerNow(readOf(current))).toBeUndefined()
  replica.isAtOnce = true
  service.stop()
  expect(service.answerNow(readOf(current))).toBeUndefined()
})
