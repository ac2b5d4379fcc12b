/**
 * Sends snapshots of groups to peers that lack what this node's log cannot give them, part by part as they ask for it.
 *
 * A snapshot keeps what the store has superseded since it was opened. The sender gives it up when no part has left for
 * `snapshotPinMs`, or when the peer asks for something else. As long as parts leave, it ends: its size is fixed, and the
 * pace has a floor. A limit on the whole would shut out a group that is larger than the pace allows in that time.
 */
import type { GroupId, NodeId, Position } from '../base/ids.ts'
import type { Limits } from '../base/limits.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { Trace } from '../ports/trace.ts'
import type { Message, SnapshotPart, SnapshotRequest, SnapshotRow } from '../replication/message.ts'
import { DamagedGroup } from '../store/damage.ts'
import { SnapshotPace } from './snapshot-pace.ts'

/** A snapshot that is read (`../store/group-snapshot.ts`). */
export interface ReadSnapshot {
  readonly position: Position
  next(bytesMax: number): Promise<{
    readonly rows: readonly SnapshotRow[]
    readonly state: Uint8Array
    readonly crc: number | undefined
    /** The rows are not those that the group's state record counts (HASH-1). */
    readonly isDamaged?: boolean
  }>
  close(): Promise<void>
}

export interface SnapshotSupplyParts {
  readonly clock: Clock
  readonly trace: Trace
  readonly limits: Pick<
    Limits,
    | 'snapshotsMax'
    | 'snapshotPartBytesMax'
    | 'snapshotPinMs'
    | 'snapshotBytesPerSecond'
    | 'snapshotGroupsPerSecond'
  >
  /** Undefined: there is none to give now. */
  open(group: GroupId): ReadSnapshot | undefined
  send(to: NodeId, message: Message): void
  /** Its rows here are not those that its state record counts. */
  onDamaged(group: GroupId): void
  onFailed(error: unknown): void
}

/** A snapshot on its way to a peer. */
interface Transfer {
  readonly to: NodeId
  readonly request: SnapshotRequest
  readonly snapshot: ReadSnapshot
  untilMs: number
  /** The next part that is read. */
  part: number
  /** The one before, which may have been lost. */
  last: SnapshotPart | undefined
  /** The next part is being read, or waits for its time. */
  isUnderWay: boolean
  timer: Timer | undefined
}

export class SnapshotSupply {
  readonly pace: SnapshotPace
  readonly #parts: SnapshotSupplyParts
  readonly #transfers = new Map<string, Transfer>()
  #sentGroups = 0
  #sentBytes = 0

  constructor(parts: SnapshotSupplyParts) {
    this.#parts = parts
    this.pace = new SnapshotPace(parts.limits)
  }

  /** Since the start: snapshots that were sent whole, and the bytes of all parts. Under way now. */
  get figures(): { readonly groups: number; readonly bytes: number; readonly open: number } {
    return { groups: this.#sentGroups, bytes: this.#sentBytes, open: this.#transfers.size }
  }

  ask(from: NodeId, request: SnapshotRequest): void {
    const { transfer: number, part } = request
    const name = `${from}/${number}`
    const transfer = this.#transfers.get(name) ?? this.#begin(name, from, request)
    if (transfer === undefined) return this.#refuse(from, request)
    if (transfer.isUnderWay) return
    const { last } = transfer
    if (last !== undefined && last.part === part) return this.#parts.send(from, last)
    if (part !== transfer.part) {
      this.#end(name, transfer)
      return this.#refuse(from, request)
    }
    this.#sendNext(name, transfer)
  }

  #begin(name: string, to: NodeId, request: SnapshotRequest): Transfer | undefined {
    const { limits, clock, open } = this.#parts
    if (request.part !== 0 || this.#countOf(to) >= 2 * limits.snapshotsMax) return undefined
    const snapshot = open(request.group)
    if (snapshot === undefined) return undefined
    if (snapshot.position <= request.above) {
      this.#letGo(snapshot)
      return undefined
    }
    const untilMs = clock.monotonicMs() + limits.snapshotPinMs
    const begun = { part: 0, last: undefined, isUnderWay: false, timer: undefined }
    const transfer = { to, request, snapshot, untilMs, ...begun }
    this.#transfers.set(name, transfer)
    this.#parts.trace.mark('snapshot_begun')
    return transfer
  }

  #countOf(peer: NodeId): number {
    let count = 0
    for (const { to } of this.#transfers.values()) if (to === peer) count += 1
    return count
  }

  #refuse(to: NodeId, { group, epoch, transfer }: SnapshotRequest): void {
    this.#parts.trace.mark('snapshot_refused')
    this.#parts.send(to, { kind: 'snapshot-refused', group, epoch, transfer })
  }

