/**
 * Schemas as text, after figure 3 of the Megastore paper. Says what the text's form is; what it means
 * is checked by `checkSchema`, as for the other forms. A mistake of form ends its statement: the
 * parser still reads the next ones, and reports all mistakes together.
 *
 *   schema   = CREATE SCHEMA name [ placement ] ; { CREATE ( table | index ) }
 *   table    = TABLE name { properties } [ clause , … ] ;
 *   property = (required | optional | repeated) type name [ DEFAULT value ] ;
 *            | (required | optional | repeated) message name { properties } [ ; ]
 *   clause   = PRIMARY KEY ( name [ASC | DESC] , … ) [ SCATTER ] | IN TABLE name
 *            | ENTITY GROUP ROOT | ENTITY GROUP KEY ( name , … ) REFERENCES name
 *            | ON DELETE ( CASCADE | RESTRICT | KEEP )
 *            | TTL n ( SECONDS | MINUTES | HOURS | DAYS ) | EXPIRES AT name | placement
 *   placement = PLACEMENT ( IN SET name | IN REGION name | BY name )
 *   index    = [UNIQUE] (LOCAL | GLOBAL | INLINE) INDEX name ON name ( path [ASC | DESC] , … )
 *              { IN TABLE name | STORING ( path , … ) | SHARDS n | SHARD BY path | SPREAD n } ;
 */
import { checkSource } from './given.ts'
import { checkSchema, type SchemaResult } from './check.ts'
import { Cursor } from './ddl-cursor.ts'
import { parseIndex } from './ddl-parse-index.ts'
import { parsePlacement } from './ddl-parse-placement.ts'
import { parseTable } from './ddl-parse-table.ts'
import { Spans } from './ddl-spans.ts'
import type { IndexDraft, TableDraft } from './draft.ts'
import type { TablePlacement } from './model.ts'
import { ddlCharsMax, syntaxProblemsMax } from './limits.ts'
import type { SchemaProblem } from './problem.ts'

/** A schema from its text, or everything that is wrong with it, in the text's order and with places. */
export function parseSchema(text: string): SchemaResult {
  checkSource('parseSchema', text)
  if (text.length > ddlCharsMax) {
    const message = `the text has ${text.length} characters, at most ${ddlCharsMax}`
    return { ok: false, problems: [{ kind: 'too-long', message, at: [] }] }
  }
  const spans = new Spans()
  const parser = new Parser(new Cursor(text), spans)
  parser.parse()
  if (parser.problems.length > 0) return { ok: false, problems: parser.problems }
  const { name, placement, tables, indexes } = parser
  const result = checkSchema({ name, placement, tables, indexes })
  if (result.ok) return result
  const problems = result.problems
    .map((problem) => ({ ...problem, span: spans.at(problem.at) }))
    .sort((a, b) => a.span.start - b.span.start)
  return { ok: false, problems }
}

class Parser {
  readonly problems: SchemaProblem[] = []
  readonly tables: TableDraft[] = []
  readonly indexes: IndexDraft[] = []
  name = ''
  placement: TablePlacement | undefined
  readonly #cursor: Cursor
  readonly #spans: Spans

  constructor(cursor: Cursor, spans: Spans) {
    this.#cursor = cursor
    this.#spans = spans
  }

  parse(): void {
    this.#parseHead()
    this.#endStatement()
    while (!this.#cursor.isAtEnd && this.problems.length < syntaxProblemsMax) {
      this.#parseStatement()
      this.#endStatement()
    }
  }

  #parseHead(): void {
    const cursor = this.#cursor
    cursor.needWords('CREATE SCHEMA')
    const name = cursor.needName('the name of the schema')
    if (cursor.takeWords('PLACEMENT')) this.placement = parsePlacement(cursor)
    cursor.needMark(';')
    this.name = name.text
    this.#spans.set(['name'], name.span)
  }

  #parseStatement(): void {
    const cursor = this.#cursor
    cursor.needWords('CREATE')
    const { span } = cursor.here
    if (cursor.takeWords('TABLE')) {
      this.tables.push(parseTable(cursor, this.#spans, ['tables', this.tables.length]))
    } else if (cursor.takeWords('SCHEMA')) {
      cursor.fail('syntax', span, 'CREATE SCHEMA stands once, at the start of the text')
    } else {
      this.indexes.push(parseIndex(cursor, this.#spans, ['indexes', this.indexes.length]))
    }
  }

  #endStatement(): void {
    if (this.#cursor.problem === undefined) return
    const problem = this.#cursor.recover()
    if (problem !== undefined) this.problems.push(problem)
  }
}
