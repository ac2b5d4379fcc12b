/**
 * The replica sets that have come since the cluster began, as this node learns of them: it asks the first set for the row that names them
 * (`../members/later-sets-row.ts`), again and again.
 */
import { captureOutcome } from '../base/problem.ts'
import type { LaterSetsPort } from '../members/later-set-requests.ts'
import { decodeLaterSets, laterSetsKey, type LaterSetsRow } from '../members/later-sets-row.ts'
import { setGroupOf } from '../members/set-group.ts'
import type { Placement } from '../placement/placement.ts'
import type { Clock, Timer } from '../ports/clock.ts'
import type { GroupAnswer, GroupOperation } from '../txn/group-operation.ts'

export interface LaterSetsParts {
  readonly placement: Placement
  readonly clock: Pick<Clock, 'setTimer'>
  readonly sets: Pick<LaterSetsPort, 'isAllowed'>
  execute(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer>
  /** Writes the sets down before the node goes by them; it may reject. */
  keep(sets: LaterSetsRow): Promise<void>
  /** The placement has these sets from now on. */
  onSets(sets: LaterSetsRow): void
  onFailed(error: unknown): void
}

/** Between two looks at the row. */
const lookMs = 2_000
const callMs = 5_000

export class LaterSets {
  readonly #parts: LaterSetsParts
  #timer: Timer | undefined
  #underWay: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(parts: LaterSetsParts) {
    this.#parts = parts
  }

  /** Where one set holds all groups there is none later. */
  start(): void {
    const { placement, clock } = this.#parts
    if (this.#isStopped || placement.firstSetCount === 1) return
    this.#timer = clock.setTimer(lookMs, () => {
      this.#underWay = this.look()
        .catch((error: unknown) => this.#parts.onFailed(error))
        .then(() => this.start())
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#underWay
  }

  /** Takes up the sets that are new. Rejects where they cannot be written down. */
  async look(): Promise<void> {
    const { placement, sets, keep, onSets } = this.#parts
    if (!sets.isAllowed) return
    const row = await this.#read()
    if (this.#isStopped || row === undefined || row.length <= placement.laterSets.length) return
    await keep(row)
    onSets(row)
  }

  /** As the node that answers has it, which may be behind. Undefined: there is no answer. */
  async #read(): Promise<LaterSetsRow | undefined> {
    const { placement, execute } = this.#parts
    const of = { group: setGroupOf(placement, 0), atLeast: 0, keys: [laterSetsKey] }
    const from = { kind: 'inconsistent' } as const
    const outcome = await captureOutcome(() => execute({ kind: 'read-group', from, ...of }, callMs))
    if (outcome.kind !== 'ok' || outcome.value.kind !== 'read-group') return undefined
    const bytes = outcome.value.rows[0]?.value
    return bytes === undefined ? undefined : decodeLaterSets(bytes)
  }
}
