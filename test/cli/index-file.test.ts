/** Files that define indexes: what means more than it shows, or nothing, is refused with its place. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { indexOfText } from '../../src/cli/index-file.ts'
import { runProgram } from '../cluster/harness.ts'

const good = `table: by_city
datastore: trips
column_defs:
  - column_key: BASE
    fields:
      - { field: city, type: string }
`

function saidOf(text: string): readonly string[] {
  const read = indexOfText(text)
  if ('definition' in read) return []
  return read.mistakes.map(({ line, column, message }) => `${line}:${column}: ${message}`)
}

test('a correct index file passes', () => {
  expect(saidOf(good)).toEqual([])
  expect(saidOf(`\ufeff${good}`)).toEqual([])
  expect(saidOf(JSON.stringify({ table: 'a', datastore: 'b' }))).toHaveLength(1)
})

const laughs = Array.from(
  { length: 9 },
  (_, n) => `l${n + 1}: &l${n + 1} [${Array.from({ length: 9 }, () => `*l${n}`).join(', ')}]`,
)

test.each<readonly [string, string, RegExp]>([
  ['a key twice', `${good}table: other\n`, /^7:1: the key table is given twice/],
  [
    'an unknown key',
    `${good}tabel: other\n`,
    /^7:8: unknown member "tabel"; did you mean "table"\?/,
  ],
  [
    'an unknown key of a column',
    good.replace('fields:', 'field:'),
    /^6:7: unknown member "field"; did you mean "fields"\?/,
  ],
  [
    'an unknown key of a field',
    good.replace('type: string', 'type: string, unique: true'),
    /unknown member "unique"/,
  ],
  ['a merge key', `${good}<<: { table: x }\n`, /^7:5: unknown member "<<"/],
  ['an anchor', good.replace('trips', '&t trips'), /^2:15: anchors are not supported/],
  ['an alias', good.replace('trips', '*t'), /^2:12: /],
  ['a bomb of aliases', `l0: &l0 [x]\n${laughs.join('\n')}\n`, /^1:\d+: anchors are not supported/],
  ['a tag', good.replace('trips', '!env TRIPS'), /^2:12: Unresolved tag: !env/],
  ['a number for a name', good.replace('by_city', '5'), /^1:8: table is the name of the index/],
  ['a number for a type', good.replace('type: string', 'type: 5'), /5 is no type of a field/],
  ['lists in lists without end', `table: ${'['.repeat(200_000)}`, /^1:\d+: /],
  ['two documents', `${good}---\n${good}`, /a second document begins here/],
  ['nothing', '', /an index is defined by table, datastore and column_defs/],
])('%s is refused', (_title, text, said) => {
  const [first] = saidOf(text)
  expect(first).toMatch(said)
})

test('the command refuses a file that is not UTF-8 before it sends a request', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-index-file-'))
  try {
    await writeFile(join(folder, 'i.yaml'), Buffer.from(`${good}# \xe9\n`, 'latin1'))
    expect(await runProgram(['index', 'apply', 'i.yaml'], { folder })).toMatchObject({
      code: 2,
      stderr: 'error: i.yaml:7:3: this is not UTF-8\n',
    })
  } finally {
    await rm(folder, { recursive: true })
  }
})
