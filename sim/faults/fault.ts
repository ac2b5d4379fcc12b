/**
 * Faults as data: what strikes, when, and for how long. A run's faults are a list drawn from its
 * seed before the run begins, so that a scenario can hold the list itself and shrinking can leave
 * some out. Plain JSON. Times are microseconds of the world's clock from the start of the run.
 *
 * The ids are those of the list of faults: NET-, PROC-, DISK-, TIME-, LOAD-.
 */

/** From one endpoint to another; the other direction is a way of its own. */
export type Way = readonly [from: string, to: string]

/**
 * A node has two disks: one for its promises and acceptances, and one for the state derived from
 * them.
 */
export type DiskName = 'log' | 'data'

interface Moment {
  readonly atMicros: number
  /** The name of its draw, when its kind does not tell: campaigns count it under this name, too. */
  readonly name?: string
}

interface Lasting extends Moment {
  readonly lengthMicros: number
}

interface Downing extends Moment {
  readonly node: string
  /** Down for this long, then started again. */
  readonly downMicros: number
}

export type ProcessFault =
  | (Downing & {
      readonly kind: 'crash'
      /** Absent: at once. Otherwise this long after the next write of the victim's disks begins. */
      readonly inWriteMicros?: number
      /**
       * Absent: at once. Otherwise when the victim next puts a group aside for a snapshot, as a write of its
       * data disk begins, after this many others.
       */
      readonly inSwitch?: number
    })
  /**
   * The data disk hangs for this long, while the log goes on; then the node crashes. It crashes
   * again as a write of the data disk begins, after `writesBefore[0]` others since it started, and
   * so on: during the replay of its log.
   */
  | (Downing &
      Lasting & {
        readonly kind: 'crash-in-recovery'
        readonly writesBefore: readonly number[]
      })
  /** The process gets a signal to stop; it starts again this long after it has ended. */
  | (Downing & { readonly kind: 'stop' })
  /** Nothing runs; timers and frames wait, clocks go on. */
  | (Lasting & { readonly kind: 'pause'; readonly node: string })
  /** A pause that begins at the next reading of the clock: the node acts late on that reading. */
  | (Lasting & { readonly kind: 'stall'; readonly node: string })
  /** A pause that begins at the next read of its disks: the node acts late on those rows. */
  | (Lasting & { readonly kind: 'stall-in-read'; readonly node: string })
  /** The machine is suspended: a pause in which its monotonic clock and timers stand still. */
  | (Lasting & { readonly kind: 'suspend'; readonly node: string })

export type NetworkFault =
  | (Lasting & {
      readonly kind: 'cut'
      readonly ways: readonly Way[]
      /** The links concerned break, too, instead of going silent. */
      readonly resets: boolean
    })
  /** The leader of the last written group is cut off from all other nodes, both ways. */
  | (Lasting & { readonly kind: 'isolate-leader' })
  | (Moment & { readonly kind: 'reset'; readonly between: Way })
  /** The next answer to a client is lost with its connection, after its request took effect. */
  | (Moment & { readonly kind: 'lose-reply'; readonly node: string })
  /** Frames sent to the node lately arrive once more, up to this many a way. */
  | (Moment & { readonly kind: 'echo'; readonly node: string; readonly framesMax: number })
  /** Nothing arrives on these ways before the end; then all of it does. */
  | (Lasting & { readonly kind: 'clog'; readonly ways: readonly Way[] })
  /** Everything to and from the node takes this much longer. */
  | (Lasting & { readonly kind: 'slow-node'; readonly node: string; readonly extraMicros: number })

export type DiskFault =
  /** Reads find their rows not at hand, and take about this long; all else goes on meanwhile. */
  | (Lasting & {
      readonly kind: 'slow-read'
      readonly node: string
      readonly disk: DiskName
      readonly extraMicros: number
    })
  | (Lasting & { readonly kind: 'slow-disk'; readonly node: string; readonly extraMicros: number })
  /** The next write fails; it may be on the disk all the same. The node stops, and comes back. */
  | (Downing & { readonly kind: 'fsync-error'; readonly disk: DiskName })
  /** No write works for a while. */
  | (Lasting & { readonly kind: 'no-space'; readonly node: string; readonly disk: DiskName })
  /** A crash in the next write of the log leaves the front part of it, in parts per million. */
  | (Downing & { readonly kind: 'torn-write'; readonly kept: number })
  /** One bit of a stored value flips. `place`: of all values in key order, in parts per million. */
  | (Moment & {
      readonly kind: 'bit-rot'
      readonly node: string
      readonly disk: DiskName
      readonly place: number
      readonly bit: number
      /** Of a log: in the values that flushes carry, of those that carry some. */
      readonly isInValues?: true
      /**
       * Of a data disk: among the newest rows of groups. `lost`: the row is gone, and the disk does not know that
       * there was one. Until the node has counted the group, it shows the group without it, so that only scenarios in
       * which no client looks may have that. `hash`: the state record of a group has another hash, which nothing but
       * another node, or a count, can tell; the node starts anew.
       */
      readonly inRows?: 'bit' | 'lost' | 'hash'
    })
  /** A batch of the log's journal rots while its node is down: `JournalRot`. */
  | (Downing & {
      readonly kind: 'journal-rot'
      readonly place: number
      readonly bit: number
      readonly passedOver: number
      readonly isIllegible?: true
      /** The node dies once more in the write that puts the rest back. */
      readonly diesMending?: true
    })
  /** A write that went to another place: the value at `from` now stands at `to`. */
  | (Moment & {
      readonly kind: 'misdirected-write'
      readonly node: string
      readonly disk: DiskName
      readonly from: number
      readonly to: number
    })
  /**
   * The node comes back with its disks, or its data disk alone, as they were at `imageAtMicros`.
   */
  | (Downing & {
      readonly kind: 'stale-disk'
      readonly disk: 'both' | 'data'
      readonly imageAtMicros: number
    })
  | (Downing & { readonly kind: 'empty-disk'; readonly disk: 'both' | 'data' })
  /** Each of two nodes is started with the other's disks; after a while they are put right. */
  | (Lasting & { readonly kind: 'swapped-disks'; readonly nodes: readonly [string, string] })

