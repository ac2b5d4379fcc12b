/** A node's requests for the row of the later sets (`later-sets-row.ts`), which the first set's own group has. */
import { StoreError } from '../base/errors.ts'
import type { LaterSet } from '../placement/placement.ts'
import {
  addSet,
  decodeLaterSets,
  encodeLaterSets,
  laterSetsKey,
  type LaterSetsRow,
} from './later-sets-row.ts'
import { SetWriter, type SetWriterParts } from './set-writer.ts'
import type { VersionGate } from './version-gate.ts'

export interface LaterSetsPort {
  /** Throws `unavailable` where the cluster version in force here allows no later sets. */
  checkVersion(): void
  /** Whether this node may ask for them. */
  readonly isAllowed: boolean
  /**
   * Adds the set, with the cluster version that is in force here; nothing where it is there with the same nodes. Rejects with `invalid`
   * where the name or a node is in use.
   */
  add(set: Pick<LaterSet, 'name' | 'nodes'>): Promise<void>
}

export interface LaterSetRequestsParts extends SetWriterParts {
  readonly gate: VersionGate
  readonly firstSetCount: number
  /** A row of the set's own group. Throws while the group is aside. */
  get(key: Uint8Array): Uint8Array | undefined
}

export class LaterSetRequests implements LaterSetsPort {
  readonly #parts: LaterSetRequestsParts
  readonly #writer: SetWriter

  constructor(parts: LaterSetRequestsParts) {
    this.#parts = parts
    this.#writer = new SetWriter(parts)
  }

  get isAllowed(): boolean {
    return this.#parts.gate.allows('later-sets')
  }

  checkVersion(): void {
    const { gate } = this.#parts
    if (this.isAllowed) return
    const message = `cluster version ${gate.inForce} is in force in this replica set, which knows no sets that come later: run trilithon upgrade finalize first`
    throw new StoreError('unavailable', message)
  }

  async add(set: Pick<LaterSet, 'name' | 'nodes'>): Promise<void> {
    const { gate, firstSetCount } = this.#parts
    this.checkVersion()
    await this.#writer.commit(() => {
      const row = this.#read()
      const known = row.find(({ name }) => name === set.name)
      const version = known?.version ?? gate.inForce
      const after = addSet(row, { ...set, version }, firstSetCount)
      if (after === row) return undefined
      gate.use('later-sets')
      return [{ key: laterSetsKey, value: encodeLaterSets(after) }]
    })
  }

  #read(): LaterSetsRow {
    const bytes = this.#parts.get(laterSetsKey)
    const row = bytes === undefined ? [] : decodeLaterSets(bytes)
    if (row !== undefined) return row
    const message = 'The row of the later sets is of a format that this version does not know.'
    throw new StoreError('invalid', message)
  }
}
