/** Rows of any group over the port, each group at one view of the level asked for. */
import type { GroupId } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { transactionTimeoutMs } from '../txn/limits.ts'
import type { GroupPort, ReadFrom } from '../group/group-port.ts'
import type { KeyRange } from '../group/outcome.ts'
import { runRead, type ReadOptions } from '../txn/run-read.ts'
import type { StoredRow } from '../txn/reads.ts'
import { remainingOrTimeout } from '../time/moments.ts'
import type { GroupReads, RowsAt } from './global-read.ts'

export interface PortGroupsOptions {
  readonly clock: Clock
  /** From now on, for all that is read. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export class PortGroups implements GroupReads {
  readonly #port: GroupPort
  readonly #from: ReadFrom
  readonly #given: PortGroupsOptions
  readonly #deadlineMs: number

  constructor(port: GroupPort, from: ReadFrom, given: PortGroupsOptions) {
    const { clock, timeoutMs = transactionTimeoutMs } = given
    this.#port = port
    this.#from = from
    this.#given = given
    this.#deadlineMs = clock.monotonicMs() + timeoutMs
  }

  anew(): PortGroups {
    return new PortGroups(this.#port, this.#from, this.#given)
  }

  async scan(
    group: GroupId,
    range: KeyRange,
    reverse: boolean,
    limit: number,
  ): Promise<readonly StoredRow[]> {
    const read = await runRead(this.#port, group, this.#from, this.#options(), (reads) =>
      reads.scan({ reverse, limit, ...range }),
    )
    return read.value.rows
  }

  async getMany(
    group: GroupId,
    keys: readonly Uint8Array[],
  ): Promise<readonly (StoredRow | undefined)[]> {
    const read = await runRead(this.#port, group, this.#from, this.#options(), (reads) =>
      reads.getMany(keys),
    )
    return read.value
  }

  async getAt(group: GroupId, keys: readonly Uint8Array[]): Promise<RowsAt> {
    const read = await runRead(this.#port, group, this.#from, this.#options(), async (reads) => {
      const rows = await reads.getMany(keys)
      return { rows, asOf: (await reads.view()).asOf }
    })
    return read.value
  }

  #options(): ReadOptions {
    const { clock, signal } = this.#given
    return { clock, timeoutMs: remainingOrTimeout(clock, this.#deadlineMs), signal }
  }
}
