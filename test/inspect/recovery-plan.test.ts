/** The look at the store of a node that is left: positions beyond what it has applied, and stores that recover nothing. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { groupOfBytes, nodeId } from '../../src/base/ids.ts'
import { formatGroupHex } from '../../src/inspect/finding.ts'
import { lookAtLeftStore, votersOf, type LeftStore } from '../../src/inspect/recovery-plan.ts'
import { openStoppedNode } from '../../src/inspect/stopped-node.ts'
import { firstEpochs, type OwnEpochs } from '../../src/log/own-epochs.ts'
import { openLog } from '../log/log-fixture.ts'
import { makeFolderOfRuns, remove } from './node-folder.ts'

const group = groupOfBytes(Buffer.from('orders'))
const ballot = { epoch: 1, round: 1, node: nodeId('n2'), incarnation: 1 }
const value = Buffer.from('value')
const folders: string[] = []

afterAll(async () => {
  await Promise.all(folders.map(remove))
})

/** A log with these acceptances, and a record of the node's part in the epochs. */
async function makeStore(
  own: OwnEpochs,
  accepted: readonly number[],
  hasData = true,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-recovery-'))
  folders.push(folder)
  const store = await openLevelStore(join(folder, 'log'))
  const log = await openLog(store)
  log.memory.restore(0, 0)
  log.memory.setEpochs(own)
  const records = accepted.map((position) => {
    return { kind: 'accept', group, position, ballot, value } as const
  })
  const chosen = { kind: 'chosen', group, position: 1, ballot } as const
  await new Promise<void>((resolve) => log.append([...records, chosen], resolve))
  await log.stop()
  await store.close()
  if (hasData) await (await openLevelStore(join(folder, 'data'))).close()
  return folder
}

async function look(folder: string): Promise<LeftStore> {
  const node = await openStoppedNode(folder, () => undefined)
  try {
    return await lookAtLeftStore(node, { nameGroup: formatGroupHex, onBytes: () => undefined })
  } finally {
    await node.close()
  }
}

let whole = ''
beforeAll(async () => {
  whole = await makeFolderOfRuns()
  folders.push(whole)
})

test('a node that has applied all that it knows has nothing to list', async () => {
  const found = await look(whole)
  expect(found).toMatchObject({ groups: [], damagedFlushes: 0, nextEpoch: 2_000 })
  expect([found.identity.node, votersOf(found, [nodeId('a')])]).toEqual(['a', ['a']])
})

test('positions that are accepted alone, and gaps before later ones, are listed', async () => {
  const voters = [nodeId('n1'), nodeId('n2'), nodeId('n9')]
  const own = { ...firstEpochs, epoch: 4, gated: 4, voters, before: voters }
  const found = await look(await makeStore(own, [1, 2, 5]))
  const name = formatGroupHex(group)
  expect(found.groups).toEqual([
    { group: name, name, applied: 0, accepted: [2, 5], missing: [3, 4] },
  ])
  expect(votersOf(found, [nodeId('n1')])).toEqual(voters)
})

test.each([
  [
    'has no vote',
    { ...firstEpochs, epoch: 2, isMember: false },
    true,
    /no vote in its replica set/,
  ],
  ['has no data/', { ...firstEpochs, epoch: 2 }, false, /has no data\//],
])('a store that %s recovers nothing, and says why', async (_, own, hasData, why) => {
  await expect(look(await makeStore(own, [1], hasData))).rejects.toThrow(why)
})