export type ClockFault =
  /** A clock jumps: forward both, or the wall clock alone; a monotonic one never goes back. */
  | (Moment & {
      readonly kind: 'clock-jump'
      readonly node: string
      readonly wallMicros: number
      readonly monotonicMicros: number
    })
  /** The wall clock jumps to and fro by this much. */
  | (Lasting & {
      readonly kind: 'clock-strobe'
      readonly node: string
      readonly wallMicros: number
      readonly everyMicros: number
    })

export type LoadFault =
  /** All clients write to one row without a pause. */
  | (Lasting & { readonly kind: 'storm' })
  /** No client begins anything. */
  | (Lasting & { readonly kind: 'idle' })
  /** Some puts are nearly as large as a cell may be. */
  | (Lasting & { readonly kind: 'huge' })
  /** A client dies with whatever it was doing; another one comes up in its place. */
  | (Moment & {
      readonly kind: 'client-death'
      readonly client: string
      readonly downMicros: number
    })
  /** A gateway stands still: its requests wait with it. */
  | (Lasting & { readonly kind: 'client-pause'; readonly client: string })

/** An operator changes the voters of the node's replica set. */
export type MembersFault =
  /** Asks the node, or others of its set when it does not answer, for a new epoch with the same stores. */
  | (Moment & { readonly kind: 'renew'; readonly node: string })
  /**
   * The node and its disks are gone for good. An operator asks the others to replace its store, and starts the node with
   * empty disks this long after they gave it a seat. `backMicros`: this long after the new store votes, the old one has
   * turned up again under the node's name; absent: it never does.
   */
  | (Downing & { readonly kind: 'replace'; readonly backMicros?: number })
  /** An operator has a store replaced that is well, and gives the change up this long after it was made. */
  | (Lasting & { readonly kind: 'mistaken-replace'; readonly node: string })
  /**
   * An operator adds a spare node, and starts it with empty disks this long after it got a seat. `readerMicros`: as a read-only
   * member, which gets a vote this long after it has become one; absent: as a voter.
   */
  | (Downing & { readonly kind: 'add'; readonly readerMicros?: number })
  /** An operator makes the node a read-only member, and gives it its vote back this long after the group has that change. */
  | (Lasting & { readonly kind: 'demote'; readonly node: string })
  /** An operator has a node leave, which may be up or down. Its disks are emptied when it has ended: it is a spare. */
  | (Moment & { readonly kind: 'remove'; readonly node: string })

/** An operator goes from one build to another. */
export type UpgradeFault =
  /** The node starts again with a build that knows cluster versions through this one, and none later. */
  | (Downing & { readonly kind: 'change-build'; readonly build: number })
  /**
   * The operator asks a node of each set, beginning with this one's, to put the last cluster version in force. `looksFirst`: only once
   * each node runs a build that knows it.
   */
  | (Moment & { readonly kind: 'finalize'; readonly node: string; readonly looksFirst: boolean })

export type Fault =
  ProcessFault | NetworkFault | DiskFault | ClockFault | LoadFault | MembersFault | UpgradeFault

export type FaultKind = Fault['kind']

/** In the order in which they strike; what strikes at one moment keeps its place. */
export function inOrder(faults: readonly Fault[]): readonly Fault[] {
  return faults.toSorted((a, b) => a.atMicros - b.atMicros)
}

export const processKinds: readonly ProcessFault['kind'][] = [
  ...([
    'crash',
    'crash-in-recovery',
    'stop',
    'pause',
    'stall',
    'stall-in-read',
    'suspend',
  ] as const),
]
/**
 * Of the bits that flip on a data disk, one in this many flips in a key: the disk then hides that
 * row.
 */
export const hiddenEvery = 3

export const networkKinds: readonly NetworkFault['kind'][] = [
  ...(['cut', 'isolate-leader', 'reset', 'lose-reply', 'echo', 'clog', 'slow-node'] as const),
]
export const diskKinds: readonly DiskFault['kind'][] = [
  ...(['slow-disk', 'slow-read', 'fsync-error', 'no-space', 'torn-write', 'bit-rot'] as const),
  ...(['journal-rot', 'misdirected-write', 'stale-disk', 'empty-disk', 'swapped-disks'] as const),
]
export const clockKinds: readonly ClockFault['kind'][] = ['clock-jump', 'clock-strobe']
export const membersKinds: readonly MembersFault['kind'][] = [
  'renew',
  'replace',
  'mistaken-replace',
  'add',
  'demote',
  'remove',
]

export const upgradeKinds: readonly UpgradeFault['kind'][] = ['change-build', 'finalize']

/** Whether the fault is of one of these kinds. */
export function isOfKind<Kind extends FaultKind>(
  fault: Fault,
  kinds: readonly Kind[],
): fault is Extract<Fault, { readonly kind: Kind }> {
  return kinds.some((kind) => kind === fault.kind)
}
