/** The bucket of the group at one node during a step: what the edge of a node does as the row of the buckets changes. */
import type { NodeId } from '../../src/base/ids.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import type { GroupLog } from '../../src/replication/log.ts'
import { homeOf, maySendOn, takeUpHome, tellBegun, type Sharer } from './bucket.ts'
import type { NodeAction } from './node-action.ts'
import type { Breach, Observation } from './observation.ts'
import type { Seals } from './seals.ts'
import type { Setting } from './setting.ts'

export interface BucketPorts {
  readonly setting: Setting
  readonly name: NodeId
  readonly seals: Seals
  log(): GroupLog
  /** All that waits for the disk becomes durable. */
  sync(): void
  /** Of this step so far. */
  readonly observations: Observation[]
  readonly breaches: Breach[]
}

export class OwnBucket {
  readonly #ports: BucketPorts

  constructor(ports: BucketPorts) {
    this.#ports = ports
  }

  get #sharer(): Sharer {
    const { seals, log } = this.#ports
    return { change: seals.change, log: log() }
  }

  /** MOVE-14: the group takes up its home behind the seal, before the node acts in the next epoch. */
  apply(row: SharesRow | undefined): void {
    const { setting, name, seals, log } = this.#ports
    if (row === undefined) return
    seals.change = { ...seals.change, row }
    takeUpHome(log(), homeOf(setting, name, this.#sharer))
  }

  /** After a restart. */
  restore(): void {
    const { setting, name, log } = this.#ports
    log().home = homeOf(setting, name, this.#sharer) ?? log().home
  }

  act({ kind, row }: NodeAction & { readonly kind: 'learn' | 'tell' }): void {
    if (kind === 'learn') this.apply(row)
    else this.#tell(row)
  }

  /** It says which groups may have begun, in a change of that row. */
  #tell(before: SharesRow): void {
    const { setting, name, sync, observations } = this.#ports
    const row = tellBegun(setting, name, this.#sharer, before)
    if (row === undefined) return
    sync()
    this.apply(before)
    observations.push({ kind: 'row', row })
  }

  judge(verdict: Verdict): void {
    const { setting, breaches } = this.#ports
    if (verdict.kind !== 'moved' || verdict.position > 0) return
    if (maySendOn(setting, this.#sharer)) return
    const sentence = 'A transaction goes to another set from a node that may begin its group.'
    breaches.push({ rule: 'MOVE-14', sentence })
  }
}
