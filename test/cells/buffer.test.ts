/** Buffered writes: cells that wait on another set until their shard's own one takes them. */
import { expect, test } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { pack } from '../../src/base/pack.ts'
import { problem } from '../../src/base/problem.ts'
import { drainCellsMax } from '../../src/cells/limits.ts'
import { BufferDrain } from '../../src/cells/buffer-drain.ts'
import {
  bufferGroup,
  bufferRange,
  decodeBuffered,
  decodeRejected,
} from '../../src/cells/buffer-rows.ts'
import { BufferedCells } from '../../src/cells/buffered-cells.ts'
import type { CellService } from '../../src/cells/operation.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { Sessions } from '../../src/txn/session.ts'
import { ask, createBench, datastore, putItem, rowKey, settled } from './kit.ts'

const row = rowKey(1)
const buffer = bufferGroup({ datastore, shard: shardOf(row) }, 0, () => 0)
/** The shard is of set 0, its buffer of set 1. */
const setOf = (group: string): number => (group === buffer ? 1 : 0)

const silent: CellService = {
  execute: () => {
    const answer = { kind: 'problem', problem: problem('unavailable', 'no majority') } as const
    return Promise.resolve({ answer, positions: [] })
  },
}

/** A node that buffers every cell, since the cell's own set is silent. */
function bufferBench() {
  const { world, clockOf, random, node } = createBench()
  const { store, replica } = node('n1')
  const clock = clockOf('n1')
  const groups = new LocalGroups(replica)
  const common = { clock, random, groups, intents: new Sessions(clock, random) }
  const sets = {
    setCount: 2,
    setOf,
    setsAlong: () => [0, 1],
    copies: 1,
    onBuffered: () => undefined,
  }
  const buffered = new BufferedCells({ ...common, ...sets, cells: silent })
  return { world, store, common, buffered }
}

test('BUF-2: cells that are too large for one batch are moved in several, and none is given up', async () => {
  const { world, store, common, buffered } = bufferBench()
  for (const column of ['BASE', 'MORE']) {
    const items = Array.from({ length: 6 }, (_, refKey) =>
      putItem({ rowKey: row, column, refKey }, 'a'.repeat(1_000_000)),
    )
    const put = await settled(world, ask(buffered, { kind: 'put', datastore, items }))
    expect(put.items.every((one) => one.kind === 'ok' && one.value.buffered)).toBe(true)
  }
  let [all, given] = [0, 0]
  const onDrained = (moved: number, rejected: number): void => {
    all += moved
    given += rejected
  }
  const drain = new BufferDrain({ ...common, cells: store, onDrained })
  for (;;) {
    const served = await settled(world, drain.serve(buffer))
    if (served.kind === 'empty') break
  }
  expect({ all, given }).toEqual({ all: 12, given: 0 })
})

/** A store that meets a bug with each cell of these rows, and moves the others. */
function poisoned(store: CellService, rowKeys: readonly string[]): CellService {
  return {
    execute: async (operation, options) => {
      if (operation.kind !== 'put') return store.execute(operation, options)
      const { items } = operation
      const sound = items.filter(({ column }) => !rowKeys.includes(column))
      const { answer } = await store.execute({ ...operation, items: sound }, options)
      const moved = answer.kind === 'put' ? [...answer.items] : []
      const bug = { kind: 'problem', problem: problem('internal', 'odd') } as const
      const all = items.map(({ column }) =>
        rowKeys.includes(column) ? bug : (moved.shift() ?? bug),
      )
      return { answer: { kind: 'put', items: all }, positions: [] }
    },
  }
}

test('a cell that meets a bug where it is put stays in the buffer, and holds up none behind it', async () => {
  const { world, store, common, buffered } = bufferBench()
  // More than one look at the buffer finds, all of them ahead of the sound ones.
  for (const [column, count] of [
    ['A', drainCellsMax + 5],
    ['B', 3],
  ] as const) {
    const items = Array.from({ length: count }, (_, refKey) =>
      putItem({ rowKey: row, column, refKey }, refKey),
    )
    await settled(world, ask(buffered, { kind: 'put', datastore, items }))
  }
  let all = 0
  const parts = { ...common, onDrained: (moved: number) => void (all += moved) }
  const drain = new BufferDrain({ ...parts, cells: poisoned(store, ['A']) })
  const served = await settled(world, drain.serve(buffer))
  expect(served).toMatchObject({ kind: 'partly', error: { code: 'internal' } })
  expect(all).toBe(3)
  await expect(settled(world, drain.serve(buffer))).rejects.toMatchObject({ code: 'internal' })
  // Where the bug is gone they are moved.
  const mended = new BufferDrain({ ...parts, cells: store })
  while ((await settled(world, mended.serve(buffer))).kind !== 'empty');
  expect(all).toBe(drainCellsMax + 5 + 3)
})

test('a row that clients have put where buffered cells are is unreadable, and no bug', () => {
  const { gte } = bufferRange('buffer')
  const values = [Buffer.from([0xc1]), Buffer.alloc(0), pack([1, 2]), pack([Buffer.alloc(1), 2])]
  for (const value of values) {
    expect(() => decodeBuffered(gte, value)).toThrow(StoreError)
    expect(() => decodeRejected(gte, value)).toThrow(StoreError)
  }
})
