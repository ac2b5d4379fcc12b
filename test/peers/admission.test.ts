/** A node whose log has lost its memory of its peers, and the peers that come to it. */
import { SetNodes } from '../../src/placement/set-nodes.ts'
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import type { RememberedStore } from '../../src/base/remembered.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import type { LinkInfo } from '../../src/ports/transport.ts'
import { flushKey } from '../../src/journal/ordered-journal.ts'
import { Admission } from '../../src/peers/admission.ts'
import { describeSelf } from '../../src/peers/refusal.ts'
import { accept, durable, openLog } from '../log/log-fixture.ts'
import { onDisk, simulatedDisk } from '../store/stores.ts'
import { PeerMemory } from '../../src/log/peer-memory.ts'

const [n1, n2, n3] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const own = { node: n1, storeId: 'of n1', durableFlush: 5, incarnation: 2, run: 1 }
const second = { node: n2, storeId: 'of n2', durableFlush: 9, incarnation: 3, run: 2 }
const third = { node: n3, storeId: 'of n3', durableFlush: 7, incarnation: 4, run: 3 }

function forgetful(
  kept?: readonly RememberedStore[],
  version = 1,
): {
  readonly memory: PeerMemory
  readonly admission: Admission
} {
  const memory = new PeerMemory(kept)
  const meta = { meta: () => undefined, setMeta: () => undefined }
  const parts = {
    node: n1,
    nodes: new SetNodes(n1, [n1, n2, n3]),
    storeId: 'of n1',
    trace: silentTrace,
    meta,
    memory,
  }
  return {
    memory,
    admission: new Admission({
      ...parts,
      remember: () => undefined,
      hearVoters: () => undefined,
      findNewcomer: () => undefined,
      lastSeat: () => 0,
      version: () => version,
      knowsNodes: () => true,
    }),
  }
}

function hello(
  { storeId, durableFlush, incarnation, run }: RememberedStore,
  known?: readonly RememberedStore[],
): LinkInfo {
  return { storeId, durableFlush, incarnation, run, ...(known && { known }) }
}

test('LOG-11: a forgetful node admits no peer before a majority has told it, then refuses old stores', () => {
  const { memory, admission } = forgetful()
  expect(admission.findProblem(n2, hello(second, [own, third]))).toMatch(/^forgetful/)
  expect(admission.findProblem(n2, hello(second, [own, third])), 'the same again').toMatch(
    /^forgetful/,
  )
  // An old folder, and one that has forgotten, too, tell nothing.
  const old = { ...third, durableFlush: 3, incarnation: 3, run: 8 }
  expect(admission.findProblem(n3, hello(old, [own]))).toMatch(/^forgetful/)
  expect(admission.findProblem(n3, hello(third))).toMatch(/^forgetful/)
  expect(memory.isWhole).toBe(false)
  expect(admission.findProblem(n3, hello(third, [own, second]))).toBe(undefined)
  expect([memory.isWhole, memory.of(n2), memory.of(n3)]).toEqual([true, second, third])
  expect(admission.findProblem(n3, hello(old, [own]))).toMatch(/^stale-disk/)
})

test('LOG-11: an emptied store vouches for nothing; one that has not yet met the node does', () => {
  const { memory, admission } = forgetful()
  admission.findProblem(n2, hello(second, [own, third]))
  expect(admission.findProblem(n3, hello({ ...third, storeId: 'new' }, []))).toMatch(/^forgetful/)
  expect(memory.isWhole).toBe(false)
  expect(admission.findProblem(n3, hello(third, [second]))).toBe(undefined)
})

test('LOG-10: a hello that is late is of the same run; another run that is not further is an old folder', () => {
  const { admission } = forgetful([third])
  const late = { ...third, durableFlush: 4 }
  expect(admission.findProblem(n3, hello(late))).toBe(undefined)
  expect(admission.findProblem(n3, hello({ ...late, run: 9 }))).toMatch(/^stale-disk.* flush 7 /)
  expect(admission.findProblem(n3, hello({ ...third, run: 9 }))).toMatch(
    /begins incarnation 4 again/,
  )
  expect(admission.findProblem(n3, hello({ ...third, incarnation: 5, run: 9 }))).toBe(undefined)
  expect(admission.findProblem(n3, hello({ ...third, storeId: 'new' }))).toMatch(/^unknown-store/)
})

test('LOG-10: a node that lost its last flush, and has written another one under its number since, is refused', async () => {
  await onDisk(simulatedDisk, async (disk) => {
    const before = await openLog(await disk.open())
    await durable(before, accept('a', 1, 0, 'one'))
    await durable(before, accept('a', 2, 0, 'two'))
    const { memory, admission } = forgetful([])
    const { identity, durableFlush: last, run } = before
    memory.learn({ ...identity, node: n2, durableFlush: last, run })
    await before.stop()
    const store = await disk.open()
    await store.write([{ key: flushKey(last) }])
    const after = await openLog(store)
    await durable(after, accept('a', 2, 0, 'three'))
    expect(after.durableFlush).toBe(last)
    expect(admission.findProblem(n2, describeSelf(after))).toBe(
      `stale-disk: n2 once had flush ${last} on disk and now has ${last - 1}`,
    )
    await after.stop()
  })
})

test('UPG-1: a peer has a link only while its build supports the version in force', () => {
  const known = [second, third]
  const before = forgetful(known).admission
  const versions = { min: 1, max: 2 }
  for (const supports of [undefined, versions]) {
    const info = { ...hello(second), ...(supports && { supports }) }
    expect(before.findProblem(n2, info)).toBe(undefined)
  }
  expect(before.findProblem(n2, { ...hello(second), supports: { min: 2, max: 3 } })).toMatch(
    /^unsupported-version: cluster version 1 .*n2 runs a build that supports cluster versions 2 to 3/,
  )
  const { admission } = forgetful(known, 2)
  expect(admission.findProblem(n2, { ...hello(second), supports: versions })).toBe(undefined)
  expect(admission.findProblem(n2, hello(second))).toBe(
    'unsupported-version: cluster version 2 is in force in this replica set, and n2 runs a build that supports cluster version 1: start it with a build that supports version 2',
  )
})
