/** A node that was away for long: it catches up with all of it, and takes it into memory by parts. */
import { OrderedJournal } from '../../src/journal/ordered-journal.ts'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { systemRandom } from '../../src/adapters/system-random.ts'
import { clusterId, groupOfBytes, nodeId, type GroupId } from '../../src/base/ids.ts'
import { defaultLimits } from '../../src/base/limits.ts'
import { staticPlacement } from '../../src/placement/placement.ts'
import { silentTrace } from '../../src/ports/trace.ts'
import { Driver } from '../../src/replica/driver.ts'
import { encodeEntry } from '../../src/replication/entry.ts'
import type { DigestRequest, Fetch, Message } from '../../src/replication/message.ts'
import { disks, onDisk } from '../store/stores.ts'
import { ToldTransport } from './told-transport.ts'

const [node, other, third] = [nodeId('n1'), nodeId('n2'), nodeId('n3')]
const placement = staticPlacement([node, other, third])
const ballot = { epoch: 1, round: 1, node: other, incarnation: 1 }
const perDigest = 20
const digests = 50
/** Fetches answered in a turn: far fewer than there are groups named. */
const suppliedAtOnce = 5
const groups = Array.from({ length: perDigest * digests }, (_, n) =>
  groupOfBytes(Buffer.from(`g${String(n).padStart(4, '0')}`)),
)
const limits = {
  ...defaultLimits,
  ...{ groupsInMemoryMax: 10, digestGroupsMax: perDigest },
  ...{ heartbeatMs: 2, digestMs: 50, applierDelayMs: 0, checkpointMs: 0, phaseTimeoutMs: 50 },
}

/** Has one position of each group, and one group a flush. */
class Peer {
  /** The most groups that the node had in memory when it asked for something. */
  inMemoryMax = 0
  /** All groups before this one were named. */
  named = 0
  isAnswering = true
  /** It cannot read one of the first flushes. */
  hasDamage = false
  readonly #fetches = new Map<GroupId, Fetch>()
  readonly #driver: Driver
  readonly #transport: ToldTransport

  constructor(driver: Driver, transport: ToldTransport) {
    this.#driver = driver
    this.#transport = transport
  }

  /** Answers its questions; a few fetches in each turn. */
  answer(): void {
    this.inMemoryMax = Math.max(this.inMemoryMax, this.#driver.status().groupsInMemory)
    const sent = this.#transport.sent.splice(0)
    const digested = sent.filter(isDigestRequest).map((message) => this.#digest(message))
    for (const message of sent.filter(isFetch)) this.#fetches.set(message.group, message)
    const messages = [...digested, ...this.#supply()]
    this.#transport.tell(other, { durableFlush: groups.length, messages })
  }

  #supply(): readonly Message[] {
    if (!this.isAnswering) return []
    const supplied = [...this.#fetches.values()].slice(0, suppliedAtOnce)
    for (const { group } of supplied) this.#fetches.delete(group)
    return supplied.map(entriesFor)
  }

  #digest({ after, asked }: DigestRequest): Message {
    const names = groups.slice(after, after + perDigest).map((name) => [name, 1] as const)
    const through = after + names.length
    this.named = Math.max(this.named, through)
    return {
      kind: 'digest',
      after,
      asked,
      through,
      isWhole: !this.hasDamage || after > 0,
      groups: names,
    }
  }
}

function isDigestRequest(message: Message): message is DigestRequest {
  return message.kind === 'digest-request'
}

function isFetch(message: Message): message is Fetch {
  return message.kind === 'fetch'
}

function entriesFor({ group, epoch }: Fetch): Message {
  const nextLeader = { node: other, incarnation: 1 }
  const value = encodeEntry({
    ...{ position: 1, timestamp: 1, horizon: 0 },
    ...{ nextLeader, transactions: [] },
  })
  const entries = [{ position: 1, ballot, value }]
  return { kind: 'entries', group, epoch, from: 1, entries, committed: 1 }
}

async function withNode(work: (driver: Driver, peer: Peer) => Promise<void>): Promise<void> {
  const [, makeDisk] = disks[0] ?? []
  if (makeDisk === undefined) throw new Error('no disk')
  await onDisk(makeDisk, (log) =>
    onDisk(makeDisk, async (data) => {
      const peers = new ToldTransport()
      const ports = { clock: systemClock, random: systemRandom, trace: silentTrace, peers }
      const stores = { log: new OrderedJournal(await log.open()), data: await data.open() }
      const options = { node, cluster: clusterId('test'), placement, limits }
      const driver = await Driver.open({ ...ports, ...stores }, options)
      await driver.start()
      const peer = new Peer(driver, peers)
      const answering = setInterval(() => peer.answer(), 1)
      peers.link(other)
      try {
        await work(driver, peer)
      } finally {
        clearInterval(answering)
        await driver.stop()
      }
    }),
  )
}

function list(driver: Driver, timeoutMs: number): Promise<readonly GroupId[]> {
  return driver.groups('g', undefined, groups.length + 1, timeoutMs)
}

async function hasAll(driver: Driver): Promise<void> {
  const positionOf = async (group: GroupId): Promise<number> =>
    (await driver.read(group, 'snapshot', 1_000)).position
  for (const group of groups) await expect.poll(() => positionOf(group)).toBe(1)
}

test('LIVE-3, LOG-8: a node that is fifty digests behind takes them up one after the other, and then lists all', () =>
  withNode(async (driver, peer) => {
    expect(await list(driver, 30_000)).toEqual(groups)
    // Groups leave memory as the disk gets on with them: on a busy machine a few digests' worth waits for it, of fifty.
    expect(peer.inMemoryMax).toBeLessThan(10 * perDigest)
    expect(peer.inMemoryMax).toBeGreaterThan(perDigest / 2)
    await hasAll(driver)
  }))

test('LIVE-3, LOG-8: a peer that supplies nothing names no more, and a lister is refused in time', () =>
  withNode(async (driver, peer) => {
    peer.isAnswering = false
    const unavailable = { code: 'unavailable' }
    await expect(list(driver, 300)).rejects.toMatchObject(unavailable)
    expect([driver.status().groupsInMemory, peer.named]).toEqual([perDigest, perDigest])
    peer.isAnswering = true
    expect(await list(driver, 30_000)).toEqual(groups)
  }))

test('LOG-8: a peer that cannot read one of its flushes tells of all others, and is no majority with this node', () =>
  withNode(async (driver, peer) => {
    peer.hasDamage = true
    await hasAll(driver)
    await expect(list(driver, 300)).rejects.toMatchObject({ code: 'unavailable' })
  }))
