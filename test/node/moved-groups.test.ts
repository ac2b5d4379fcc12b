/** Groups that have left: their pages at a node that was behind its set, a set that can take none up, and an end of clearing them. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import { movedError } from '../../src/group/moved-error.ts'
import type { SharesPort } from '../../src/members/share-requests.ts'
import type { MovedPage, MovingPort } from '../../src/group/moving-port.ts'
import { MovedSweep } from '../../src/node/moved-sweep.ts'
import { Routing } from '../../src/node/routing.ts'
import { placementOver, type Placement } from '../../src/placement/placement.ts'
import type { Transport } from '../../src/ports/transport.ts'
import type { GroupOperation } from '../../src/txn/group-operation.ts'
import { WorklistService } from '../../src/worklist/worklist-service.ts'
import { GroupService } from '../../src/txn/group-service.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import { MemoryLog } from '../cells/memory-log.ts'
import { MemoryReplica } from '../cells/memory-replica.ts'

const sets = ['east', 'west', 'north']
const nodes = sets.map((set) => [1, 2, 3].map((number) => nodeId(`${set}${number}`)))
const placement: Placement = placementOver(
  nodes,
  [],
  sets.map((name) => ({ name })),
)
const group: GroupId = groupOfBytes(encodeTuple(['tables', 'Shop', 7]))
const page: MovedPage = { position: 9, rows: [], end: { state: Uint8Array.of(1) } }
const notHere = new Error('nothing here is to be asked for')

/** Nodes of other sets of which no link comes up. */
class Unlinked implements Transport<ClientFrame> {
  start(): void {
    // No link comes up.
  }

  send(): boolean {
    throw notHere
  }

  isUp(): boolean {
    return false
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

const notAsked = (): Promise<never> => Promise.reject(notHere)
/** No bucket has gone from set to set. */
const noShares: SharesPort = {
  row: [],
  of: () => undefined,
  isBehindGate: () => true,
  isVoid: () => false,
  ...{ leave: notAsked, stay: notAsked, close: notAsked, settle: notAsked, finish: notAsked },
  receive: notAsked,
  checkVersion: () => undefined,
}

/** A node of a set that the group has left, as the node finds out by a current read in that set. */
class Node {
  readonly routing: Routing
  reads = 0
  #hasHeard = false

  constructor(set: number, hasPart: boolean) {
    const moving: MovingPort = {
      position: () => (this.#hasHeard ? page.position : 0),
      movedTo: () => (this.#hasHeard ? 'north' : undefined),
      page: () => Promise.resolve(this.#hasHeard ? page : undefined),
      clear: () => Promise.reject(notHere),
      findOldNode: () => undefined,
      givenTo: () => undefined,
      hasTerm: () => false,
      isCleared: () => false,
      take: () => Promise.reject(notHere),
    }
    const replica = Object.assign(new MemoryReplica(new MemoryLog(), systemClock), {
      holds: () => hasPart,
      read: () => {
        this.reads += 1
        this.#hasHeard = true
        return Promise.reject(movedError(group, 'north'))
      },
    })
    const node = nodeId(`${sets[set]}1`)
    const common = { replica, clock: systemClock, random: systemRandom }
    const others = sets.map((_, number) => number).filter((number) => number !== set)
    this.routing = new Routing({
      ...{ node, placement, moving, shares: noShares, ...common },
      groups: new GroupService(common),
      worklists: new WorklistService({ node, ...common }),
      elsewhere: new Map(others.map((number) => [number, new Unlinked()])),
    })
  }
}

const asked: GroupOperation = { kind: 'export-group', group }
const timeoutMs = 300

test.each([
  ['the group began in its set', placement.setOf(group), true],
  ['it has nothing of the group yet', (placement.setOf(group) + 1) % sets.length, false],
])(
  'MOVE-9: a node that is behind its set hears of the last entry there, and asks no other set before it hands the group over: %s',
  async (_, set, hasPart) => {
    const node = new Node(set, hasPart)
    expect(await node.routing.execute(asked, timeoutMs)).toEqual({ kind: 'export-group', page })
    expect(node.reads).toBe(1)
    await node.routing.close()
  },
)

test('a set without a majority takes no group up, and says which set that is', async () => {
  const node = new Node(0, true)
  const answer = await node.routing.execute({ kind: 'admit-group', group, from: 'west' }, timeoutMs)
  expect(answer).toMatchObject({ kind: 'problem', problem: { code: 'unavailable' } })
  expect(answer).toHaveProperty(
    'problem.message',
    expect.stringContaining('no majority of replica set east answers'),
  )
  await node.routing.close()
})

test('a node that stops clears no further group of a set that does not answer', async () => {
  let [begun, ended] = [0, 0]
  const clear = async (isOver: () => boolean): Promise<void> => {
    begun += 1
    while (!isOver()) await new Promise(setImmediate)
    ended += 1
  }
  const onFailed = (error: unknown): void => expect.fail(String(error))
  const sweep = new MovedSweep({ clock: systemClock, sweepMs: 1, clear, onFailed })
  sweep.start()
  await expect.poll(() => begun).toBe(1)
  await sweep.stop()
  expect(ended).toBe(1)
})
