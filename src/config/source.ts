/**
 * Configuration values with the place each came from: a line of the file, a variable of the
 * environment or a flag. Everything after this file is written against `Located`, whatever the
 * source was, so every complaint can name its place.
 *
 * Left out on purpose: YAML anchors and aliases (one value, one place), several documents.
 */
import { isMap, isScalar, isSeq } from 'yaml'
import { readYaml } from './yaml-text.ts'

/** Where a value came from. */
export type Origin =
  | { readonly kind: 'flag'; readonly name: string }
  | { readonly kind: 'environment'; readonly name: string }
  | {
      readonly kind: 'file'
      readonly path: string
      readonly line: number
      readonly column: number
    }
  | { readonly kind: 'default' }

export type Located =
  | { readonly kind: 'scalar'; readonly value: Scalar; readonly origin: Origin }
  | { readonly kind: 'list'; readonly items: readonly Located[]; readonly origin: Origin }
  | LocatedMap

export interface LocatedMap {
  readonly kind: 'map'
  readonly fields: ReadonlyMap<string, LocatedField>
  readonly origin: Origin
}

/** A field's value, and where its name stands. */
export interface LocatedField {
  readonly value: Located
  readonly origin: Origin
}

export type Scalar = string | number | boolean | undefined

/** One thing that is wrong, and where. */
export interface ConfigProblem {
  readonly where: string
  readonly text: string
}

/** A value that is permitted and hardly ever meant. */
export interface Warning {
  /** The setting to look at. */
  readonly setting: string
  readonly text: string
  /** Where to look; absent: where the setting was given. */
  readonly where?: string
}

export function describeOrigin(origin: Origin): string {
  switch (origin.kind) {
    case 'file':
      return `${origin.path}:${origin.line}:${origin.column}`
    case 'default':
      return 'default'
    default:
      return origin.name
  }
}

/** The value of a flag or variable, as the file would have it. */
export function scalarText(value: string, origin: Origin): Located {
  return { kind: 'scalar', value, origin }
}

/**
 * `a=http://host:1,b@east+region:eu+zone:b=http://host:2,c+joins=http://host:3` as the file's list of
 * `{id, url, set, region, zone, joins}`.
 */
export function nodeListText(text: string, origin: Origin): Located {
  const items = text.split(',').map((item): Located => {
    const cut = item.indexOf('=')
    const [name = '', ...marks] = (cut < 0 ? item : item.slice(0, cut)).trim().split('+')
    const [id = '', set] = name.split('@', 2)
    const named: [string, string][] = [['id', id]]
    if (cut >= 0) named.push(['url', item.slice(cut + 1).trim()])
    if (set !== undefined) named.push(['set', set])
    named.push(...marks.map(readMark))
    const fields = named.map(([field, value]): [string, LocatedField] => [
      field,
      { value: scalarText(value, origin), origin },
    ])
    return { kind: 'map', fields: new Map(fields), origin }
  })
  return { kind: 'list', items, origin }
}

function readMark(mark: string): [string, string] {
  const [, field = 'joins', value = mark === 'joins' ? 'true' : mark] =
    /^(region|zone):(.*)$/.exec(mark) ?? []
  return [field, value]
}

export type ParsedFile =
  | { readonly ok: true; readonly root: LocatedMap }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

/** Parses YAML text; `path` is what complaints call it. */
export function parseYaml(text: string, path: string): ParsedFile {
  const yaml = readYaml(text)
  if (!yaml.ok) {
    const problems = yaml.mistakes.map(({ line, column, text: said }) => ({
      where: describeOrigin({ kind: 'file', path, line, column }),
      text: said,
    }))
    return { ok: false, problems }
  }
  const { document, findPlace } = yaml
  const originAt = (offset: number): Origin => ({ kind: 'file', path, ...findPlace(offset) })
  const root = locate(document.contents, originAt)
  if (root.kind !== 'map') {
    const text = 'is empty or not a map; it starts with a line such as "cluster: trips"'
    return { ok: false, problems: [{ where: path, text }] }
  }
  return { ok: true, root }
}

function locate(node: unknown, originAt: (offset: number) => Origin): Located {
  const origin = originAt(findStart(node))
  if (isSeq(node)) {
    const items = node.items.map((item) => locate(item, originAt))
    return { kind: 'list', items, origin }
  }
  if (isMap(node)) {
    const fields = new Map<string, LocatedField>()
    for (const pair of node.items) {
      const keyOrigin = originAt(findStart(pair.key))
      const name = isScalar(pair.key) ? String(pair.key.value) : ''
      const value = pair.value === null ? emptyAt(keyOrigin) : locate(pair.value, originAt)
      fields.set(name, { value, origin: keyOrigin })
    }
    return { kind: 'map', fields, origin }
  }
  return { kind: 'scalar', value: isScalar(node) ? toScalar(node.value) : undefined, origin }
}

function emptyAt(origin: Origin): Located {
  return { kind: 'scalar', value: undefined, origin }
}

function findStart(node: unknown): number {
  const hasRange = isMap(node) || isSeq(node) || isScalar(node)
  return hasRange ? (node.range?.[0] ?? 0) : 0
}

function toScalar(value: unknown): Scalar {
  const isPlain =
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  if (isPlain) return value
  return undefined
}
