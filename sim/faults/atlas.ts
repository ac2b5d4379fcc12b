/**
 * The atlas: which disks are hurt, and which damage may still be dealt, so that what the run relies
 * on stays recoverable. Without it a run with damaged disks is no proof of anything.
 *
 * - At most a minority of the nodes of a replica set ever has a damaged log: every record that a
 *   majority holds is whole at one node that was never hurt. The core of the liveness phase is made
 *   of such nodes.
 * - A log that went back in time, or is empty, is refused by peers that remember how far it was. So
 *   all others must remember it durably, and from then on nothing that forgets it is dealt to them. A store that was
 *   replaced comes back only when all others durably know the one in its place.
 * - A damaged data disk is made anew from the log of its node (as the daemon does): any number, where
 *   logs keep all flushes. Where they give up some, the peers restore it (LOG-19): then such nodes count like those with
 *   damaged logs, for a majority of the others has to be whole.
 * - Two nodes with each other's disks refuse to start, and write nothing: nothing is hurt.
 *
 * A node that rightly refuses its log stays down for the rest of the run.
 */
import { flushesFrom, numberOfKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { StoreError } from '../../src/base/errors.ts'
import { decodeFlush } from '../../src/log/flush.ts'
import { metaName, tryDecodeMeta, type Identity } from '../../src/log/log-meta.ts'
import { firstEpochs, type OwnEpochs } from '../../src/log/own-epochs.ts'
import {
  decodeEpochs,
  decodeMemory,
  memoryName,
  type Remembered,
} from '../../src/log/peer-memory.ts'
import { computeMajority } from '../../src/placement/placement.ts'
import type { DiskImage } from '../world/disk.ts'
import type { LogDisk } from '../world/log-disk.ts'

/** The treatment of a node that would not start, or stopped by itself. */
export type Treatment =
  | 'reset-data'
  | 'retire'
  /** Its disk refused a write: it may come back. */
  | 'start-again'
  /** It has the disks of another node: it stays down until that is put right. */
  | 'wait'
  | 'unexpected'

export interface NodeDisks {
  readonly log: LogDisk
  readonly data: LogDisk
}

export class Atlas {
  readonly #disks: ReadonlyMap<string, NodeDisks>
  readonly #sets: readonly (readonly string[])[]
  readonly #hurtLogs = new Set<string>()
  readonly #hurtData = new Set<string>()
  readonly #onceHurtData = new Set<string>()
  readonly #forgetful = new Set<string>()
  readonly #refusing = new Set<string>()
  readonly #swapped = new Set<string>()
  /** Data disks that came to harm while their logs had given up flushes. */
  readonly #lacking = new Set<string>()
  /** Nodes without a part in the cluster, and those that were added to the first set. */
  readonly #added = new Set<string>()
  readonly #spares = new Set<string>()
  /** They have no vote, or are about to lose it. */
  readonly #removed = new Set<string>()
  /** Nodes whose stores have no vote as yet: empty ones, and read-only members. */
  readonly #replacing = new Set<string>()
  /** Nodes whose first store is lost: the log of the next one begins later than its data. */
  readonly #seated = new Set<string>()
  /** The stores that have lost their disks, and their votes to others. */
  readonly #lostStores = new Set<string>()
  readonly #areLogsWhole: boolean

  /** `sets`: the nodes of each replica set; absent: all are in one. `areLogsWhole`: no log gives up flushes. */
  constructor(
    disks: ReadonlyMap<string, NodeDisks>,
    sets: readonly (readonly string[])[] = [[...disks.keys()]],
    areLogsWhole = true,
    spares: readonly string[] = [],
  ) {
    this.#disks = disks
    this.#sets = sets
    this.#areLogsWhole = areLogsWhole
    for (const one of spares) this.becomeSpare(one)
  }

  /** The nodes that vote on what the node holds, as far as a disk durably names them. */
  /** The first node of the replica set that the node is of, or may come to. */
  firstOf(node: string): string {
    const set = this.#sets.find((one) => one.includes(node)) ?? this.#sets[0]
    return set?.[0] ?? node
  }

  setOf(node: string): readonly string[] {
    const first = this.#sets.find((set) => set.includes(node)) ?? this.#sets[0] ?? []
    const all = first === this.#sets[0] ? [...first, ...this.#added] : first
    const newest = all
      .map((one) => this.#readEpochs(one))
      .reduce((a, b) => ((b?.epoch ?? 0) > (a?.epoch ?? 0) ? b : a), undefined)
    return newest?.voters ?? first
  }

  /** The node is to be added to the first set; false: it is no spare, or is being added. */
  add(node: string): boolean {
    if (!this.#spares.has(node)) return false
    this.#spares.delete(node)
    this.#added.add(node)
    return true
  }

  /** The node is to have no vote any more, and counts as lost at once; false: that must not happen. */
  remove(node: string): boolean {
    const set = this.setOf(node)
    if (set.length < 2 || this.#swapped.size > 0 || !set.includes(node)) return false
    if (!this.#mayLeave(node, set)) return false
    this.#replacing.add(node)
    this.#removed.add(node)
    return true
  }

  /** The node is to be a read-only member, and counts as lost until it has its vote back; false: that must not happen. */
  demote(node: string): boolean {
    const set = this.setOf(node)
    if (set.length < 2 || this.#swapped.size > 0 || !set.includes(node)) return false
    // One that stays down for good would never get its vote back.
    if (!this.isSound(node) || this.isForgetful(node)) return false
    if (!this.#mayLeave(node, set)) return false
    this.#replacing.add(node)
    return true
  }

  /** The others are a majority of the voters that are left, and of those before, or with the seal of the one that leaves. */
  #mayLeave(node: string, set: readonly string[]): boolean {
    if (set.some((one) => this.#replacing.has(one) && !this.#removed.has(one))) return false
    const well = set.filter((one) => this.isSound(one) && this.isSettled(one))
    const others = well.filter((one) => one !== node).length
    return (
      others >= computeMajority({ length: set.length - 1 }) && well.length >= computeMajority(set)
    )
  }

  /** Whether the node has its vote no more, or is about to lose it. */
  isRemoved(node: string): boolean {
    return this.#removed.has(node)
  }

  /** Its store is gone: it may be added with another one. */
  becomeSpare(node: string): void {
    for (const one of [this.#hurtLogs, this.#hurtData, this.#lacking]) one.delete(node)
    for (const one of [this.#forgetful, this.#refusing, this.#removed]) one.delete(node)
    this.#seated.add(node)
    this.#spares.add(node)
    this.#replacing.add(node)
  }

  /** Whether the node knows all of its votes: such nodes alone can be relied on. */
  isSound(node: string): boolean {
    return !this.isHurt(node) && !this.#replacing.has(node)
  }

  /** Whether the node durably votes in the newest epoch that a node of its set has heard of. */
  isSettled(node: string): boolean {
    const epochs = this.setOf(node).map((one) => this.#readEpochs(one))
    const newest = Math.max(...epochs.map((one) => one?.epoch ?? 0))
    const own = this.#readEpochs(node)
    if (own === undefined) return false
    const { epoch, gated, isMember, blocked } = own
    return isMember && epoch === newest && gated === epoch && blocked.length === 0
  }

  /** Undefined: there is none, or it is damaged. */
  #readEpochs(node: string): OwnEpochs | undefined {
    const value = this.#disks.get(node)?.log.durableValue(latin1(recordKey(memoryName)))
    // An empty log that is no other one's: it is yet to begin.
    if (value === undefined) return this.#replacing.has(node) ? undefined : firstEpochs
    return decodeEpochs(value)
  }

  /** Takes into account that both disks of the node are gone for good; false: that must not happen. */
  loseStore(node: string): boolean {
    if (this.#swapped.size > 0 || !this.outvote(node)) return false
    for (const one of [this.#hurtLogs, this.#hurtData, this.#lacking]) one.delete(node)
    for (const one of [this.#forgetful, this.#refusing]) one.delete(node)
    this.#seated.add(node)
    const lost = identityOf(this.#disks.get(node)?.log.durableValue(latin1(recordKey(metaName))))
    if (lost !== undefined) this.#lostStores.add(lost.storeId)
    return true
  }

  /** The others are to go on without the vote of the node's present store; false: that must not happen. */
  outvote(node: string): boolean {
    const set = this.setOf(node)
    // A node without a vote has none that is to be replaced.
    if (!set.includes(node)) return false
    const isOther = set.some((one) => this.#replacing.has(one) && !this.#removed.has(one))
    if (isOther || !this.#areOthersEnough(node)) return false
    this.#replacing.add(node)
    return true
  }

  /** Records of its log may be damaged, or its data lost. */
  isHurt(node: string): boolean {
    return this.#hurtLogs.has(node) || this.#lacking.has(node)
  }

  /** The node's store votes: a new one, or the old one again. */
  endReplacing(node: string): void {
    this.#replacing.delete(node)
  }

  /** Whether the log of the node has all that its data came from. */
  #isLogWhole(node: string): boolean {
    return this.#areLogsWhole && !this.#seated.has(node)
  }

  /** Its log went back in time, or is another: it must not vote again. */
  isForgetful(node: string): boolean {
    return this.#forgetful.has(node)
  }

  isSwapped(node: string): boolean {
    return this.#swapped.has(node)
  }

  hasHurtData(node: string): boolean {
    return this.#hurtData.has(node)
  }

  /** It may have said so, which clients may hear of later. */
  hadHurtData(node: string): boolean {
    return this.#onceHurtData.has(node)
  }

  /** Takes the damage of a node's log into account; false: it must not be dealt. */
  hurtLog(node: string): boolean {
    if (this.#swapped.size > 0 || !this.#mayHurt(node)) return false
    this.#hurtLogs.add(node)
    return true
  }

  #mayHurt(node: string): boolean {
    if (this.#replacing.has(node)) return false
    return !this.isSound(node) || this.#areOthersEnough(node)
  }

  /** Whether a majority of well voters is left without the node. */
  #areOthersEnough(node: string): boolean {
    const set = this.setOf(node)
    const well = set.filter((one) => one !== node && this.isSound(one) && this.isSettled(one))
    return well.length >= computeMajority(set)
  }

  /** The same for a log that forgets: `image` is what will be there, nothing when it is empty. */
  forgetLog(node: string, image: DiskImage): boolean {
    const set = this.setOf(node)
    const keepers = [...this.#disks].filter(([name]) => name !== node && set.includes(name))
    const store = identityOf(image.get(latin1(recordKey(metaName))))?.storeId ?? ''
    const isOfLost = this.#lostStores.has(store)
    const isRemembered = keepers.every(([, { log }]) => {
      const known = readRemembered(log, node)
      // The memory of a store before this one says nothing about this one.
      if (known === undefined || this.#lostStores.has(known.storeId)) return false
      return isOfLost || known.durableFlush > findLastFlush(image)
    })
    if (!isRemembered || !this.hurtLog(node)) return false
    this.#forgetful.add(node)
    this.#noteHurtData(node)
    return true
  }

  /** The same for a data disk: what its node knows of its peers' logs is not lost with it. */
  hurtData(node: string): boolean {
    const isWhole = this.#isLogWhole(node)
    if (this.#swapped.size > 0 || (!isWhole && !this.#mayHurt(node))) return false
    this.#noteHurtData(node)
    if (!isWhole) this.#lacking.add(node)
    return true
  }

  #noteHurtData(node: string): void {
    this.#hurtData.add(node)
    this.#onceHurtData.add(node)
  }

  /** It has a data disk of another time, which it can use where its log is whole. */
  exchangeData(node: string): void {
    if (this.#isLogWhole(node)) this.mendData(node)
  }

  /** The data disk was made anew. */
  mendData(node: string): void {
    this.#hurtData.delete(node)
  }

  swap(nodes: readonly [string, string]): boolean {
    if (this.#swapped.size > 0 || !nodes.every((node) => this.isSound(node))) return false
    for (const node of nodes) this.#swapped.add(node)
    return true
  }

  swapBack(): void {
    this.#swapped.clear()
  }

  /** A write of this node will be refused. */
  refuse(node: string): void {
    this.#refusing.add(node)
  }

  /**
   * LOG-10, at the end of a run: the nodes whose log does not say how far a peer's log is, a
   * sentence each.
   */
  notesLacking(nodes: readonly string[]): readonly string[] {
    const sound = nodes.filter((node) => this.isSound(node))
    const lacking: string[] = []
    for (const node of sound) {
      for (const peer of this.setOf(node)) {
        const [own, its] = [this.#disks.get(node)?.log, this.#disks.get(peer)?.log]
        if (node === peer || !sound.includes(peer) || own === undefined || its === undefined)
          continue
        const [noted, last] = [
          readRemembered(own, peer)?.durableFlush ?? 0,
          its.durableKeys(flushesFrom(1)).at(-1),
        ]
        const wanted = last === undefined ? 0 : (numberOfKey(fromLatin1(last)) ?? 0)
        if (noted < wanted) lacking.push(`${node} has noted flush ${noted} of ${peer}'s ${wanted}`)
      }
    }
    return lacking
  }

  /** The treatment that a node's end by itself calls for. */
  classifyError(node: string, error: unknown): Treatment {
    if (!(error instanceof StoreError)) return 'unexpected'
    const { code, detail } = error
    if (code === 'invalid' && this.#swapped.has(node)) return 'wait'
    if (code === 'unavailable' && this.#refusing.has(node)) return 'start-again'
    if (code !== 'corrupt') return 'unexpected'
    if (detail.store === 'data') return this.#hurtData.has(node) ? 'reset-data' : 'unexpected'
    return this.#hurtLogs.has(node) || this.#removed.has(node) ? 'retire' : 'unexpected'
  }
}

/** The number of the last flush of a log disk's image, 0 when there is none. */
export function findLastFlush(image: DiskImage): number {
  const { gte, lt } = flushesFrom(1)
  let last = 0
  for (const [key, value] of image) {
    if (key < latin1(gte) || key >= latin1(lt)) continue
    last = Math.max(last, decodeFlush(value)?.number ?? 0)
  }
  return last
}

/**
 * Whether the image is that of a sound log which has been used: it has a record of its identity.
 */
export function isUsedLog(image: DiskImage): boolean {
  const identity = identityOf(image.get(latin1(recordKey(metaName))))
  return identity !== undefined && identity.incarnation > 0
}

/** Undefined: there is none, or it is damaged, which is for the node itself to find. */
function identityOf(meta: Uint8Array | undefined): Identity | undefined {
  return meta && tryDecodeMeta(meta)
}

/** The store of `peer`, and how far its log was, as a log disk durably knows them. */
function readRemembered(log: LogDisk, peer: string): Remembered | undefined {
  const value = log.durableValue(latin1(recordKey(memoryName)))
  const known = value === undefined ? undefined : decodeMemory(value)
  return known?.find(({ node }) => node === peer)
}
