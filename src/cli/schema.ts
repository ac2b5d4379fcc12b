/**
 * `trilithon schema check` and `schema print`: looks at a schema in a file, as text or as the JSON that
 * `schema print --json` gives. They send no request to a cluster; `schema-cluster.ts` does that.
 */
import type { Command } from 'commander'
import type { SchemaResult } from '../../schema/check.ts'
import { parseSchema } from '../../schema/ddl-parse.ts'
import { printSchema } from '../../schema/ddl-print.ts'
import { locate, reportProblems, type Source } from '../../schema/ddl-report.ts'
import { parseSchemaJson } from '../../schema/decode.ts'
import { fingerprintOf } from '../../schema/fingerprint.ts'
import type { Schema } from '../../schema/model.ts'
import type { SchemaProblem } from '../../schema/problem.ts'
import { ruleByKind } from '../../schema/rules.ts'
import { assert } from '../base/assert.ts'
import { unkeptIndex } from '../tables/unkept-index.ts'
import { CliError, exitUsage } from './exit.ts'
import { readInput } from './input-file.ts'
import { counted, print, printJson, say } from './output.ts'
import type { Options } from './options.ts'
import { addSchemaClusterCommands } from './schema-cluster.ts'

export function addSchemaCommand(program: Command): void {
  const schema = program
    .command('schema')
    .description('look at a schema in a file, or at the one that a cluster has')
  schema
    .command('check')
    .argument('<FILE>', 'a schema as text or as JSON; - reads it from stdin')
    .description('check a schema, and list everything that is wrong with it')
    .option('--json', 'as JSON')
    .action(checkFile)
  schema
    .command('print')
    .argument('<FILE>', 'a schema as text or as JSON; - reads it from stdin')
    .description('print a schema in its standard form')
    .option('--json', 'as JSON')
    .action(printFile)
  schema
    .command('message')
    .argument('<FILE>', 'descriptors of Protocol Buffers, as buf build or protoc -o write them')
    .argument('[NAME]', 'a message, such as photos.Exif; without it, all names are listed')
    .description('print a message of Protocol Buffers as properties of a schema')
    // With the library of Protocol Buffers, which no other command needs.
    .action(async (file: string, name: string | undefined) => {
      const { printMessage } = await import('./schema-message.ts')
      await printMessage(file, name)
    })
  addSchemaClusterCommands(schema, async (file) =>
    requireSchema(await readSchema(file), { isTold: false }),
  )
}

interface Read {
  readonly source: Source
  readonly result: SchemaResult
}

async function checkFile(file: string, options: Options): Promise<void> {
  const read = await readSchema(file)
  const { result, source } = read
  if (!result.ok && options['json'] === true) {
    printJson({ ok: false, problems: result.problems.map((one) => problemJson(one, source)) })
  }
  const schema = requireSchema(read, { isTold: options['json'] === true })
  const unkept = unkeptIndex(schema)
  if (unkept !== undefined) {
    const { message } = unkept
    if (options['json'] === true)
      printJson({ ok: false, problems: [{ kind: 'not-kept', message }] })
    throw new CliError(`${source.file}: ${message}`, exitUsage)
  }
  const { name, tables, indexes } = schema
  const fingerprint = fingerprintOf(schema)
  if (options['json'] === true) {
    const names = { tables: tables.map(readName), indexes: indexes.map(readName) }
    return printJson({ ok: true, name, fingerprint, ...names })
  }
  const indexCount = indexes.length === 1 ? '1 index' : `${indexes.length} indexes`
  print(`ok: schema ${name}, ${counted(tables.length, 'table')}, ${indexCount}, ${fingerprint}`)
}

async function printFile(file: string, options: Options): Promise<void> {
  const schema = requireSchema(await readSchema(file), { isTold: false })
  if (options['json'] === true) return printJson(schema)
  const text = printSchema(schema)
  const again = parseSchema(text)
  assert(
    again.ok && fingerprintOf(again.schema) === fingerprintOf(schema),
    'SCH-11: what is printed reads back as what it was printed from',
  )
  process.stdout.write(text)
}

async function readSchema(path: string): Promise<Read> {
  const file = path === '-' ? 'stdin' : path
  const text = await readInput(path)
  // No text of a schema begins with a brace, and every JSON of one does.
  if (text.trimStart().startsWith('{')) {
    return { source: { file }, result: parseSchemaJson(text) }
  }
  return { source: { file, text }, result: parseSchema(text) }
}

/** The schema. When there is none, its problems go to stderr, unless the command has printed them as JSON. */
function requireSchema({ result, source }: Read, { isTold }: { readonly isTold: boolean }): Schema {
  if (result.ok) return result.schema
  if (!isTold) say(reportProblems(result.problems, source))
  throw new CliError(`${source.file} has ${counted(result.problems.length, 'problem')}`, exitUsage)
}

function problemJson(problem: SchemaProblem, { text }: Source): unknown {
  const { kind, message, hint, at, span } = problem
  const place = span === undefined || text === undefined ? {} : locate(text, span.start)
  return { kind, rule: ruleByKind[kind], message, hint, at, ...place }
}

function readName({ name }: { readonly name: string }): string {
  return name
}
