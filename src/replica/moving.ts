/**
 * Hands a group over from one replica set to another: reads what the old set has of it, and puts that in place at a node of the
 * new one (`../placement/SPEC.md`).
 *
 * MOVE-9   Only of a group whose last entry in this set is applied is anything handed over: it is all that the set ever chooses.
 * MOVE-10  It is taken up whole or not at all, at the position of that entry. Then this node takes part in the log behind it.
 */
import { assert } from '../base/assert.ts'
import { crc32, latin1 } from '../base/bytes.ts'
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Placement } from '../placement/placement.ts'
import type { OwnShares } from '../placement/shares.ts'
import type { SetNodes } from '../placement/set-nodes.ts'
import type { Trace } from '../ports/trace.ts'
import { movedKey, movedTopic } from '../group/moved-row.ts'
import { decodeTopic, findTopicText, worklistStart } from '../group/worklist-key.ts'
import type { AfterRow, MovedEnd, MovedPage, MovingPort } from '../group/moving-port.ts'
import type { SnapshotRow } from '../replication/message.ts'
import { decodeState } from '../replication/state.ts'
import type { DataStore } from '../store/data-store.ts'
import { RowsSum } from '../store/group-hash.ts'
import { crcOfRows, sizeInBytes, toSnapshotRow } from '../store/group-snapshot.ts'
import { allOf, groupPrefix, joined, rowSubspace } from '../store/row-format.ts'
import type { Range } from '../ports/storage.ts'
import type { Peers } from '../peers/peers.ts'
import type { SnapshotSink, SnapshotTaking } from '../peers/snapshot-taking.ts'
import type { Installs } from './installs.ts'
import type { Replica } from './replica.ts'

export interface MovingParts {
  readonly trace: Trace
  readonly node: NodeId
  readonly placement: Pick<Placement, 'siteOf' | 'setOfNode'>
  readonly replica: Pick<Replica, 'applied'>
  readonly shares: Pick<OwnShares, 'of' | 'begins'>
  readonly data: Pick<DataStore, 'applied' | 'drain' | 'get' | 'openSnapshot' | 'scanStored'>
  readonly installs: Pick<Installs, 'begin' | 'clear'>
  /** Snapshots from peers of the set. */
  readonly taking: Pick<SnapshotTaking, 'reserve'>
  readonly nodes: Pick<SetNodes, 'others'>
  readonly peers: Pick<Peers, 'isAlive' | 'linkOf'>
}

export class Moving implements MovingPort {
  readonly #parts: MovingParts
  /** The name of this node's set. */
  readonly #set: string

  constructor(parts: MovingParts) {
    this.#parts = parts
    const { placement, node } = parts
    this.#set = placement.siteOf(placement.setOfNode(node)).name
  }

  position(group: GroupId): Position {
    return this.#parts.replica.applied(group).position
  }

  movedTo(group: GroupId): string | undefined {
    return this.#parts.replica.applied(group).movedTo
  }

  givenTo(group: GroupId): { readonly set: string; readonly term: number } | undefined {
    const { shares } = this.#parts
    const share = shares.of(group)
    if (share === undefined || share.phase === 'leaving' || share.phase === 'here') return undefined
    if (shares.begins(group, false) || this.position(group) > 0) return undefined
    return { set: share.set, term: share.term }
  }

  hasTerm(group: GroupId, term: number): boolean {
    const share = this.#parts.shares.of(group)
    return share !== undefined && share.term >= term
  }

  isCleared(group: GroupId): boolean {
    const isGone = this.movedTo(group) !== undefined
    return isGone && this.#parts.data.get(group, movedKey) === undefined
  }

  findOldNode(): NodeId | undefined {
    const { nodes, peers } = this.#parts
    return nodes.others.find((node) => {
      return peers.isAlive(node) && peers.linkOf(node)?.movesGroups !== true
    })
  }

  async page(
    group: GroupId,
    after: AfterRow | undefined,
    bytesMax: number,
  ): Promise<MovedPage | 'cleared' | undefined> {
    const { replica, data } = this.#parts
    const { position, movedTo } = replica.applied(group)
    if (movedTo === undefined) return undefined
    assert(position > 0, 'MOVE-9: a group has left by no entry')
    if (data.applied(group).position < position) await data.drain()
    if (data.get(group, movedKey) === undefined) return 'cleared'
    const rows: SnapshotRow[] = []
    let bytes = 0
    const prefix = groupPrefix(group)
    for await (const some of data.scanStored(rangeBehind(prefix, after))) {
      for (const { key, stored } of some) {
        if (bytes >= bytesMax) return { position, rows }
        const row = toSnapshotRow(prefix.length, key, stored)
        rows.push(row)
        bytes += sizeInBytes(row)
      }
    }
    // The rows were read bit by bit: some of them may have gone meanwhile.
    if (data.get(group, movedKey) === undefined) return 'cleared'
    const end = await this.#readEnd(group, position)
    // The group may have come back meanwhile.
    return end && { position, rows, end }
  }

