/**
 * Settings that a configuration may have and hardly ever means: taken, with a warning that names what to look
 * at.
 */
import { expect, test } from 'vitest'
import { buildConfig, type ConfigResult } from '../../src/config/config.ts'
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

function build(yaml: string): ConfigResult {
  const parsed = parseYaml(yaml, 'a.yaml')
  if (!parsed.ok) return parsed
  const file = { path: 'a.yaml', root: parsed.root }
  return buildConfig({ file, environment: {}, flags: new Map(), workingFolder: '/here' })
}

function withLine(from: string, to: string): string {
  expect(good).toContain(from)
  return good.replace(from, to)
}

const doubtful: readonly (readonly [title: string, yaml: string, said: RegExp])[] = [
  ['one node', good.replace(/ {2}- \{ id: b[^]*/, ''), /^one node: .* survives no failure$/],
  [
    'two nodes',
    good.replace(/ {2}- \{ id: c[^]*/, ''),
    /^set main has 2 nodes, of which 2 must be up: it survives as many failures as 1 would \(none\)$/,
  ],
  [
    'four nodes',
    `${good}  - { id: d, url: "http://127.0.0.1:4703" }\n`,
    /^set main has 4 nodes, of which 3 must be up: .* as 3 would \(1\)$/,
  ],
  [
    'a set of one beside a whole one',
    `${good}  - { id: d, url: "http://127.0.0.1:4703", set: east }\n`,
    /^set east has one node: one copy/,
  ],
  [
    'another port than the one of the URL',
    withLine('listen: 127.0.0.1:4700', 'listen: 127.0.0.1:4709'),
    /^a listens at 127\.0\.0\.1:4709, and its url is http:\/\/127\.0\.0\.1:4700/,
  ],
  ['https without TLS', withLine('http://127.0.0.1:4700', 'https://127.0.0.1:4700'), /proxy/],
  [
    'TLS here, and none at the others',
    `${withLine('http://127.0.0.1:4700', 'https://127.0.0.1:4700')}tls: { cert_file: c, key_file: k }\n`,
    /^a has tls, and b, c are called over http/,
  ],
  [
    'TLS behind a URL without',
    `${good.replaceAll('ws:', 'https:').replace('http://127.0.0.1:4702', 'https://127.0.0.1:4702')}tls: { cert_file: c, key_file: k }\n`,
    /^a has tls, and its url is http:\/\/127\.0\.0\.1:4700: .*; write https$/,
  ],
  [
    'an own address that is one to listen on',
    withLine('http://127.0.0.1:4700', 'http://0.0.0.0:4700'),
    /^the url of a is http:\/\/0\.0\.0\.0:4700, .*: 0\.0\.0\.0 is to listen on$/,
  ],
  [
    'an own address at port 0',
    withLine('http://127.0.0.1:4700', 'http://[::1]:0'),
    /^the url of a is http:\/\/\[::1\]:0, .*: no process can be called at port 0$/,
  ],
  [
    'another node at an address to listen on',
    withLine('ws://127.0.0.1:4701', 'ws://0.0.0.0:4701'),
    /^b is called at an address to listen on/,
  ],
  [
    'other nodes at addresses to listen on',
    withLine('ws://127.0.0.1:4701', 'ws://0.0.0.0:4701').replace('127.0.0.1:4702', '[::]:4702'),
    /^b, c are called at an address to listen on/,
  ],
  [
    'an address that only this machine reaches',
    good.replaceAll('//127.0.0.1', '//db1.example'),
    /^a listens on 127\.0\.0\.1, which other machines cannot reach/,
  ],
  [
    'loopback as the address for other machines',
    withLine('ws://127.0.0.1', 'ws://db2.example'),
    /^the url of a is http:\/\/127\.0\.0\.1:4700: nodes on other machines would reach themselves/,
  ],
]

test.each(doubtful)('%s is taken, with one warning', (_title, yaml, said) => {
  const result = build(yaml)
  if (!result.ok) expect.fail(JSON.stringify(result.problems))
  expect(result.warnings).toHaveLength(1)
  expect(result.warnings[0]).toMatchObject({ setting: 'nodes', text: expect.stringMatching(said) })
})
