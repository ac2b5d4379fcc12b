/** A whole schema in TypeScript: tables put together and checked, once, when the program starts. */
import { checkSchema } from './check.ts'
import { checkBuilderOptions, checkText, checkTables } from './given.ts'
import type { Schema } from './model.ts'
import { SchemaError } from './problem.ts'
import { placementRule, readPlacement, type PlacementOption } from './placed.ts'
import type { Table } from './table.ts'

/** A checked schema that knows its tables' types. */
export interface DefinedSchema<Tables extends readonly Table[] = readonly Table[]> {
  readonly name: string
  readonly tables: Tables
  /** The same as plain data, which programs send to a cluster, print and compare. */
  readonly model: Schema
}

export interface SchemaOptions {
  /** Of each root table that says none. */
  readonly placement?: PlacementOption
}

/** Throws `SchemaError` with everything that is wrong. */
export function defineSchema<const Tables extends readonly Table[]>(
  name: string,
  tables: Tables,
  options: SchemaOptions = {},
): DefinedSchema<Tables> {
  checkText('defineSchema', name)
  const listed = checkTables(`schema ${name}`, tables)
  checkBuilderOptions(`schema ${name}`, options, { placement: placementRule })
  const result = checkSchema({
    name,
    placement: readPlacement(`schema ${name}`, options.placement),
    tables: listed.map((table) => table['~draft']),
    indexes: listed.flatMap((table) => table['~indexes']),
  })
  if (!result.ok) throw new SchemaError(`schema ${name}`, result.problems)
  return { name, tables, model: result.schema }
}