  #sendNext(name: string, transfer: Transfer): void {
    const { clock, limits } = this.#parts
    transfer.isUnderWay = true
    transfer.snapshot.next(limits.snapshotPartBytesMax).then(
      ({ rows, state, crc, isDamaged }) => {
        if (this.#transfers.get(name) !== transfer) return
        if (isDamaged === true) return this.#tellDamage(name, transfer)
        let bytes = state.length
        for (const { key, payload } of rows) bytes += key.length + payload.length
        const { group, epoch, transfer: number } = transfer.request
        const { position } = transfer.snapshot
        const whole = { kind: 'snapshot-part', group, epoch, transfer: number } as const
        const part = { ...whole, part: transfer.part, position, rows, state }
        const message: SnapshotPart = crc === undefined ? part : { ...part, crc }
        const waitMs = this.pace.take(clock.monotonicMs(), bytes, transfer.part === 0 ? 1 : 0)
        this.#sentBytes += bytes
        transfer.timer = clock.setTimer(waitMs, () => this.#send(name, transfer, message))
      },
      (error: unknown) => {
        if (error instanceof DamagedGroup) return this.#tellDamage(name, transfer)
        this.#end(name, transfer)
        this.#parts.onFailed(error)
      },
    )
  }

  /** The peer asks another node. */
  #tellDamage(name: string, transfer: Transfer): void {
    this.#parts.trace.mark('snapshot_differs_from_hash')
    this.#parts.onDamaged(transfer.request.group)
    this.#end(name, transfer)
    this.#refuse(transfer.to, transfer.request)
  }

  #send(name: string, transfer: Transfer, message: SnapshotPart): void {
    transfer.isUnderWay = false
    transfer.timer = undefined
    transfer.part += 1
    transfer.last = message
    transfer.untilMs = this.#parts.clock.monotonicMs() + this.#parts.limits.snapshotPinMs
    this.#parts.send(transfer.to, message)
    if (message.crc === undefined) return
    this.#sentGroups += 1
    this.#end(name, transfer)
  }

  #end(name: string, transfer: Transfer): void {
    this.#transfers.delete(name)
    transfer.timer?.cancel()
    this.#letGo(transfer.snapshot)
  }

  #letGo(snapshot: ReadSnapshot): void {
    snapshot.close().catch((error: unknown) => this.#parts.onFailed(error))
  }

  /** Now and then: gives up what peers have taken too long over, and looks at what commits take. */
  look(): void {
    this.pace.look()
    const nowMs = this.#parts.clock.monotonicMs()
    for (const [name, transfer] of this.#transfers) {
      if (transfer.untilMs > nowMs) continue
      this.#parts.trace.mark('snapshot_given_up')
      this.#end(name, transfer)
    }
  }

  /** The peer is gone. */
  forget(peer: NodeId): void {
    for (const [name, transfer] of this.#transfers) {
      if (transfer.to === peer) this.#end(name, transfer)
    }
  }

  stop(): void {
    for (const [name, transfer] of this.#transfers) this.#end(name, transfer)
  }
}
