/** `required string name DEFAULT "new";` and `repeated message exif { … }`. */
import type { Cursor } from './ddl-cursor.ts'
import type { Spans } from './ddl-spans.ts'
import { keepGiven, writtenNumber, type GivenDefault } from './default.ts'
import { messageDepthMax } from './limits.ts'
import { scalarKinds, type Property, type PropertyDefault, type ScalarKind } from './model.ts'
import { nearest } from '../src/base/suggest.ts'
import type { SchemaPath } from './problem.ts'

/** After `{`, up to its `}`. */
export function parseProperties(
  cursor: Cursor,
  spans: Spans,
  at: SchemaPath,
  depth: number,
): readonly Property[] {
  const properties: Property[] = []
  while (!cursor.takeMark('}') && cursor.problem === undefined) {
    properties.push(parseProperty(cursor, spans, [...at, 'properties', properties.length], depth))
  }
  return properties
}

function parseProperty(cursor: Cursor, spans: Spans, at: SchemaPath, depth: number): Property {
  const presence = cursor.needOneOf(['required', 'optional', 'repeated']) ?? 'required'
  if (cursor.takeWords('message')) {
    const name = cursor.needName('the name of the message')
    spans.set(at, name.span)
    cursor.needMark('{')
    // Deeper than this is refused by its name, without a look inside.
    const isTooDeep = depth >= messageDepthMax
    const properties = isTooDeep ? [] : parseProperties(cursor, spans, at, depth + 1)
    if (isTooDeep) skipToBrace(cursor)
    cursor.takeMark(';')
    return { name: name.text, presence, type: { kind: 'message', properties } }
  }
  const kind = parseKind(cursor)
  const name = cursor.needName('the name of the property')
  spans.set(at, name.span)
  const property = { name: name.text, presence, type: { kind } } as const
  if (!cursor.takeWords('DEFAULT')) {
    cursor.needMark(';')
    return property
  }
  spans.set([...at, 'default'], cursor.here.span)
  const { literal, given } = parseDefault(cursor, kind)
  cursor.needMark(';')
  const filled = { ...property, default: literal }
  keepGiven(filled, given)
  return filled
}

function skipToBrace(cursor: Cursor): void {
  for (let open = 1; open > 0 && !cursor.isAtEnd; cursor.skip()) {
    if (cursor.here.kind !== 'mark') continue
    if (cursor.here.text === '{') open += 1
    if (cursor.here.text === '}') open -= 1
  }
}

/** Words of other languages for our types. */
const kindByForeignWord: ReadonlyMap<string, string> = new Map([
  ...(['text', 'varchar', 'char', 'str'] as const).map((word) => [word, 'string'] as const),
  ...(['blob', 'bytea', 'binary'] as const).map((word) => [word, 'bytes'] as const),
  ...(['int', 'uint32', 'sint32'] as const).map((word) => [word, 'int32'] as const),
  ...(['bigint', 'long', 'uint64'] as const).map((word) => [word, 'int64'] as const),
  ...(['number', 'real', 'decimal'] as const).map((word) => [word, 'double'] as const),
  ...(['date', 'datetime', 'time'] as const).map((word) => [word, 'timestamp'] as const),
  ...(['group', 'struct', 'object'] as const).map((word) => [word, 'message'] as const),
  ...(['serial', 'autoincrement'] as const).map((word) => [word, 'sequence'] as const),
  ['boolean', 'bool'],
  ['jsonb', 'json'],
  ['guid', 'uuid'],
])

function parseKind(cursor: Cursor): ScalarKind {
  const token = cursor.needToken('a type', 'word')
  const word = token.text.toLowerCase()
  const kind = scalarKinds.find((known) => known === word)
  if (kind !== undefined) return kind
  const guess = kindByForeignWord.get(word) ?? nearest(word, [...scalarKinds, 'message'])
  const hint =
    guess === undefined
      ? `there is ${scalarKinds.join(', ')} and message`
      : `did you mean ${guess}?`
  cursor.fail('unknown-type', token.span, `${token.text} is not a type`, hint)
  return 'string'
}

interface WrittenDefault {
  readonly literal: PropertyDefault
  readonly given?: GivenDefault
}

/** The form of the literal decides its type; a later check compares that with the property's type. */
function parseDefault(cursor: Cursor, kind: ScalarKind): WrittenDefault {
  if (cursor.takeWords('true')) return { literal: true }
  if (cursor.takeWords('false')) return { literal: false }
  const number = cursor.takeToken('a number', 'number')
  if (number !== undefined) return writtenNumber(kind, number.text)
  const { text, span } = cursor.needToken('a text in quotes', 'string')
  if (cursor.problem !== undefined) return { literal: '' }
  const value = parseQuoted(text)
  if (value === undefined) {
    const control = Array.from(text).find((character) => character < ' ')
    if (control === undefined) {
      cursor.fail('syntax', span, `${text} has a \\ before what needs none`, 'write \\\\ for \\')
    } else {
      const escape = JSON.stringify(control).slice(1, -1)
      cursor.fail(
        'syntax',
        span,
        'a control character stands in the text',
        `write ${escape} for it`,
      )
    }
  }
  return { literal: value ?? '' }
}

function parseQuoted(quoted: string): string | undefined {
  try {
    const value: unknown = JSON.parse(quoted)
    return typeof value === 'string' ? value : undefined
  } catch {
    // Only an escape that JSON does not have gets here, or a control character.
    return undefined
  }
}
