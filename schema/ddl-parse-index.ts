/** `[UNIQUE] LOCAL | GLOBAL | INLINE INDEX name ON table(paths) options;` */
import type { Cursor, Name } from './ddl-cursor.ts'
import { parseDirection } from './ddl-parse-table.ts'
import type { Spans } from './ddl-spans.ts'
import type { IndexDraft } from './draft.ts'
import type { AbsentParts, Index, IndexPart } from './model.ts'
import type { SchemaPath } from './problem.ts'

/** The options that have been read so far. */
interface Options {
  absent: AbsentParts | undefined
  storing: readonly string[] | undefined
  into: string | undefined
  shards: number | undefined
  shardBy: string | undefined
  spread: number | undefined
}

const kindByWord = { LOCAL: 'local', GLOBAL: 'global', INLINE: 'inline' } as const

/** After `CREATE`. */
export function parseIndex(cursor: Cursor, spans: Spans, at: SchemaPath): IndexDraft {
  const unique = cursor.takeWords('UNIQUE')
  const kind: Index['kind'] = kindByWord[cursor.needOneOf(['LOCAL', 'GLOBAL', 'INLINE']) ?? 'LOCAL']
  cursor.needWords('INDEX')
  const name = cursor.needName('the name of the index')
  spans.set(at, name.span)
  cursor.needWords('ON')
  const table = cursor.needName('the name of a table')
  spans.set([...at, 'table'], table.span)
  const parts: IndexPart[] = []
  parsePaths(cursor, spans, [...at, 'parts'], (path) => {
    parts.push({ path: path.text, direction: parseDirection(cursor) })
  })
  const { storing = [], absent = 'first', ...options } = parseOptions(cursor, spans, at)
  return { kind, name: name.text, table: table.text, parts, absent, storing, unique, ...options }
}

function parseOptions(cursor: Cursor, spans: Spans, at: SchemaPath): Options {
  const options: Options = {
    absent: undefined,
    storing: undefined,
    into: undefined,
    shards: undefined,
    shardBy: undefined,
    spread: undefined,
  }
  while (!cursor.takeMark(';') && cursor.problem === undefined) {
    const { start } = cursor.here.span
    const found = cursor.needOneOf(phrases)
    if (found === undefined) return options
    const member = memberByPhrase[found]
    if (options[member] !== undefined) {
      cursor.fail('syntax', cursor.spanFrom(start), `${found} stands twice in one index`)
    }
    parseOption(cursor, spans, [...at, member], options)
  }
  return options
}

const phrases = ['STORING', 'IN TABLE', 'WHERE PRESENT', 'SHARDS', 'SHARD BY', 'SPREAD'] as const

const memberByPhrase = {
  'WHERE PRESENT': 'absent',
  STORING: 'storing',
  'IN TABLE': 'into',
  SHARDS: 'shards',
  'SHARD BY': 'shardBy',
  SPREAD: 'spread',
} as const

/** The path's last word says which one. */
function parseOption(cursor: Cursor, spans: Spans, at: SchemaPath, options: Options): void {
  const { start } = cursor.here.span
  switch (at.at(-1)) {
    case 'storing': {
      const paths: string[] = []
      parsePaths(cursor, spans, at, (path) => paths.push(path.text))
      options.storing = paths
      return
    }
    case 'absent':
      options.absent = 'left-out'
      break
    case 'into':
      options.into = cursor.needName('the name of a table').text
      break
    case 'shardBy':
      options.shardBy = parsePath(cursor).text
      break
    case 'shards':
      options.shards = Number(cursor.needToken('a number', 'number').text)
      break
    default:
      options.spread = Number(cursor.needToken('a number', 'number').text)
  }
  spans.set(at, cursor.spanFrom(start))
}

/** `(a, b.c)`; each path is handed on before what follows it is read. */
function parsePaths(
  cursor: Cursor,
  spans: Spans,
  at: SchemaPath,
  each: (path: Name) => void,
): void {
  const { start } = cursor.here.span
  cursor.needMark('(')
  if (!cursor.takeMark(')')) {
    let place = 0
    do {
      const path = parsePath(cursor)
      spans.set([...at, place], path.span)
      place += 1
      each(path)
    } while (cursor.takeMark(','))
    cursor.needMark(')')
  }
  spans.set(at, cursor.spanFrom(start))
}

function parsePath(cursor: Cursor): Name {
  const { start } = cursor.here.span
  const words = [cursor.needName('the name of a property').text]
  while (cursor.takeMark('.')) words.push(cursor.needName('the name of a field').text)
  return { text: words.join('.'), span: cursor.spanFrom(start) }
}
