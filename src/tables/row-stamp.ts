/**
 * The timestamp of a row that was read, kept on the row where no other code sees it: a private
 * field, put on an object that stays a plain one. A WeakMap would say the same, and kept the
 * collector of garbage busy for as long as a tenth of a read of many rows.
 */
import type { Timestamp } from '../base/ids.ts'

/** A constructor that gives what it is given: fields of a class below are then put on that. */
// oxlint-disable-next-line typescript/no-extraneous-class -- fields need a class to be put by
class Given {
  constructor(given: object) {
    // oxlint-disable-next-line no-constructor-return -- this is what it is for
    return given
  }
}

export class RowStamp extends Given {
  readonly #timestamp: Timestamp | undefined

  private constructor(row: object, timestamp: Timestamp | undefined) {
    super(row)
    this.#timestamp = timestamp
  }

  /** `timestamp`: undefined for what a transaction is about to write itself. Once for an object. */
  static put<Row extends object>(row: Row, timestamp: Timestamp | undefined): Row {
    // oxlint-disable-next-line no-new -- what is made is the row itself
    new RowStamp(row, timestamp)
    return row
  }

  static isOn(row: object): boolean {
    return #timestamp in row
  }

  static of(row: object): Timestamp | undefined {
    return #timestamp in row ? row.#timestamp : undefined
  }
}
