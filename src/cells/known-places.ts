/**
 * Cells of the datastores whose place the configuration has. Any other one is refused, to reads and writes alike (MOVE-8): its shards
 * would be in sets that a later configuration may give to others.
 */
import type { GroupId } from '../base/ids.ts'
import { problem, type Problem } from '../base/problem.ts'
import { isDatastore } from './cell.ts'
import { placeOfDatastore } from './datastore-form.ts'
import type { Answered, CallOptions, CellOperation, CellService } from './operation.ts'
import { shardGroup } from './shard.ts'

export interface KnownPlacesParts {
  readonly cells: CellService
  /** Why no set takes the group. */
  refusalOf(group: GroupId): string | undefined
}

export class KnownPlaces implements CellService {
  readonly #parts: KnownPlacesParts

  constructor(parts: KnownPlacesParts) {
    this.#parts = parts
  }

  execute(operation: CellOperation, options: CallOptions): Promise<Answered> {
    const refused = this.#refusal(operation)
    if (refused === undefined) return this.#parts.cells.execute(operation, options)
    return Promise.resolve({ answer: { kind: 'problem', problem: refused }, positions: [] })
  }

  answerNow(operation: CellOperation): Answered | undefined {
    if (this.#refusal(operation) !== undefined) return undefined
    return this.#parts.cells.answerNow?.(operation)
  }

  /** A name that is none is refused by the service. */
  #refusal({ datastore }: CellOperation): Problem | undefined {
    if (placeOfDatastore(datastore) === undefined || !isDatastore(datastore)) return undefined
    const refusal = this.#parts.refusalOf(shardGroup(datastore, 0))
    return refusal === undefined ? undefined : problem('invalid', refusal)
  }
}
