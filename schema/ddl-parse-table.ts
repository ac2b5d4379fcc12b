/** `TABLE name { properties } PRIMARY KEY(…), IN TABLE …, ENTITY GROUP …, PLACEMENT …, ON DELETE …, TTL …;` */
import type { Cursor, Name } from './ddl-cursor.ts'
import { parsePlacement } from './ddl-parse-placement.ts'
import { parseProperties } from './ddl-parse-property.ts'
import type { Spans } from './ddl-spans.ts'
import type { TableDraft } from './draft.ts'
import { deleteRules, type Direction, type KeyPart } from './model.ts'
import type { SchemaPath } from './problem.ts'
import { secondsIn, ttlUnits } from './ttl.ts'

/** The clauses that have been read so far. */
interface Clauses {
  key: TableDraft['key']
  isRoot: boolean
  group: TableDraft['group']
  inTable: string | undefined
  onDelete: TableDraft['onDelete']
  expiry: TableDraft['expiry']
  placement: TableDraft['placement']
}

/** After `CREATE TABLE`. */
export function parseTable(cursor: Cursor, spans: Spans, at: SchemaPath): TableDraft {
  const name = cursor.needName('the name of the table')
  spans.set(at, name.span)
  cursor.needMark('{')
  const properties = parseProperties(cursor, spans, at, 0)
  const clauses: Clauses = {
    key: undefined,
    isRoot: false,
    group: undefined,
    inTable: undefined,
    onDelete: undefined,
    expiry: undefined,
    placement: undefined,
  }
  if (!cursor.takeMark(';')) {
    do parseClause(cursor, spans, at, clauses)
    while (cursor.takeMark(','))
    cursor.needMark(';')
  }
  return { name: name.text, properties, ...clauses }
}

function parseClause(cursor: Cursor, spans: Spans, at: SchemaPath, clauses: Clauses): void {
  const { start } = cursor.here.span
  const once = (clause: string, isThere: boolean): void => {
    if (!isThere) return
    cursor.fail('syntax', cursor.spanFrom(start), `${clause} stands twice in one table`)
  }
  const found = cursor.needOneOf([
    'PRIMARY KEY',
    'IN TABLE',
    'ENTITY GROUP',
    'ON DELETE',
    'TTL',
    'EXPIRES AT',
    'PLACEMENT',
  ])
  if (found === 'PRIMARY KEY') {
    once('PRIMARY KEY', clauses.key !== undefined)
    clauses.key = parseKey(cursor, spans, at, start)
  } else if (found === 'IN TABLE') {
    once('IN TABLE', clauses.inTable !== undefined)
    const parent = cursor.needName('the name of a table')
    spans.set([...at, 'inTable'], parent.span)
    clauses.inTable = parent.text
  } else if (found === 'TTL' || found === 'EXPIRES AT') {
    once('TTL or EXPIRES AT', clauses.expiry !== undefined)
    clauses.expiry = found === 'TTL' ? parseSpan(cursor) : parseMoment(cursor)
    spans.set([...at, 'expiry'], cursor.spanFrom(start))
  } else if (found === 'PLACEMENT') {
    once('PLACEMENT', clauses.placement !== undefined)
    clauses.placement = parsePlacement(cursor)
    spans.set([...at, 'placement'], cursor.spanFrom(start))
  } else if (found === 'ON DELETE') {
    once('ON DELETE', clauses.onDelete !== undefined)
    const rule = cursor.needOneOf(['CASCADE', 'RESTRICT', 'KEEP'])
    spans.set([...at, 'onDelete'], cursor.spanFrom(start))
    clauses.onDelete = deleteRules.find((one) => one === rule?.toLowerCase())
  } else if (cursor.takeWords('ROOT')) {
    once('ENTITY GROUP ROOT', clauses.isRoot)
    clauses.isRoot = true
  } else {
    cursor.needWords('KEY')
    once('ENTITY GROUP KEY', clauses.group !== undefined)
    clauses.group = parseGroup(cursor, spans, at, start)
  }
}

function parseSpan(cursor: Cursor): TableDraft['expiry'] {
  const count = Number(cursor.needToken('a number', 'number').text)
  const words = ttlUnits.flatMap((unit) => [unit.toUpperCase(), unit.slice(0, -1).toUpperCase()])
  const word = cursor.needOneOf(words)?.toLowerCase()
  const unit = ttlUnits.find((one) => one === word || one === `${word}s`) ?? 'seconds'
  return { kind: 'after', seconds: secondsIn(count, unit) }
}

function parseMoment(cursor: Cursor): TableDraft['expiry'] {
  return { kind: 'at', property: cursor.needName('the name of a property').text }
}

function parseKey(
  cursor: Cursor,
  spans: Spans,
  at: SchemaPath,
  start: number,
): NonNullable<TableDraft['key']> {
  const parts: KeyPart[] = []
  const list = parseList(cursor, 'the name of a property', (name) => {
    spans.set([...at, 'key', 'parts', parts.length], name.span)
    parts.push({ property: name.text, direction: parseDirection(cursor) })
  })
  spans.set([...at, 'key'], { start, end: list.end })
  const { span } = cursor.here
  const scatter = cursor.takeWords('SCATTER')
  if (scatter) spans.set([...at, 'key', 'scatter'], span)
  return { parts, scatter }
}

function parseGroup(
  cursor: Cursor,
  spans: Spans,
  at: SchemaPath,
  start: number,
): NonNullable<TableDraft['group']> {
  const key: string[] = []
  const list = parseList(cursor, 'the name of a property', (name) => {
    spans.set([...at, 'group', 'key', key.length], name.span)
    key.push(name.text)
  })
  spans.set([...at, 'group'], { start, end: list.end })
  cursor.needWords('REFERENCES')
  const root = cursor.needName('the name of a table')
  spans.set([...at, 'group', 'root'], root.span)
  return { root: root.text, key }
}

/** `(a, b, c)`; each name is handed on before what follows it is read. */
function parseList(
  cursor: Cursor,
  what: string,
  each: (name: Name) => void,
): { readonly end: number } {
  cursor.needMark('(')
  if (!cursor.takeMark(')')) {
    do each(cursor.needName(what))
    while (cursor.takeMark(','))
    cursor.needMark(')')
  }
  return { end: cursor.spanFrom(0).end }
}

export function parseDirection(cursor: Cursor): Direction {
  if (cursor.takeWords('ASC')) return 'asc'
  return cursor.takeWords('DESC') ? 'desc' : 'asc'
}
