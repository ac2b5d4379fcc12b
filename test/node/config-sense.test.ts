/**
 * Values of the right type that serve no operator: words of a shell, URLs without a host, bounds too small
 * for one request.
 */
import { expect, test } from 'vitest'
import { buildConfig } from '../../src/config/config.ts'
import { parseYaml } from '../../src/config/source.ts'

const good = `cluster: trips
node: a
listen: 127.0.0.1:4700
data: ./data/a
nodes:
  - { id: a, url: "http://127.0.0.1:4700" }
  - { id: b, url: "ws://127.0.0.1:4701" }
  - { id: c, url: "http://127.0.0.1:4702/" }
`

function withLine(from: string, to: string): string {
  expect(good).toContain(from)
  return good.replace(from, to)
}

const bad: readonly (readonly [title: string, yaml: string, said: RegExp])[] = [
  [
    'a folder of another user',
    withLine('./data/a', '~ann/data'),
    /^a\.yaml:4:7: data: ~ann means nothing here; write the whole path$/,
  ],
  [
    'a folder that a variable names',
    withLine('./data/a', '$HOME/data'),
    /^a\.yaml:4:7: data: \$HOME means nothing here; write the whole path$/,
  ],
  [
    'a folder that a variable in braces names',
    withLine('./data/a', '"/var/${NODE}/data"'),
    /^a\.yaml:4:7: data: \$\{NODE\} means nothing here; write the whole path$/,
  ],
  [
    'a secret file that a variable names',
    `${good}secret_file: $HOME/secret\n`,
    /^a\.yaml:9:14: secret_file: \$HOME means nothing here; write the whole path$/,
  ],
  [
    'a URL without a host',
    withLine('ws://127.0.0.1:4701', 'ws://'),
    /^a\.yaml:7:19: nodes: wants a URL such as/,
  ],
  [
    'a URL with its host in the place of a path',
    withLine('ws://127.0.0.1:4701', 'ws:///127.0.0.1:4701'),
    /^a\.yaml:7:19: nodes: wants a URL such as/,
  ],
  [
    'room for no whole request',
    `${good}request_bytes_max: 1\n`,
    /^a\.yaml:9:20: request_bytes_max: wants a whole number from 8388608 to/,
  ],
  [
    'room for no whole answer',
    `${good}answer_bytes_max: 1\n`,
    /^a\.yaml:9:19: answer_bytes_max: wants a whole number from 16777216 to/,
  ],
  [
    'transactions that may read nothing',
    `${good}limits: { transaction_reads_max: 1 }\n`,
    /limits\.transaction_reads_max: wants a whole number from 1000 to/,
  ],
  [
    'room for no whole entry in the log',
    `${good}limits: { log_queue_bytes_max: 1 }\n`,
    /limits\.log_queue_bytes_max: wants a whole number from 8388608 to/,
  ],
  [
    'room for no whole entry in memory',
    `${good}limits: { overlay_bytes_max: 1 }\n`,
    /limits\.overlay_bytes_max: wants a whole number from 8388608 to/,
  ],
]

test.each(bad)('%s is refused with one clear problem', (_title, yaml, said) => {
  const parsed = parseYaml(yaml, 'a.yaml')
  if (!parsed.ok) throw new Error('test: it is YAML')
  const file = { path: 'a.yaml', root: parsed.root }
  const result = buildConfig({ file, environment: {}, flags: new Map(), workingFolder: '/here' })
  const problems = result.ok ? [] : result.problems.map(({ where, text }) => `${where}: ${text}`)
  expect(problems).toEqual([expect.stringMatching(said)])
})

test('a dollar that no shell would look at is a part of a name', () => {
  const parsed = parseYaml(withLine('./data/a', './a$/b~'), 'a.yaml')
  if (!parsed.ok) throw new Error('test: it is YAML')
  const file = { path: '/here/a.yaml', root: parsed.root }
  const result = buildConfig({ file, environment: {}, flags: new Map(), workingFolder: '/' })
  expect(result).toMatchObject({ ok: true, config: { data: '/here/a$/b~' } })
})
