/** Every bound of a schema, by name. They keep descriptions small enough to be checked at once. */

/** Of a schema, table, property, field or index. */
export const nameCharsMax = 64
export const tablesMax = 1000
export const indexesMax = 2000
/** Of one table, fields of nested messages included. */
export const propertiesMax = 500
/** Messages inside one another. */
export const messageDepthMax = 8
export const keyPartsMax = 16
/** Rows next to their parent, next to its parent, … */
export const tableDepthMax = 16
export const indexPartsMax = 16
export const storedMax = 64
/** Groups that one global index is spread over. */
export const indexShardsMax = 4096
export const indexShardsDefault = 16
/** Groups that the entries of one value are spread over. */
export const indexSpreadMax = 64
/** A hundred years of 365 days: the longest that a row lives before it expires. */
export const ttlSecondsMax: number = 100 * 365 * 24 * 60 * 60
/** Of the default of a string, or of bytes in hexadecimal. */
export const defaultCharsMax = 1024
/** A schema as text, or as JSON. */
export const ddlCharsMax = 1_000_000
/** Of a text that has more mistakes of form than this, the rest is not read. */
export const syntaxProblemsMax = 100
/** Problems shown at once; more of them confuse. */
export const problemsMax = 10
