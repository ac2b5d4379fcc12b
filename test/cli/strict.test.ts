/** Commands refuse flags and arguments that they do not understand, before they send a request. */
import { Command, Option } from 'commander'
import { expect, test } from 'vitest'
import { parseCount, parseNumber } from '../../src/cli/client.ts'
import { gather, strict } from '../../src/cli/strict.ts'
import { runProgram } from '../cluster/harness.ts'

test.each(['0x10', '1e3', ' 7', '7 ', '+7', '', '-1', 'NaN', 'Infinity', '1_000', '7n', '٧'])(
  '%j is no number',
  (text) => {
    expect(() => parseCount('--limit', text, 0, 10_000)).toThrow('--limit wants a')
    expect(() => parseNumber('--timeout', text, 0, 10_000)).toThrow('--timeout wants a number')
  },
)

test('a count is digits, and a number may have a fraction', () => {
  expect(parseCount('--limit', '7', 0, 10)).toBe(7)
  expect(parseCount('--limit', '007', 0, 10)).toBe(7)
  expect(() => parseCount('--limit', '7.0', 0, 10)).toThrow('--limit wants a whole number')
  expect(() => parseCount('--limit', '7.', 0, 10)).toThrow('--limit wants a number')
  expect(parseNumber('--timeout', '0.5', 0, 10)).toBe(0.5)
  expect(() => parseCount('--limit', '11', 0, 10)).toThrow('from 0 to 10')
})

function parse(...words: readonly string[]): Readonly<Record<string, unknown>> {
  let given: Readonly<Record<string, unknown>> = {}
  const program = new Command('x').exitOverride()
  program
    .command('do')
    .argument('[NAME]')
    .option('--limit <N>')
    .option('--id <N...>')
    .addOption(new Option('--read <LEVEL>').choices(['current', 'any']).default('current'))
    .option('--only <N>', 'parsed by itself', Number)
    .option('--from <A=B>', 'given once for each', gather)
    .option('--json')
    .action((_: unknown, options: Readonly<Record<string, unknown>>) => void (given = options))
  strict(program)
  program.parse(['do', ...words], { from: 'user' })
  return given
}

test('a flag takes one value, once, that is not empty', () => {
  expect(parse('--limit', '1', '--json', '--json')).toMatchObject({
    ...{ limit: '1', json: true },
  })
  expect(parse('--id', '1', '2', '--id', '3')).toMatchObject({
    ...{ id: ['1', '2', '3'] },
  })
  expect(parse('--from', 'a=b', '--from', 'c=d')).toMatchObject({ from: ['a=b', 'c=d'] })
  expect(parse('--from', 'a=b', '--from=a=b')).toMatchObject({ from: ['a=b', 'a=b'] })
  expect(() => parse('--limit', '1', '--limit', '2')).toThrow('--limit is given twice')
  expect(() => parse('--limit=1', '--limit=1')).toThrow('--limit is given twice')
  expect(parse('--read', 'any', '--only', '7')).toMatchObject({ read: 'any', only: 7 })
  expect(() => parse('--read', 'any', '--read', 'any')).toThrow('--read is given twice')
  expect(() => parse('--read=current', '--read=any')).toThrow('--read is given twice')
  expect(() => parse('--only', '7', '--only', '8')).toThrow('--only is given twice')
  expect(() => parse('--limit', '')).toThrow('--limit is given an empty value')
  expect(() => parse('--id', '1', '')).toThrow('--id is given an empty value')
  expect(() => parse('--from', 'a=b', '--from', '')).toThrow('--from is given an empty value')
  expect(() => parse('')).toThrow('NAME is empty')
})

const row = '22222222-2222-4222-8222-222222222221'

test.each<readonly [string, readonly string[]]>([
  [
    '--where: n: there is no comparison "ge"',
    ['index', 'query', 'ix', '-d', 't', '--where', '{"n":{"ge":2}}'],
  ],
  ['--where: n is a list', ['index', 'query', 'ix', '-d', 't', '--where', '{"n":[2]}']],
  ['--where: n is empty', ['index', 'query', 'ix', '-d', 't', '--where', '{"n":{}}']],
  ['--where: n is null', ['index', 'query', 'ix', '-d', 't', '--where', '{"n":null}']],
  ['--where wants JSON', ['index', 'query', 'ix', '-d', 't', '--where', '[]']],
  ['--tree', ['rows', 'T', '--schema', 's', '--key', '{}', '--tree', '--index', 'i']],
  ['--at <TIME>', ['rows', 'T', '--schema', 's', '--key', '{}', '--at', '5', '--level', 'current']],
  ['--limit wants a number', ['rows', 'T', '--schema', 's', '--key', '{}', '--limit', '1e3']],
  ['--after wants a number', ['cells', 'tail', '-d', 't', '--shard', '3', '--after', '0x10']],
  ['--read goes with --no-follow', ['cells', 'tail', '-d', 't', '--read', 'snapshot']],
  [
    '--read is given twice',
    ['cells', 'get', row, 'B', '-d', 't', '--read', 'current', '--read', 'snapshot'],
  ],
  [
    '--level is given twice',
    ['rows', 'T', '--schema', 's', '--key', '{}', '--level', 'current', '--level', 'current'],
  ],
  [
    '--max-staleness',
    ['cells', 'get', row, 'B', '-d', 't', '--read', 'current', '--max-staleness', '500'],
  ],
  ['--max-staleness', ['cells', 'latest', row, '-d', 't', '--max-staleness', '99']],
  [
    '--max-staleness wants a whole number',
    ['cells', 'get', row, 'B', '-d', 't', '--max-staleness', '500.5'],
  ],
  ['too many arguments', ['cells', 'tail', '-d', 't', 'more']],
  ['REFKEY wants a whole number', ['cells', 'get', row, 'B', '7.0', '-d', 't']],
  ['COLUMN is empty', ['cells', 'get', row, '', '-d', 't']],
  ['--datastore is given an empty value', ['cells', 'get', row, 'B', '-d', '']],
  ['unknown option', ['status', '--urls', 'http://127.0.0.1:1']],
  ['--trips', ['demo', '--file', 'x.csv', '--trips', '5']],
])('%s: exit code 2', async (words, given) => {
  const { code, stderr } = await runProgram(given)
  expect(stderr).toContain(words)
  expect(code).toBe(2)
})
