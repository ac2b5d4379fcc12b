/** The contract of the group port: in memory, at a node, over the wire, and in a simulated cluster. */
import type { GroupPort } from '../../src/group/group-port.ts'
import { Groups } from '../../src/client/groups.ts'
import { SeenPositions } from '../../src/client/seen-positions.ts'
import { GroupService } from '../../src/txn/group-service.ts'
import { LocalGroups } from '../../src/txn/local-groups.ts'
import { disks, levelDisk } from '../store/stores.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock } from '../txn/test-ports.ts'
import {
  firstOf,
  lastOf,
  loneFooting,
  memoryFooting,
  simulatedFooting,
  type Footing,
} from './footings.ts'
import { groupPortContract } from './group-port.ts'
import type { GroupPlace } from './group-story.ts'

function placeOn(
  footing: Footing,
  ports: Pick<GroupPlace, 'port' | 'other' | 'close'>,
): GroupPlace {
  const { cutOff } = footing
  return {
    ...ports,
    clock: footing.clock,
    settled: (work) => footing.settled(work),
    ...(cutOff !== undefined && { cutOff: () => cutOff() }),
    remove: () => footing.remove(),
  }
}

/** Through the replicas of the first and of the last node. */
function localPlace(footing: Footing): GroupPlace {
  const [first, last] = [firstOf(footing), lastOf(footing)]
  const port = new LocalGroups(first.replica)
  const other = new LocalGroups(last.replica)
  return placeOn(footing, { port, other, close: () => first.stop() })
}

/** Through two clients, each of a node of its own where there are several. */
async function clientPlace(footing: Footing): Promise<GroupPlace> {
  const client = await firstOf(footing).connect()
  const other = await lastOf(footing).connect()
  const close = (): Promise<void> => client.close()
  return placeOn(footing, { port: client.groups, other: other.groups, close })
}

const local = { canBeCutOff: false, isClient: false }
const remote = { canBeCutOff: false, isClient: true }

groupPortContract(
  'the port that tests of transactions stand on',
  async () => {
    const clock = new TestClock()
    const port = new MemoryPort(clock)
    return {
      ...{ port, other: port, clock, settled: (work) => work },
      cutOff: () => {
        port.replica.isCutOff = true
      },
      close: async () => port.replica.stop(),
      remove: () => Promise.resolve(),
    }
  },
  { ...local, canBeCutOff: true },
)

groupPortContract('a node, on replicas in memory', async () => localPlace(await memoryFooting()), {
  ...{ ...local, canBeCutOff: true, isHeavy: true },
})

for (const [disk, makeDisk] of disks) {
  groupPortContract(
    `a node alone, on ${disk}`,
    async () => localPlace(await loneFooting(makeDisk)),
    local,
  )
}

groupPortContract(
  'a client in the process of its node',
  async () => {
    const footing = await memoryFooting()
    const services = [firstOf(footing), lastOf(footing)].map(
      ({ replica }) => new GroupService({ replica, clock: footing.clock }),
    )
    const [port, other] = services.map(
      (service): GroupPort =>
        new Groups((asked, ms) => service.execute(asked, ms), new SeenPositions()),
    )
    if (port === undefined || other === undefined) throw new Error('there are two nodes')
    const close = async (): Promise<void> => services[0]?.stop()
    return placeOn(footing, { port, other, close })
  },
  { ...local, canBeCutOff: true },
)

groupPortContract('a client over a socket', async () => clientPlace(await loneFooting(levelDisk)), {
  ...remote,
  isHeavy: true,
})

groupPortContract('a node of three, simulated', async () => localPlace(await simulatedFooting()), {
  ...local,
  canBeCutOff: true,
})

groupPortContract(
  'a client of two replica sets, simulated',
  async () => clientPlace(await simulatedFooting({}, 2)),
  { ...remote, canBeCutOff: true },
)
