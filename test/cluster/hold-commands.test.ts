/** `trilithon purge`, `hold` and `cells ttl` as their users meet them: what the pages show, and refusals. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { connect } from '../../src/client/connect.ts'
import { rootKey } from '../../src/tables/tables.ts'
import { eventually, patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'

const rowKey = 'c1d3a5e7-0000-4000-8000-000000000001'
const User = table('User', { user: t.int64(), name: t.string() }).key('user').root()
const letterTable = { user: t.int64(), letter: t.int32(), text: t.string() }
const Letter = table('Letter', letterTable).key('user', 'letter').in(User)
const letters = defineSchema('Letters', [User, Letter])

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster({ ids: ['a'], cluster: 'trips' })
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  await client.applySchema(letters)
  const db = await client.tables(letters)
  await db.transaction(rootKey(User, { user: 1n }), async (tx) => {
    for (const letter of [1, 2]) await tx.put(Letter, { user: 1n, letter, text: 'Dear Bob' })
  })
  for (const refKey of [2, 3]) {
    await client.cells('trips').put({ rowKey, column: 'BASE', refKey, body: { city: 'Berlin' } })
  }
  await client.close()
})
afterAll(() => cluster?.close())

interface Ran {
  readonly code: number | undefined
  readonly lines: readonly string[]
}

/** A command line, with ' around words that have spaces; errors after what was printed. */
async function run(line: string): Promise<Ran> {
  const words = line.match(/'[^']*'|\S+/g) ?? []
  const own = words.map((word) => word.replaceAll("'", ''))
  const environment = { TRILITHON_URL: cluster.urls.join(',') }
  const { code, stdout, stderr } = await runProgram(own, { environment })
  return { code, lines: `${stdout}${stderr}`.trimEnd().split('\n').map(masked) }
}

function masked(line: string): string {
  return line.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
}

function stepsOf(page: string): readonly string[] {
  const text = readFileSync(new URL(`../../src/docs/${page}`, import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/```console\n([^]*?)```/g)]
  return blocks.flatMap(([, block = '']) => block.split(/^\$ trilithon /m).slice(1))
}

test.for([
  ['holds.md', 14],
  ['cells.md', 10],
] as const)('%s shows what the commands print', { timeout: patienceMs }, async ([page, count]) => {
  const steps = stepsOf(page)
  expect(steps).toHaveLength(count)
  for (const step of steps) {
    const [command = '', ...shown] = step.trimEnd().split('\n')
    const wanted = shown.map(masked)
    // Deletions gather once a checkpoint has taken them up, which the next command may not find done.
    const { code, lines } = await eventually(command, async () => {
      const ran = await run(command)
      return command !== 'erase status' || ran.lines.join() === wanted.join() ? ran : undefined
    })
    expect(lines, command).toEqual(wanted)
    expect(code === 0, command).toBe(!shown.some((line) => line.startsWith('error: ')))
  }
})

const group = `--schema Letters --key '{"user":1}'`

test.for([
  [`hold set --datastore trips --table Letter --reason x`, 'cannot be used with'],
  [`hold set --datastore trips --key '{"user":1}' --reason x`, 'cannot be used with'],
  [`hold set ${group} --row ${rowKey} --reason x`, 'cannot be used with'],
  [`hold set --schema Letters --reason x`, 'name the --schema and the --key of a group, or a'],
  [`hold set ${group}`, "required option '--reason <TEXT>' not specified"],
  [`hold set ${group} --table Leter --reason x`, 'unknown table "Leter"; did you mean "Letter"?'],
  [`hold set --schema Letters --key '{"usr":1}' --reason x`, 'its groups are of User by user'],
  [`hold set --datastore trips --row 5 --reason x`, 'the row key "5" is not a UUID'],
  [`purge Letter --schema Letters --key '{"user":1}' --yes`, 'letter is absent'],
  [`purge Leter --schema Letters --key '{"user":1}' --yes`, 'did you mean "Letter"?'],
  [`cells purge-cell -d trips ${rowKey} BASE x --yes`, 'REFKEY wants a number'],
  [`cells ttl set -d trips LOG '0 days'`, "such as '30 days', from 1 second to 36500 days"],
  [`cells ttl set -d trips LOG soon`, "such as '30 days'"],
  [`cells ttl set -d trips LO-G '1 day'`, 'the column name "LO-G" is not'],
] as const)('%s is wrong usage, and says what is right', async ([command, words]) => {
  const { code, lines } = await run(command)
  expect(lines.join('\n')).toContain(words)
  expect(code).toBe(2)
})

test('a hold of a table that the schema does not have is refused to programs as well', async () => {
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  try {
    const db = await client.tables(letters)
    const target = { db, key: rootKey(User, { user: 1n }), table: { name: 'Leter' } }
    await expect(client.holds.set(target, 'x')).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('Leter'),
    })
    expect(await client.holds.list(target)).toEqual([])
  } finally {
    await client.close()
  }
})