  async #readEnd(group: GroupId, position: Position): Promise<MovedEnd | undefined> {
    const snapshot = this.#parts.data.openSnapshot(group)
    if (snapshot === undefined) return undefined
    await snapshot.close()
    const { state, hash } = snapshot
    if (snapshot.position !== position) return undefined
    return hash === undefined ? { state } : { state, hash: Buffer.from(hash, 'latin1') }
  }

  async clear(group: GroupId, position: Position): Promise<readonly string[] | undefined> {
    const { data, trace } = this.#parts
    // It may have come back since, and left again.
    if (this.movedTo(group) === undefined || this.position(group) !== position) return undefined
    if (data.get(group, movedKey) === undefined) return [movedTopic]
    const release = this.#parts.taking.reserve(group)
    if (release === undefined) return undefined
    try {
      const topics = await this.#topics(group)
      if (!(await this.#parts.installs.clear(group, position))) return undefined
      assert(data.get(group, movedKey) === undefined, 'MOVE-13: a group is cleared, and has rows')
      trace.mark('moved_group_cleared')
      return topics
    } finally {
      release()
    }
  }

  /** The topics under which the group has rows on its worklist. */
  async #topics(group: GroupId): Promise<readonly string[]> {
    const all = groupPrefix(group)
    const prefix = joined(all, Uint8Array.of(rowSubspace))
    const lt = joined(all, Uint8Array.of(rowSubspace + 1))
    const topics = new Set<string>()
    const range = { gte: joined(prefix, worklistStart), lt }
    for await (const rows of this.#parts.data.scanStored(range)) {
      for (const { key } of rows) {
        const text = findTopicText(latin1(key.subarray(prefix.length)))
        const topic = text === undefined ? undefined : decodeTopic(text)
        if (topic !== undefined) topics.add(topic)
      }
    }
    return [...topics]
  }

  async take(group: GroupId, pages: AsyncIterable<MovedPage>): Promise<boolean> {
    const release = this.#parts.taking.reserve(group)
    // A peer of this set has the group already, and sends it.
    if (release === undefined) return false
    try {
      return await this.#take(group, pages)
    } finally {
      release()
    }
  }

  async #take(group: GroupId, pages: AsyncIterable<MovedPage>): Promise<boolean> {
    const sink = this.#parts.installs.begin(group)
    let isTaken: boolean | undefined
    try {
      isTaken = await this.#put(group, pages, sink)
    } finally {
      // The next one would find the rows of this one.
      if (isTaken === undefined) await sink.abandon()
    }
    this.#parts.trace.mark(isTaken === true ? 'group_moved_here' : 'moved_group_not_taken')
    return isTaken === true
  }

  /** Undefined: the pages are of no whole group that goes on here. */
  async #put(
    group: GroupId,
    pages: AsyncIterable<MovedPage>,
    sink: SnapshotSink,
  ): Promise<boolean | undefined> {
    const sum = new RowsSum()
    let [crc, first] = [0, 0]
    for await (const page of pages) {
      const { position, rows, end } = page
      // The group may have come back to its set meanwhile, and left it again.
      if (first > 0 && position !== first) return undefined
      first = position
      for (const { subspace, key, stamp, payload } of rows) {
        if (subspace === rowSubspace) sum.add(key, stamp, payload)
      }
      crc = crcOfRows(rows, crc)
      if (!(await sink.add(rows, new Uint8Array()))) return undefined
      if (end === undefined) continue
      if (!this.#isWhole(position, end, sum) || !(await sink.add([], end.state))) return undefined
      const isTaken = await sink.finish(position, crc32(end.state, crc))
      assert(
        !isTaken || this.#isHere(group, position),
        'MOVE-10: a group is taken, and is not here',
      )
      return isTaken
    }
    return undefined
  }

  /** Whether the state record is of that position and names this set, and the rows are those that the other set counted. */
  #isWhole(position: Position, { state, hash }: MovedEnd, sum: RowsSum): boolean {
    const of = decodeState(state)
    if (of?.position !== position || of.movedTo !== this.#set) return false
    return hash === undefined || latin1(hash) === sum.hash
  }

  /** The group may have gone on since, and have left this set as well. */
  #isHere(group: GroupId, position: Position): boolean {
    return this.movedTo(group) === undefined || this.position(group) > position
  }
}

/** All rows and versions of the group behind that one, and behind its prefix. */
function rangeBehind(prefix: Uint8Array, after: AfterRow | undefined): Range {
  const { gte, lt } = allOf(prefix)
  if (after === undefined) return { gte, lt }
  return { gt: joined(joined(prefix, Uint8Array.of(after.subspace)), after.key), lt }
}
