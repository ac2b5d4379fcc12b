/** Reads the row of the buckets (`shares-row.ts`) as it is applied at this node. */
import { equalBytes } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { SharesRow } from '../placement/shares.ts'
import { decodeShares, sharesKey } from './shares-row.ts'

export interface SharesReaderParts {
  /** A row of the set's own group. Throws while the group is aside. */
  get(key: Uint8Array): Uint8Array | undefined
}

export class SharesReader {
  readonly #parts: SharesReaderParts
  #bytes: Uint8Array | undefined
  #row: SharesRow = []

  constructor(parts: SharesReaderParts) {
    this.#parts = parts
  }

  /** The same array as before where nothing has changed. Throws `invalid` for a row of a later version. */
  read(): SharesRow {
    const bytes = this.#parts.get(sharesKey)
    if (isSame(bytes, this.#bytes)) return this.#row
    const row = bytes === undefined ? [] : decodeShares(bytes)
    if (row === undefined) {
      throw new StoreError(
        'invalid',
        'The row of the buckets is of a format that this version does not know.',
      )
    }
    this.#bytes = bytes
    this.#row = row
    return row
  }
}

function isSame(bytes: Uint8Array | undefined, before: Uint8Array | undefined): boolean {
  if (bytes === undefined || before === undefined) return bytes === before
  return equalBytes(bytes, before)
}
