/** Bounds of reading tables. What a transaction may hold is in `../txn/bounds.ts`. */

/** Rows or entries in one page, when no limit is given. */
export const scanRowsDefault = 1000
/** And at most. */
export const scanRowsMax = 20_000
/** Entries that appear in one row as a virtual property. */
export const inlineEntriesMax = 10_000
