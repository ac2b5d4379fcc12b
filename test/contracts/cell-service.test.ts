/** The contract of cells: a node's own store, routed between replica sets, and over the wire. */
import { getCellService } from '../../src/client/client.ts'
import { disks, levelDisk } from '../store/stores.ts'
import { cellServiceContract } from './cell-service.ts'
import type { CellPlace } from './cell-story.ts'
import {
  firstOf,
  lastOf,
  loneFooting,
  memoryFooting,
  simulatedFooting,
  type Footing,
} from './footings.ts'

function nodePlace(footing: Footing): CellPlace {
  const [first, last] = [firstOf(footing), lastOf(footing)]
  return { footing, service: first.cells, other: last.cells, close: () => first.stop() }
}

async function clientPlace(footing: Footing): Promise<CellPlace> {
  const client = await firstOf(footing).connect()
  const other = await lastOf(footing).connect()
  const cells = { service: getCellService(client), other: getCellService(other) }
  return { footing, ...cells, close: () => client.close() }
}

const node = { canBeCutOff: false, takesIntents: true, answersNow: true }
const client = { canBeCutOff: false, takesIntents: false, answersNow: false }

cellServiceContract('a store on replicas in memory', async () => nodePlace(await memoryFooting()), {
  ...node,
  canBeCutOff: true,
})

for (const [disk, makeDisk] of disks) {
  cellServiceContract(
    `a node alone, on ${disk}`,
    async () => nodePlace(await loneFooting(makeDisk)),
    node,
  )
}

cellServiceContract('a node of three, simulated', async () => nodePlace(await simulatedFooting()), {
  ...node,
  canBeCutOff: true,
})

cellServiceContract(
  'nodes of two replica sets, simulated',
  async () => nodePlace(await simulatedFooting({}, 2)),
  node,
)

cellServiceContract(
  'a client over a socket',
  async () => clientPlace(await loneFooting(levelDisk)),
  client,
)

cellServiceContract(
  'a client of two replica sets, simulated',
  async () => clientPlace(await simulatedFooting({}, 2)),
  client,
)

cellServiceContract(
  'nodes of two replica sets, simulated, with eight shards to a datastore',
  async () => nodePlace(await simulatedFooting({}, 2)),
  { ...node, form: '.8' },
)

cellServiceContract(
  'a client over a socket, with two shards to a datastore, in a set',
  async () => clientPlace(await loneFooting(levelDisk)),
  { ...client, form: '.2.set-west' },
)
