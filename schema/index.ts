/** Names that applications import from `trilithon/schema`. A name that is not here is not part of it. */

// Declaring in TypeScript.
export { defineSchema, type DefinedSchema, type SchemaOptions } from './define.ts'
export type { PlacementOption } from './placed.ts'
export { t, type PropertyTypes } from './property.ts'
export { desc, table, type Table } from './table.ts'
export type { Shaped, TableShape } from './infer.ts'

// Types of rows, keys and queries.
export type {
  IndexEntry,
  IndexNames,
  IndexQuery,
  Insert,
  Key,
  KeyPrefix,
  KeyRange,
  Patch,
  Range,
  ReadKey,
  Row,
} from './infer.ts'
export {
  isTimestamp,
  isUuid,
  timestampOf,
  type JsonValue,
  type Timestamp,
  type Uuid,
} from './values.ts'

// The same as data, as text and as JSON.
export type {
  Index as IndexModel,
  Property as PropertyModel,
  PropertyType,
  Schema,
  Table as TableModel,
  TablePlacement,
} from './model.ts'
export type { SchemaResult } from './check.ts'
export { parseSchema } from './ddl-parse.ts'
export { printSchema } from './ddl-print.ts'
export { reportProblems } from './ddl-report.ts'
export { decodeSchema } from './decode.ts'

// Problems of schemas.
export { problemText, SchemaError, type SchemaProblem, type SchemaProblemKind } from './problem.ts'

// Versions.
export { changeText, type SchemaChange, type SchemaChangeKind } from './change.ts'
export { diffSchemas } from './diff.ts'
export { fingerprintOf } from './fingerprint.ts'
export { firstVersion, nextVersion, type SchemaStep, type SchemaVersion } from './version.ts'
