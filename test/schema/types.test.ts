/**
 * The types, by the compiler itself: right code compiles, and the compiler refuses wrong code in its
 * place and in the expected words. Sixty tables are no burden.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { parseSchema } from '../../schema/ddl-parse.ts'
import type { DefinedSchema } from '../../schema/define.ts'
import { compile, errorsOf, expectedErrors, root } from './compiler.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const planted: string[] = []

afterEach(() => {
  for (const folder of planted.splice(0)) rmSync(folder, { recursive: true })
})

/** A project of one file outside the tree, with the settings of the examples. */
function plant(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-types-'))
  planted.push(folder)
  // Only relative imports of sources are rewritten.
  writeFileSync(join(folder, 'main.ts'), text.replaceAll(root, `${relative(folder, root)}/`))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  const settings = {
    extends: join(root, 'schema', 'examples', 'tsconfig.json'),
    compilerOptions: { rootDir: '/', typeRoots: [join(root, 'node_modules', '@types')] },
    include: ['main.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
  return folder
}

test('correct programs compile, with the right types', () => {
  expect(compile(here)).toBe('')
})

test('the examples compile in a project of their own', () => {
  expect(compile(join(root, 'schema', 'examples'))).toBe('')
})

test('wrong programs fail to compile, each in its place and with words that say why', () => {
  const folder = join(here, 'refused')
  const expected = expectedErrors(folder)
  const errors = errorsOf(compile(folder))
  expect([...errors.keys()].sort()).toEqual(expected.map(([place]) => place).sort())
  for (const [place, words] of expected) expect(errors.get(place), place).toContain(words)
})

/** A table three levels down with a dozen properties, three indexes, and a use of every type. */
function tableText(index: number): string {
  return `
export const Root${index} = table('Root${index}', { id: t.int64(), name: t.string() }).key('id').root()
export const Child${index} = table('Child${index}', {
  id: t.int64(), number: t.int32(), at: t.timestamp(), title: t.string(), size: t.double().optional(),
  place: t.message({ name: t.string(), point: t.message({ x: t.double(), y: t.double() }) }).optional(),
  tag: t.string().repeated(), note: t.json().optional(), state: t.string().default('new'),
}).key('id', desc('at'), 'number').in(Root${index})
  .localIndex('ByTitle${index}', ['id', 'title'], { storing: ['size', 'place.name'] })
  .globalIndex('ByTag${index}', ['tag', desc('at')], { storing: ['title'], shards: 8 })
  .localIndex('ByPlace${index}', ['id', 'place.point.x'])
export const row${index} = (row: Row<typeof Child${index}>): string => row.title + (row.place?.point.x ?? 0)
export const insert${index}: Insert<typeof Child${index}> = { id: 1n, number: 2, at: 3, title: 'a' }
export const key${index}: Key<typeof Child${index}> = { id: 1n, number: 2, at: 3 }
export const patch${index}: Patch<typeof Child${index}> = { size: null, tag: [] }
export const range${index}: KeyRange<typeof Child${index}> = { id: 1n, at: { gt: 4 } }
export const query${index}: IndexQuery<typeof Child${index}, 'ByTag${index}'> = { tag: 'a', at: { lt: 4 } }
export const entry${index} = (entry: IndexEntry<typeof Child${index}, 'ByTitle${index}'>): number =>
  entry.size ?? entry.number
`
}

const manyTables = 60
/** Far above what it takes (about 150,000 and a second): this is for what grows with a power. */
const instantiationsMax = 500_000
const secondsMax = 20

test('sixty tables with their rows, keys and queries compile quickly', () => {
  const imports = ['define', 'infer', 'property', 'table'].map((file) => {
    return `import ${importByFile[file]} from '${root}schema/${file}.ts'`
  })
  const numbers = Array.from({ length: manyTables / 2 }, (_, index) => index)
  const names = numbers.map((index) => `Root${index}, Child${index}`)
  const schema = `export const many = defineSchema('Many', [${names.join(', ')}])\n`
  const folder = plant(`${imports.join('\n')}\n${numbers.map(tableText).join('')}\n${schema}`)
  const output = compile(folder, '--noEmit', '--extendedDiagnostics')
  expect(output).not.toContain('error TS')
  const figure = (name: string): number =>
    Number(new RegExp(`${name}:\\s+([\\d.]+)`).exec(output)?.[1] ?? Number.NaN)
  expect(figure('Instantiations')).toBeLessThan(instantiationsMax)
  expect(figure('Total time')).toBeLessThan(secondsMax)
})

const importByFile: Readonly<Record<string, string>> = {
  define: '{ defineSchema }',
  infer: 'type { IndexEntry, IndexQuery, Insert, Key, KeyRange, Patch, Row }',
  property: '{ t }',
  table: '{ desc, table }',
}

test('the program in the documents compiles, runs, and says what the text there says', async () => {
  const page = readFileSync(join(root, 'src', 'docs', 'schema.md'), 'utf8')
  const program = /```ts\n([^]*?)```/.exec(page)?.[1] ?? ''
  const folder = plant(program.replace("'trilithon/schema'", `'${root}schema/index.ts'`))
  const settings = [
    '--noEmit',
    'false',
    '--noUnusedLocals',
    'false',
    '--outDir',
    join(folder, 'out'),
  ]
  expect(compile(folder, ...settings)).toBe('')
  const main = join(folder, 'out', relative('/', folder), 'main.js')
  const built: { readonly photoApp: DefinedSchema } = await import(pathToFileURL(main).href)
  const text = /```sql\n([^]*?)```/.exec(page)?.[1] ?? ''
  expect(parseSchema(text)).toEqual({ ok: true, schema: built.photoApp.model })
})
