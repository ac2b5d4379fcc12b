/** A node that its peers have left behind in an epoch which is over. */
import { expect, test } from 'vitest'
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { clusterId, groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { Driver } from '../../src/replica/driver.ts'
import type { Message } from '../../src/replication/message.ts'
import { ToldTransport } from '../replica/told-transport.ts'
import { disks, onDisk } from '../store/stores.ts'

const [node, other, third] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const limits = { ...defaultLimits, digestGroupsMax: 1, digestMs: 50 }

/** A node, and the flush after which it asked for a digest, question by question. */
async function withNode(work: (peers: ToldTransport) => Promise<void>): Promise<void> {
  const [, makeDisk] = disks[0] ?? []
  if (makeDisk === undefined) throw new Error('no disk')
  await onDisk(makeDisk, (log) =>
    onDisk(makeDisk, async (data) => {
      const peers = new ToldTransport()
      const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, peers }
      const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
      const placement = staticPlacement([node, other, third])
      const options = { node, cluster: clusterId('test'), placement, limits }
      const driver = await Driver.open({ ...ports, ...stores }, options)
      await driver.start()
      try {
        await work(peers)
      } finally {
        await driver.stop()
      }
    }),
  )
}

function askedAfter(peers: ToldTransport): readonly number[] {
  return peers.sent.flatMap((one) => (one.kind === 'digest-request' ? [one.after] : []))
}

function lastFetched(peers: ToldTransport): GroupId | undefined {
  const fetches = peers.sent.filter((one) => one.kind === 'fetch')
  return fetches.at(-1)?.group
}

function groupOf(flush: number): GroupId {
  return groupOfBytes(Buffer.from(`open since flush ${flush}`))
}

/** A flush of the peer's that names one group, of which the node gets no entry: nothing can close the position. */
function openGroup(flush: number): Message {
  return {
    ...{ kind: 'digest', after: flush - 1, through: flush, asked: 1 },
    ...{ isWhole: true, groups: [[groupOf(flush), 1]] },
  }
}

const toldOfLater: readonly (readonly [string, Message])[] = [
  ['is past its gate', { kind: 'standing', epoch: 2, gated: 2, isRestored: true }],
  ['waits at its gate for this seal', { kind: 'seal-request', epoch: 2 }],
]

for (const [what, message] of toldOfLater) {
  test(`MOVE-3: a peer in a later epoch ${what}, and a node looks for the row whatever it lacks`, async () => {
    await withNode(async (peers) => {
      await peers.join(other)
      const tell = (...messages: Message[]): void =>
        peers.tell(other, { durableFlush: 9, messages })
      tell()
      await expect.poll(() => askedAfter(peers)).toContain(0)
      // Page by page: one for each such message.
      for (const flush of [1, 2]) {
        tell(openGroup(flush))
        await expect.poll(() => lastFetched(peers)).toBe(groupOf(flush))
        tell(message)
        await expect.poll(() => askedAfter(peers)).toContain(flush)
      }
    })
  })
}
