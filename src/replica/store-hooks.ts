/** The calls of the two stores to the driver, and those of a batch of the data store to the log. */
import type { GroupId, Position } from '../base/ids.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Clock } from '../ports/clock.ts'
import type { DataStore } from '../store/data-store.ts'
import type { TakenGroup } from '../store/overlay.ts'

export interface StoreHooks {
  readonly log: LogStore
  readonly data: DataStore
  readonly clock: Clock
  /** An open position keeps the mark of the log from going on. */
  onHeldUp(group: GroupId, position: Position): void
  /** False: nothing can mend it here. */
  onGroupDamaged(group: GroupId): boolean
  /** A batch is put together: small values that are set now go along. */
  onBatch(groups: readonly TakenGroup[]): void
  /** It is durable. */
  onApplied(): void
  onFailed(reason: Error): void
}

/** LOG-14: the log durably holds as chosen what a batch brings to the data store. */
export function watchStores(hooks: StoreHooks): void {
  const { log, data, clock } = hooks
  log.onFailure = (reason) => hooks.onFailed(reason)
  log.onHeldUp = (group, position) => clock.defer(() => hooks.onHeldUp(group, position))
  data.onFailure = (reason) => hooks.onFailed(reason)
  data.onGroupDamaged = (group) => hooks.onGroupDamaged(group)
  data.onBatch = (groups) => {
    log.onBatch(groups)
    hooks.onBatch(groups)
  }
  data.placeOf = (group) => log.placeOf(group)
  data.beforeWrite = async (groups) => {
    await log.sync()
    log.checkLogged(groups)
  }
  data.onApplied = () => hooks.onApplied()
}
