/**
 * Schemas from JSON: from a file, a store or another machine, which may hold anything.
 * `checkSchema` then checks a value that has the form of a schema like one just declared. The
 * decoder refuses any other value at its first wrong place.
 */
import { parseJsonText } from '../src/base/json-text.ts'
import { wordsFor } from '../src/base/words.ts'
import { checkSchema, type SchemaOrigin, type SchemaResult } from './check.ts'
import type { IndexDraft, SchemaDraft, TableDraft } from './draft.ts'
import { indexesMax, messageDepthMax, propertiesMax, storedMax, tablesMax } from './limits.ts'
import {
  deleteRules,
  scalarKinds,
  schemaFormat,
  type Expiry,
  type OnDelete,
  type Property,
  type PropertyDefault,
  type TablePlacement,
} from './model.ts'
import type { SchemaPath, SchemaProblem } from './problem.ts'
import { JsonReader, type JsonPlace } from './json-reader.ts'

/** The schema that `JSON.stringify` of one gave. */
export function decodeSchema(json: unknown, origin: SchemaOrigin = 'given'): SchemaResult {
  const reader = new JsonReader()
  const draft = readSchema(reader.start(json))
  return reader.problem === undefined ? checkSchema(draft, origin) : refused(reader.problem)
}

function refused(problem: SchemaProblem): SchemaResult {
  return { ok: false, problems: [problem] }
}

const at: SchemaPath = []

/** From the text of a JSON file: without names that are given twice, and without numbers that lose digits. */
export function parseSchemaJson(text: string): SchemaResult {
  const read = parseJsonText(text.replace(/^\ufeff/, ''))
  if (read.ok) return decodeSchema(read.value)
  if (read.isJson) return refused({ kind: 'format', message: read.reason, at })
  return refused({ kind: 'syntax', message: `this is ${read.reason}`, at })
}

function readSchema(place: JsonPlace): SchemaDraft {
  const format = place.member('format')
  if (format.value !== schemaFormat) {
    const shown = format.value === undefined ? 'nothing' : wordsFor(format.value)
    format.refuse(`is ${shown}, and this program knows ${schemaFormat}`)
  }
  place.hasOnly(['format', 'name', 'tables', 'indexes'])
  return {
    name: place.member('name').text(),
    tables: place.member('tables').list(tablesMax, readTable),
    indexes: place.member('indexes').list(indexesMax, readIndex),
  }
}

const keyMembers = ['parts', 'scatter'] as const
const tableMembers = ['kind', 'name', 'properties', 'key', 'expiry'] as const
const rootMembers = [...tableMembers, 'placement'] as const
const childMembers = [...tableMembers, 'root', 'groupKey', 'inTable', 'onDelete'] as const

function readTable(place: JsonPlace): TableDraft {
  const kind = place.member('kind').oneOf(['root', 'child'])
  const isRoot = kind === 'root'
  place.hasOnly(isRoot ? rootMembers : childMembers)
  const key = place.member('key')
  key.hasOnly(keyMembers)
  const list = (member: JsonPlace): readonly string[] =>
    member.list(storedMax, (name) => name.text())
  return {
    name: place.member('name').text(),
    properties: readProperties(place.member('properties'), 0),
    key: {
      parts: key.member('parts').list(storedMax, (part) => {
        part.hasOnly(['property', 'direction'])
        const direction = part.member('direction').oneOf(['asc', 'desc'])
        return { property: part.member('property').text(), direction }
      }),
      scatter: key.member('scatter').truth(),
    },
    isRoot,
    group: isRoot
      ? undefined
      : { root: place.member('root').text(), key: list(place.member('groupKey')) },
    inTable: isRoot ? undefined : place.member('inTable').optional()?.text(),
    onDelete: isRoot ? undefined : readOnDelete(place.member('onDelete')),
    expiry: readExpiry(place.member('expiry').optional()),
    placement: isRoot ? readPlacement(place.member('placement').optional()) : undefined,
  }
}

function readOnDelete(place: JsonPlace): OnDelete | undefined {
  return place.optional()?.oneOf(deleteRules)
}

function readExpiry(place: JsonPlace | undefined): Expiry | undefined {
  const kind = place?.member('kind').oneOf(['after', 'at'])
  if (place === undefined || kind === undefined) return undefined
  place.hasOnly(['kind', kind === 'after' ? 'seconds' : 'property'])
  return kind === 'after'
    ? { kind, seconds: place.member('seconds').number() }
    : { kind, property: place.member('property').text() }
}

function readPlacement(place: JsonPlace | undefined): TablePlacement | undefined {
  const kind = place?.member('kind').oneOf(['set', 'region', 'by'])
  if (place === undefined || kind === undefined) return undefined
  place.hasOnly(['kind', kind === 'by' ? 'property' : 'name'])
  return kind === 'by'
    ? { kind, property: place.member('property').text() }
    : { kind, name: place.member('name').text() }
}

function readProperties(place: JsonPlace, depth: number): readonly Property[] {
  // Deeper than this is refused by its name, without a look inside.
  if (depth > messageDepthMax) return []
  return place.list(propertiesMax, (property) => readProperty(property, depth))
}

function readProperty(place: JsonPlace, depth: number): Property {
  place.hasOnly(['name', 'presence', 'type', 'default'])
  const name = place.member('name').text()
  const presence = place.member('presence').oneOf(['required', 'optional', 'repeated'])
  const type = place.member('type')
  const kind = type.member('kind').oneOf([...scalarKinds, 'message'])
  const literal = place.member('default').optional()?.literal()
  const filled: { readonly default?: PropertyDefault } =
    literal === undefined ? {} : { default: literal }
  if (kind !== 'message') {
    type.hasOnly(['kind'])
    return { name, presence, type: { kind }, ...filled }
  }
  type.hasOnly(['kind', 'properties'])
  const properties = readProperties(type.member('properties'), depth + 1)
  return { name, presence, type: { kind, properties }, ...filled }
}

const indexMembers = ['kind', 'name', 'table', 'parts', 'absent', 'storing'] as const
const moreByKind = {
  local: ['unique'],
  inline: ['into'],
  global: ['unique', 'shards', 'shardBy', 'spread'],
} as const

function readIndex(place: JsonPlace): IndexDraft {
  const kind = place.member('kind').oneOf(['local', 'global', 'inline'])
  place.hasOnly([...indexMembers, ...moreByKind[kind]])
  const isGlobal = kind === 'global'
  const absent = place.member('absent')
  return {
    kind,
    name: place.member('name').text(),
    table: place.member('table').text(),
    parts: place.member('parts').list(storedMax, (part) => {
      part.hasOnly(['path', 'direction'])
      const direction = part.member('direction').oneOf(['asc', 'desc'])
      return { path: part.member('path').text(), direction }
    }),
    absent: absent.value === undefined ? undefined : absent.oneOf(['first', 'left-out']),
    storing: place.member('storing').list(propertiesMax, (path) => path.text()),
    unique: kind === 'inline' ? false : place.member('unique').truth(),
    into: kind === 'inline' ? place.member('into').text() : undefined,
    shards: isGlobal ? place.member('shards').number() : undefined,
    shardBy: isGlobal ? place.member('shardBy').text() : undefined,
    spread: isGlobal ? place.member('spread').number() : undefined,
  }
}
