/** A whole schema in TypeScript: tables put together and checked, once, when the program starts. */
import { checkSchema } from './check.ts'
import { checkText, checkTables } from './given.ts'
import type { Schema } from './model.ts'
import { SchemaError } from './problem.ts'
import type { Table } from './table.ts'

/** A checked schema that knows its tables' types. */
export interface DefinedSchema<Tables extends readonly Table[] = readonly Table[]> {
  readonly name: string
  readonly tables: Tables
  /** The same as plain data, which programs send to a cluster, print and compare. */
  readonly model: Schema
}

/** Throws `SchemaError` with everything that is wrong. */
export function defineSchema<const Tables extends readonly Table[]>(
  name: string,
  tables: Tables,
): DefinedSchema<Tables> {
  checkText('defineSchema', name)
  const listed = checkTables(`schema ${name}`, tables)
  const result = checkSchema({
    name,
    tables: listed.map((table) => table['~draft']),
    indexes: listed.flatMap((table) => table['~indexes']),
  })
  if (!result.ok) throw new SchemaError(`schema ${name}`, result.problems)
  return { name, tables, model: result.schema }
}
