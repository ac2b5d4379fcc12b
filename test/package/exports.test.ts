/** The names that each entry of the built package exports: a change of one is a change for its users. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const entries = ['src/index', 'schema/index', 'schema/protobuf', 'src/triggers/index', 'sim/index']

/** Of a file of declarations: `export { a, type B as C } from …`, and what it declares itself. */
function exportedNames(text: string): string[] {
  const listed = [...text.matchAll(/export (type )?\{([^}]*)\}/g)].flatMap(([, type, names = '']) =>
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => {
        const isType = type !== undefined || name.startsWith('type ')
        return `${isType ? 'type ' : ''}${name.replace(/^type /, '').replace(/^.* as /, '')}`
      }),
  )
  const declared = [...text.matchAll(/export declare (?:const|function|class) (\w+)/g)].map(
    ([, name = '']) => name,
  )
  const types = [...text.matchAll(/export (?:declare )?(?:interface|type) (\w+)/g)].map(
    ([, name = '']) => `type ${name}`,
  )
  return [...listed, ...declared, ...types].toSorted()
}

test('each entry of the package exports these names, and no others', async () => {
  const pages = await Promise.all(
    entries.map(async (entry) => {
      const names = exportedNames(await readFile(`${root}/dist/${entry}.d.ts`, 'utf8'))
      return `# ${entry}\n${names.join('\n')}\n`
    }),
  )
  await expect(pages.join('\n')).toMatchFileSnapshot('exports.txt')
})

test.each(entries)('%s gives the values that its declarations name', async (entry) => {
  const names = exportedNames(await readFile(`${root}/dist/${entry}.d.ts`, 'utf8'))
  const given: object = await import(`${root}/dist/${entry}.js`)
  expect(Object.keys(given).toSorted()).toEqual(names.filter((name) => !name.startsWith('type ')))
})
