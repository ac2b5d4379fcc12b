/**
 * Compares all replicas with the model and with one another, once everything is quiet: replicas
 * that are behind, each one's rows, and its cells as read through it.
 */
import { flushesFrom } from '../../src/journal/ordered-journal.ts'
import { AssertionError } from '../../src/base/assert.ts'
import { StoreError } from '../../src/base/errors.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { compareBytes, fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { unpackBody } from '../../src/cells/body.ts'
import {
  bufferRange,
  bufferTopic,
  decodeRejected,
  rejectedTopic,
  type BufferTopic,
} from '../../src/cells/buffer-rows.ts'
import type { Cell, StoredCell } from '../../src/cells/cell.ts'
import type { StoredLogPage } from '../../src/cells/operation.ts'
import type { Outcome } from '../../src/base/problem.ts'
import { DamagedGroup } from '../../src/store/damage.ts'
import type { ClientFrame } from '../../src/wire/client/client-message.ts'
import type { Node } from '../../src/node/compose.ts'
import { toSeen, encodeBody } from '../workloads/cell-reads.ts'
import { datastore } from '../workloads/datastore.ts'
import { RowSum } from '../checkers/row-sum.ts'
import { checkChain, checkHashes } from './chain-look.ts'
import type { Cluster } from './cluster.ts'
import type { NodeHost } from './node-host.ts'

export type SimCluster = Cluster<Node, ClientFrame>

/** How often a busy node gets the request again, with a pause between two tries. */
const busyLooksMax = 100
const busyPauseMicros = 50_000

/** In quiet a flush is written, and a batch after it, in much less. */
const renewalMicros = 10_000_000

function isFlushAfter(key: Uint8Array, flush: number): boolean {
  const { gte, lt } = flushesFrom(flush + 1)
  return compareBytes(key, gte) >= 0 && compareBytes(key, lt) < 0
}

/** Something that is being read through a node. */
interface Look {
  readonly host: NodeHost<Node>
  readonly program: Node
  isOver: boolean
}

export class Comparison {
  readonly #cluster: SimCluster
  readonly #shards: readonly number[]
  #looks: Look[] = []

  constructor(cluster: SimCluster, shards: readonly number[]) {
    this.#cluster = cluster
    this.#shards = shards
  }

  /** Begins to read everything through every node. */
  begin(): void {
    const { inService, judge } = this.#cluster
    this.#looks = []
    for (const host of inService) {
      if (host.disks.data.disk.hasToldDamage && host.program !== undefined) {
        const text = `DISK-15: node ${host.name} goes on with a data disk that it knows is damaged`
        this.#cluster.world.fail(new AssertionError(text))
      }
      this.#checkTold(host)
      this.#checkDisks(host)
      // Inspects all groups in one turn, which no real caller would do.
      host.overlookTurn()
      for (const group of judge.book.groups) {
        if (!this.#cluster.holds(host.name, toGroup(group))) continue
        this.#begin(host, (program) => this.#inspect(host, program, toGroup(group)))
      }
      this.#begin(host, (program) => this.#readAllBack(host, program))
    }
  }

  /**
   * A node reports damage that its scrub has found in its log, and its next start does not fold the
   * damaged flushes.
   */
  #checkTold({ name, disks, program }: NodeHost<Node>): void {
    const { disk } = disks.log
    if (program === undefined || disk.told === undefined) return
    const { world } = this.#cluster
    const { logDamages, settledFlush } = program.status().replica
    const fail = (what: string): void =>
      world.fail(new AssertionError(`DISK-16: node ${name} knows that its log is damaged, ${what}`))
    if (logDamages === 0) fail('and does not say so')
    if (world.nowMicros - disk.told.atMicros < renewalMicros) return
    for (const key of disk.told.keys) {
      const isNeeded = isFlushAfter(key, settledFlush)
      if (isNeeded && disk.isHurt(key)) fail('and its next start would fold a damaged flush')
    }
  }

