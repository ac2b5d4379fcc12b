/**
 * The names in the declarations of the package's exports: nothing of Node.js's own, so that a program in
 * which Node.js's types are missing, or are others, compiles against them.
 */
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const dist = resolve(import.meta.dirname, '../../dist')
const entries = [
  'src/index.d.ts',
  'schema/index.d.ts',
  'schema/protobuf.d.ts',
  'src/triggers/index.d.ts',
]

interface Module {
  /** The text of what is declared here, by name. */
  readonly declared: ReadonlyMap<string, string>
  /** Where a name of this file comes from: its file, relative to dist/ or a package, and its name there. */
  readonly from: ReadonlyMap<string, readonly [file: string, name: string]>
  readonly exported: readonly string[]
}

const modules = new Map<string, Module>()

function moduleOf(file: string): Module {
  const known = modules.get(file)
  if (known !== undefined) return known
  const text = readFileSync(join(dist, file), 'utf8').replaceAll(/\/\*[^]*?\*\//g, '')
  const declared = new Map<string, string>()
  const from = new Map<string, readonly [string, string]>()
  const exported: string[] = []
  for (const statement of text.split(/^(?=export |declare |import |interface |type )/m)) {
    const list = /^(import|export) (?:type )?\{([^}]*)\}(?: from ['"]([^'"]+)['"])?/.exec(statement)
    const own =
      /^(export )?(?:declare )?(?:abstract )?(?:class|interface|type|const|let|function|enum) (\w+)/.exec(
        statement,
      )
    if (list !== null) {
      const [, word, names = '', source] = list
      for (const [theirs, ours] of listed(names)) {
        if (word === 'export') exported.push(ours)
        if (source !== undefined) from.set(ours, [placeOf(file, source), theirs])
      }
    } else if (own !== null) {
      const [, isExported, name = ''] = own
      declared.set(name, `${declared.get(name) ?? ''}${statement}`)
      if (isExported !== undefined) exported.push(name)
    }
  }
  const found = { declared, from, exported }
  modules.set(file, found)
  return found
}

/** `type A as B, C`: [A, B], [C, C]. */
function listed(names: string): readonly (readonly [theirs: string, ours: string])[] {
  const each = names.split(',').map((name) => name.trim().replace(/^type /, ''))
  return each.filter(Boolean).map((name) => {
    const [theirs = '', ours = theirs] = name.split(' as ')
    return [theirs, ours]
  })
}

function placeOf(file: string, source: string): string {
  if (!source.startsWith('.')) return source
  return join(dirname(file), source.replace(/\.(ts|js)$/, '.d.ts'))
}

/** Of each name that exports lead to: those that are Node.js's, with the way to them. */
function ofNode(): readonly string[] {
  const found: string[] = []
  const seen = new Set<string>()
  const open: (readonly [file: string, name: string, way: string])[] = entries.flatMap((file) =>
    moduleOf(file).exported.map((name) => [file, name, name] as const),
  )
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [file, name, way] = next
    if (seen.has(`${file} ${name}`)) continue
    seen.add(`${file} ${name}`)
    const { declared, from } = moduleOf(file)
    const source = from.get(name)
    if (source !== undefined) {
      if (source[0].startsWith('node:')) found.push(`${way}: ${source[0]}`)
      else if (source[0].endsWith('.d.ts')) open.push([source[0], source[1], way])
      continue
    }
    for (const [, word = ''] of (declared.get(name) ?? '').matchAll(/\b([A-Za-z_]\w*)\b/g)) {
      if (/^(Buffer|NodeJS)$/.test(word)) found.push(`${way}: ${word}`)
      if (declared.has(word) || from.has(word)) open.push([file, word, `${way} > ${word}`])
    }
  }
  expect(seen.size).toBeGreaterThan(150)
  return found
}

test('public types name Uint8Array for bytes, and nothing of Node.js', () => {
  expect(ofNode()).toEqual([])
})