  /** Damage of either disk may hide the way; other checks tell of damage. */
  #checkDisks({ name, disks }: NodeHost<Node>): void {
    const { atlas, referee } = this.#cluster
    if (!atlas.isSound(name) || atlas.hadHurtData(name)) return
    checkChain({ node: name, log: disks.log.disk, data: disks.data.disk }, referee)
    checkHashes({ node: name, data: disks.data.disk }, referee)
  }

  /** Whether everything was read, but through nodes that ended meanwhile. */
  isDone(): boolean {
    return this.#looks.every(({ host, program, isOver }) => isOver || host.program !== program)
  }

  /** A replica's rows against the model, as of the position it has applied at this moment. */
  inspect(node: string, group: string): void {
    const host = this.#cluster.hosts.find((one) => one.name === node)
    if (host !== undefined) {
      this.#begin(host, (program) => this.#inspect(host, program, toGroup(group)))
    }
  }

  #begin(host: NodeHost<Node>, read: (program: Node) => Promise<void>): void {
    const { program } = host
    if (program === undefined) return
    const look = { host, program, isOver: false }
    this.#looks.push(look)
    read(program).then(
      () => (look.isOver = true),
      (error: unknown) => {
        look.isOver = true
        if (!this.#isExcused(look, error)) this.#cluster.world.fail(error)
      },
    )
  }

  /** It ended meanwhile, or its data disk is damaged and says so: it will be made anew. */
  #isExcused({ host, program }: Look, error: unknown): boolean {
    if (!(error instanceof StoreError)) return false
    if (host.program !== program) return true
    if (error instanceof DamagedGroup) return this.#cluster.atlas.hadHurtData(host.name)
    return error.code === 'corrupt' && this.#cluster.atlas.hasHurtData(host.name)
  }

  async #inspect(host: NodeHost<Node>, program: Node, group: GroupId): Promise<void> {
    const { judge } = this.#cluster
    const position = judge.log.appliedPosition(host.name, group)
    const rows = await program.replica.scan(group, {}).catch((error: unknown) => {
      if (this.#isRefusalOfLeft(host.name, group, error)) return undefined
      throw error
    })
    if (host.program !== program || rows === undefined) return
    const sum = new RowSum()
    for (const { key, value, timestamp } of rows) sum.toggle(key, value, timestamp, true)
    judge.log.onRowsSeen(host.name, group, position, sum)
  }

  /** MOVE-11: a node shows nothing of a group that has left its set. */
  #isRefusalOfLeft(node: string, group: GroupId, error: unknown): boolean {
    const { log, book } = this.#cluster.judge
    const position = log.appliedPosition(node, group)
    const isRefusal = error instanceof StoreError && error.code === 'unavailable'
    return isRefusal && book.voters.isLastOf(node, { group, position })
  }

  /** One shard after another: a node may be bound to a few requests at once, and has others too. */
  async #readAllBack(host: NodeHost<Node>, program: Node): Promise<void> {
    for (const shard of this.#shards) {
      if (host.program !== program) return
      await this.#readBack(host, program, shard)
    }
  }

  /** The whole log of a shard through one node's own cell store. */
  async #readBack(host: NodeHost<Node>, program: Node, shard: number): Promise<void> {
    const { referee, judge, world } = this.#cluster
    const { cells: checker } = judge
    const limit = 1000
    for (let after = 0, busyLooks = 0; ;) {
      const info = { client: host.name, startTick: checker.begin(), isCurrent: true }
      const read = { level: 'current', atLeast: [] } as const
      const items = [{ kind: 'after', shard, addedId: after }] as const
      const { answer } = await program.cells.execute(
        { kind: 'log', datastore, read, items, limit, waitMs: 0 },
        { timeoutMs: 20_000 },
      )
      if (host.program !== program) return
      const [page] = answer.kind === 'log' ? answer.items : []
      if (isBusy(page) && busyLooks < busyLooksMax) {
        busyLooks += 1
        await world.sleep(busyPauseMicros)
        continue
      }
      if (page?.kind !== 'ok') {
        referee.check(
          this.#cluster.atlas.hasHurtData(host.name),
          'LIVE-2',
          'A shard could not be read through a node at the end.',
          () => ({ node: host.name, shard, answer: page, seconds: world.nowMicros / 1_000_000 }),
        )
        return
      }
      const { cells, next } = page.value
      checker.onShardRead(
        shard,
        { after, limit },
        cells.map((one) => toSeen(toCell(one))),
        info,
      )
      if (cells.length < limit) return
      after = next
    }
  }

  /** Checks the cells acknowledged as buffered, once every shard was read to its end. */
  checkBuffered(): void {
    const { judge } = this.#cluster
    const rejected = new Set(this.#buffered(rejectedTopic).map(rejectedName))
    judge.cells.onDrained(({ row, column, refKey }, body) =>
      rejected.has([row, column, refKey, body].join(' ')),
    )
  }

  /** Rows that the chosen logs have under a topic of buffers. */
  #buffered(topic: BufferTopic): (readonly [key: Uint8Array, value: Uint8Array])[] {
    const { book, model } = this.#cluster.judge
    const prefix = latin1(bufferRange(topic).gte)
    return book.groups.flatMap((group) =>
      [...model.of(group).rows].flatMap(([key, { value }]) =>
        key.startsWith(prefix) ? [[fromLatin1(key), value] as const] : [],
      ),
    )
  }

  /** The replicas that are behind, in words; empty when there are none. */
  laggards(): readonly string[] {
    const { judge, inService, atlas } = this.#cluster
    const closed = inService.filter((host) => host.program === undefined)
    const forgetful = inService.filter((host) => atlas.isForgetful(host.name))
    const groups = judge.book.groups.flatMap((group) => this.#findLaggards(group))
    const waiting = this.#buffered(bufferTopic).length
    return [
      ...(waiting === 0 ? [] : [`${waiting} cells wait in buffers`]),
      ...closed.map((host) => `${host.name} is not open`),
      ...forgetful.map((host) => `${host.name} has an old disk, and nobody refuses it`),
      ...atlas.notesLacking(inService.map((host) => host.name)),
      ...groups,
    ]
  }

  #findLaggards(group: string): string[] {
    const { judge, inService } = this.#cluster
    const { position } = judge.model.of(group)
    const name = Buffer.from(group, 'latin1').toString('hex').slice(-8)
    const open = this.#openPositions(group)
    const holes = open === 0 ? [] : [`${name}: ${open} open positions above ${position}`]
    const behind = inService.flatMap((host) => {
      if (!this.#cluster.holds(host.name, toGroup(group))) return []
      const applied = judge.log.appliedPosition(host.name, group)
      const drained = judge.disks.findPosition(host.name, group)
      const isAside = judge.log.isIll(host.name, group)
      if (applied === position && drained === position && isAside) {
        return [`${name}: ${host.name} has it aside, and no peer has mended it`]
      }
      if (applied === position && drained === position) return []
      return [`${name}: ${host.name} applied ${applied}, drained ${drained} of ${position}`]
    })
    return [...holes, ...behind]
  }

  hasHoles(): boolean {
    return this.#cluster.judge.book.groups.some((group) => this.#openPositions(group) > 0)
  }

  /**
   * Positions at which a node in service with a sound log accepted a value, and no value is chosen
   * (LOG-5). A damaged log may have lost its values.
   */
  #openPositions(group: string): number {
    const { judge, inService, atlas } = this.#cluster
    const sound = inService.filter((host) => atlas.isSound(host.name)).map((host) => host.name)
    const { position } = judge.model.of(group)
    const views = judge.book.listPositions(group)
    return views.filter(
      (view) =>
        view.position > position &&
        sound.some((node) => view.acceptors.get(node)?.accepted !== undefined),
    ).length
  }
}

function rejectedName([key, value]: readonly [Uint8Array, Uint8Array]): string {
  const { rowKey, column, refKey, body } = decodeRejected(key, value)
  return [rowKey, column, refKey, encodeBody(unpackBody(body) ?? null)].join(' ')
}

function toGroup(group: string): GroupId {
  return groupOfBytes(fromLatin1(group))
}

function toCell(stored: StoredCell): Cell {
  return { ...stored, body: unpackBody(stored.body) ?? null }
}

function isBusy(page: Outcome<StoredLogPage> | undefined): boolean {
  return page?.kind === 'problem' && page.problem.code === 'overloaded'
}
