/** Configuration: precedence, origins, and the complaints about wrong files. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkLimits, defaultLimits } from '../../src/base/limits.ts'
import { buildConfig, type ConfigResult } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { NodeConfig } from '../../src/config/node-config.ts'
import { parseYaml } from '../../src/config/source.ts'
import { limitSettings } from '../../src/config/settings.ts'
import { editDistance, nearest } from '../../src/base/suggest.ts'

const good = `cluster: trips
node: a
listen: 127.0.0.1:4700
data: ./data/a
nodes:
  - { id: a, url: "http://127.0.0.1:4700" }
  - { id: b, url: "ws://127.0.0.1:4701" }
  - { id: c, url: "http://127.0.0.1:4702/" }
`

function build(
  yaml: string,
  flags: Readonly<Record<string, string>> = {},
  environment: Readonly<Record<string, string>> = {},
): ConfigResult {
  const parsed = parseYaml(yaml, 'a.yaml')
  if (!parsed.ok) return parsed
  const file = { path: 'a.yaml', root: parsed.root }
  const flagMap = new Map(Object.entries(flags))
  return buildConfig({ file, environment, flags: flagMap, workingFolder: '/here' })
}

/** The complaints as they are printed. */
function complaints(result: ConfigResult): readonly string[] {
  return result.ok ? [] : result.problems.map(({ where, text }) => `${where}: ${text}`)
}

/** The good file with a line replaced, or one more line. */
function withLine(from: string, to: string): string {
  expect(good).toContain(from)
  return good.replace(from, to)
}

const bad: readonly (readonly [title: string, yaml: string, said: RegExp])[] = [
  ['an empty file', '', /^a\.yaml: is empty or not a map/],
  ['a list instead of a map', '- cluster', /^a\.yaml: is empty or not a map/],
  ['a lone word', 'trips', /^a\.yaml: is empty or not a map/],
  ['broken YAML', 'cluster: [trips', /^a\.yaml:1:\d+: /],
  ['a tab for indentation', 'cluster: x\n\tnode: a', /^a\.yaml:2:1: .*[Tt]ab/],
  ['a field twice', `${good}cluster: other\n`, /^a\.yaml:9:1: the key cluster is given twice$/],
  ['a quoted field twice', `${good}"data": x\n`, /^a\.yaml:9:1: the key "data" is given twice$/],
  [
    'a field twice inside another',
    `${good}tls: { cert_file: c, key_file: k, cert_file: d }\n`,
    /^a\.yaml:9:35: the key cert_file is given twice$/,
  ],
  ['an alias', good.replace('data: ./data/a', 'data: *x'), /^a\.yaml:4:7: .*alias/i],
  [
    'a mistyped field',
    withLine('listen', 'lisen'),
    /^a\.yaml:3:1: unknown field "lisen"; did you mean "listen"\?$/,
  ],
  ['a field of another program', `${good}replicas: 3\n`, /^a\.yaml:9:1: unknown field "replicas"/],
  [
    'a mistyped limit',
    `${good}limits:\n  group_queue_maks: 5\n`,
    /^a\.yaml:10:3: unknown field "group_queue_maks"; did you mean "group_queue_max"\?$/,
  ],
  ['limits that are no map', `${good}limits: 5\n`, /^a\.yaml:9:9: limits is a map of /],
  [
    'a limit of zero',
    `${good}limits:\n  group_queue_max: 0\n`,
    /limits\.group_queue_max: wants a whole number from 1 to/,
  ],
  [
    'a fractional limit',
    `${good}limits:\n  sweep_ms: 1.5\n`,
    /limits\.sweep_ms: wants a whole number .*not 1\.5$/,
  ],
  [
    'a limit in words',
    `${good}limits:\n  sweep_ms: fast\n`,
    /limits\.sweep_ms: wants a whole number .*not "fast"$/,
  ],
  [
    'limits that contradict',
    `${good}limits: { heartbeat_ms: 900 }\n`,
    /limits\.suspect_ms \(1000\) must be at least three times limits\.heartbeat_ms \(900\)/,
  ],
  [
    'a back-off above its maximum',
    `${good}limits: { backoff_ms: 9000 }\n`,
    /^a\.yaml:9:23: limits\.backoff_ms \(9000\) must not exceed/,
  ],
  [
    'a lease that is over before it is held for long',
    `${good}limits: { lease_ms: 104 }\n`,
    /^a\.yaml:9:21: limits\.lease_ms \(104\) must be 0, or at least 105 with limits\.clock_drift_ppm \(10000\)/,
  ],
  [
    'no cluster',
    withLine('cluster: trips\n', ''),
    /^a\.yaml: "cluster" is missing; write .*cluster: trips/,
  ],
  [
    'a cluster in capitals',
    withLine('trips', 'Trips'),
    /cluster: "Trips" is not allowed: it is 1 to 64/,
  ],
  [
    'a cluster that is a number',
    withLine('trips', '7'),
    /^a\.yaml:1:10: cluster: wants text, not 7/,
  ],
  [
    'an empty field',
    withLine('cluster: trips', 'cluster:'),
    /^a\.yaml:1:9: cluster: wants text, not nothing$/,
  ],
  ['no node', withLine('node: a\n', ''), /"node" is missing/],
  [
    'a node that is not listed',
    withLine('node: a', 'node: d'),
    /^a\.yaml:2:7: node "d" is not one of the nodes: a, b, c$/,
  ],
  ['no data folder', withLine('data: ./data/a\n', ''), /"data" is missing/],
  ['an empty data folder', withLine('./data/a', '""'), /data: "" is not allowed/],
  [
    'a listen without a port',
    withLine('127.0.0.1:4700\nd', '127.0.0.1\nd'),
    /^a\.yaml:3:9: listen: wants HOST:PORT/,
  ],
  [
    'a port out of range',
    withLine('127.0.0.1:4700\nd', '127.0.0.1:70000\nd'),
    /listen: wants HOST:PORT/,
  ],
  [
    'nodes as text',
    good.replace(/nodes:[^]*/, 'nodes: a\n'),
    /^a\.yaml:5:8: nodes: wants a list of/,
  ],
  ['no nodes in the list', good.replace(/nodes:[^]*/, 'nodes: []\n'), /nodes: wants a list of/],
  ['a node twice', withLine('id: b', 'id: a'), /^a\.yaml:7:5: nodes: two nodes have the id "a"$/],
  ['a URL twice', withLine(':4701', ':4700'), /two nodes have the url http:\/\/127\.0\.0\.1:4700$/],
  [
    'a node without URL',
    withLine(', url: "ws://127.0.0.1:4701"', ''),
    /^a\.yaml:7:5: nodes: a node lacks its url$/,
  ],
  [
    'a node with a typo',
    withLine('url: "ws', 'uri: "ws'),
    /unknown field "uri"; did you mean "url"\?/,
  ],
  [
    'a URL without scheme',
    withLine('ws://127', '127'),
    /^a\.yaml:7:19: nodes: wants a URL such as/,
  ],
  ['a URL with a path', withLine('4702/', '4702/v1'), /only scheme, host and port/],
  ['a wrong log level', `${good}log_level: verbos\n`, /log_level: unknown level "verbos"/],
  [
    'a wrong log store',
    `${good}log_store: file\n`,
    /^a\.yaml:9:12: log_store: unknown log store "file"; did you mean "files"\?/,
  ],
  ['a level nearly right', `${good}log_level: wran\n`, /did you mean "warn"\?/],
  [
    'a word for insecure',
    `${good}insecure: perhaps\n`,
    /insecure: wants true or false, not "perhaps"/,
  ],
  [
    'copies of buffered cells in less than none',
    `${good}buffer_copies: -1\n`,
    /^a\.yaml:9:16: buffer_copies: wants a whole number from 0/,
  ],
  [
    'copies of buffered cells in sets that are not there',
    `${good}buffer_copies: 2\n`,
    /^a\.yaml:9:16: buffer_copies \(2\) wants as many replica sets besides that of the cell, and there is no other/,
  ],
  [
    'a negative time',
    `${good}drain_timeout_ms: -1\n`,
    /drain_timeout_ms: wants a whole number from 0/,
  ],
  [
    'a public address without protection',
    withLine('listen: 127.0.0.1', 'listen: 0.0.0.0'),
    /^a\.yaml:3:9: listening on 0\.0\.0\.0, .* tls\.cert_file and tls\.key_file and secret_file.*--insecure/,
  ],
  [
    'a public address with only a secret',
    `${withLine('listen: 127.0.0.1', 'listen: 10.0.0.1')}secret_file: s\n`,
    /wants tls\.cert_file and tls\.key_file and peer_secret_file; set/,
  ],
  [
    'a public address whose nodes would prove themselves by the secret of clients',
    `${withLine('listen: 127.0.0.1', 'listen: 10.0.0.1').replace('http:', 'https:')}secret_file: s\ntls: { cert_file: c, key_file: k }\n`,
    /^a\.yaml:3:9: listening on 10\.0\.0\.1, .* wants peer_secret_file; set/,
  ],
  [
    'a name with a port among those that lead here',
    `${good}allowed_hosts: [db.example, "db.example:1"]\n`,
    /^a\.yaml:9:29: allowed_hosts: wants names of hosts without a port/,
  ],
  [
    'a path among the origins of pages',
    `${good}allowed_origins: ["https://app.example/x"]\n`,
    /^a\.yaml:9:19: allowed_origins: wants origins such as/,
  ],
  [
    'strangers who have all the room',
    `${good}unproven_max: 50\nunproven_per_address_max: 50\nconnections_max: 50\n`,
    /^a\.yaml:9:15: unproven_max \(50\) must be less than connections_max \(50\)/,
  ],
  [
    'one address that has more room than all strangers',
    `${good}unproven_max: 50\nunproven_per_address_max: 51\n`,
    /^a\.yaml:10:27: unproven_per_address_max \(51\) must not exceed unproven_max \(50\)/,
  ],
  [
    'a URL twice, by another name',
    withLine('ws://127.0.0.1:4701', 'https://localhost:4700'),
    /^a\.yaml:7:5: nodes: two nodes have the same address: http:\/\/127\.0\.0\.1:4700 and https:\/\/localhost:4700$/,
  ],
  [
    'a URL at port 0',
    withLine(':4701', ':0'),
    /^a\.yaml:7:19: .*no process can be called at port 0/,
  ],
  [
    'a URL with a password',
    withLine('4702/', '4702').replace('http://127.0.0.1:4702', 'http://:pw@h:4702'),
    /only scheme, host and port/,
  ],
  ['a tag', `${good}drain_timeout_ms: !env DRAIN\n`, /^a\.yaml:9:19: Unresolved tag: !env$/],
  ['a merge key', `${good}<<: { log_level: warn }\n`, /^a\.yaml:9:1: unknown field "<<"/],
  ['two documents', `${good}---\ncluster: x\n`, /^a\.yaml:9:1: a second document begins here/],
  [
    'a number among the names that lead here',
    `${good}allowed_hosts: [10.10]\n`,
    /^a\.yaml:9:17: allowed_hosts: wants names of hosts/,
  ],
  [
    'TLS without anything',
    `${good}tls: {}\n`,
    /^a\.yaml:9:6: tls is empty, and so there would be none/,
  ],
  [
    'a folder that only a shell knows',
    withLine('./data/a', '~/data'),
    /^a\.yaml:4:7: data: ~ means nothing here; write the whole path$/,
  ],
  [
    'a control character',
    `${good}log_level: "\\x1b[2J"\n`,
    /^a\.yaml:9:12: log_level: unknown level "\\u001b\[2J"/,
  ],
  ['half of TLS', `${good}tls: { cert_file: c.pem }\n`, /tls wants both cert_file and key_file/],
]

test.each(bad)('%s is refused with one clear problem', (_title, yaml, said) => {
  const lines = complaints(build(yaml))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(said)
})

test('all problems of a file come at once, each with its line', () => {
  const yaml = withLine('cluster: trips', 'cluster: T')
    .replace('lis', 'lsi')
    .replace('id: b', 'id: B')
  const lines = complaints(build(yaml))
  expect(lines.map((line) => line.slice(0, 11))).toEqual([
    'a.yaml:3:1:',
    'a.yaml:1:10',
    'a.yaml:7:11',
  ])
})

test('a good file gives typed values, with paths from its own folder and URLs made alike', () => {
  const result = build(good)
  expect(complaints(result)).toEqual([])
  if (!result.ok) return
  expect(result.config).toMatchObject({
    cluster: 'trips',
    node: 'a',
    listen: { host: '127.0.0.1', port: 4700 },
    data: resolve('data/a'),
    insecure: false,
    logLevel: 'info',
    limits: defaultLimits,
  })
  expect(result.warnings).toEqual([])
  expect(result.config.nodes.map(({ url }) => url)).toEqual([
    'http://127.0.0.1:4700',
    'http://127.0.0.1:4701',
    'http://127.0.0.1:4702',
  ])
})

test('a flag wins over the environment, which wins over the file, which wins over the default', () => {
  const environment = { TRILITHON_LISTEN: '127.0.0.1:1', TRILITHON_LIMITS_SWEEP_MS: '7' }
  const result = build(good, { listen: '[::1]:2' }, { ...environment, TRILITHON_DATA: 'elsewhere' })
  expect(complaints(result)).toEqual([])
  if (!result.ok) return
  const origin = (name: string): unknown =>
    result.settings.find((setting) => setting.name === name)?.origin
  expect(result.config.listen).toEqual({ host: '::1', port: 2 })
  expect(origin('listen')).toEqual({ kind: 'flag', name: '--listen' })
  expect(result.config.limits.sweepMs).toBe(7)
  expect(origin('limits.sweep_ms')).toEqual({
    kind: 'environment',
    name: 'TRILITHON_LIMITS_SWEEP_MS',
  })
  expect(result.config.data).toBe('/here/elsewhere')
  expect(origin('node')).toEqual({ kind: 'file', path: 'a.yaml', line: 2, column: 7 })
  expect(origin('log_level')).toEqual({ kind: 'default' })
})

test('without a file, flags and environment alone make a configuration', () => {
  const flags = new Map([
    ['cluster', 'trips'],
    ['node', 'a'],
    ['data', 'd'],
  ])
  const environment = { TRILITHON_NODES: 'a=http://h:1, b@east=http://h:2' }
  const result = buildConfig({ environment, flags, workingFolder: '/w' })
  expect(complaints(result)).toEqual([])
  if (!result.ok) return
  expect(result.config.nodes).toEqual([
    { id: 'a', url: 'http://h:1', set: 'main' },
    { id: 'b', url: 'http://h:2', set: 'east' },
  ])
  const nodes = result.settings.find(({ name }) => name === 'nodes')
  expect(nodes?.value).toBe('a=http://h:1,b@east=http://h:2')
})

test('a wrong flag is named as the flag, a wrong variable as the variable', () => {
  expect(complaints(build(good, { listen: 'x' }))).toEqual([
    '--listen: listen: wants HOST:PORT such as 127.0.0.1:4700, not "x"',
  ])
  const wrong = build(good, {}, { TRILITHON_NODES: 'a' })
  expect(complaints(wrong)).toEqual(['TRILITHON_NODES: nodes: a node lacks its url'])
})

test('names and origins are taken from lists, flags and the environment, in one spelling', () => {
  const yaml = `${good}allowed_hosts: [DB.example., "[::1]"]\nallowed_origins: ["https://App.example:443/"]\n`
  const result = build(
    yaml,
    {},
    { TRILITHON_UNPROVEN_MAX: '7', TRILITHON_UNPROVEN_PER_ADDRESS_MAX: '7' },
  )
  expect(complaints(result)).toEqual([])
  const listener = {
    ...{ allowedHosts: ['db.example', '::1'], allowedOrigins: ['https://app.example'] },
    ...{ unprovenMax: 7, connectionsMax: 12_000 },
  }
  expect(result).toMatchObject({ config: { listener } })
  const byFlag = build(good, { allowed_hosts: 'a.example, b.example' })
  expect(byFlag).toMatchObject({
    config: { listener: { allowedHosts: ['a.example', 'b.example'] } },
  })
})

test('--insecure allows a public address', () => {
  const open = withLine('listen: 127.0.0.1', 'listen: 0.0.0.0')
  expect(complaints(build(open, { insecure: 'true' }))).toEqual([])
})

test('limits that pass the configuration pass the assertions of the replica', () => {
  const limitsYaml = fc.dictionary(
    fc.constantFrom(...limitSettings.map(({ name }) => name.replace('limits.', ''))),
    fc.integer({ min: 1, max: 20_000_000 }),
  )
  fc.assert(
    fc.property(limitsYaml, (limits) => {
      const result = build(`${good}limits: ${JSON.stringify(limits)}\n`)
      if (result.ok) checkLimits(result.config.limits)
    }),
    { numRuns: 300, seed: 4700 },
  )
})

test('the loader reads the files that a configuration names, and reports absent or empty ones', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-config-'))
  try {
    const load = (extra: string): ReturnType<typeof loadConfig<NodeConfig>> =>
      writeFile(join(folder, 'a.yaml'), good + extra).then(() =>
        loadConfig(
          {
            file: join(folder, 'a.yaml'),
            environment: {},
            flags: new Map(),
            workingFolder: '/',
          },
          buildConfig,
        ),
      )
    await writeFile(join(folder, 'secret'), ' 0123456789abcdef \n')
    await writeFile(join(folder, 'short'), 'hush\n')
    const whole = await load('secret_file: secret\n')
    expect(whole.ok && whole.files.secret).toBe('0123456789abcdef')
    expect(complaints(await load('secret_file: gone\n'))[0]).toMatch(
      /a\.yaml:9:14: secret_file \S+\/gone cannot be read: there is no such file \(ENOENT\)$/,
    )
    expect(complaints(await load('secret_file: short\n'))[0]).toMatch(
      /has 4 characters; at least 16/,
    )
    for (const [secret, said] of [
      ['', /the secret in \S+ is empty; openssl/],
      [' \t\n\n', /the secret in \S+ is empty/],
      ['pässwörd-lang-genug', /has U\+00E4 as its character 2, and is to be printable ASCII/],
      ['0123456789abcdef\n0123456789abcdef', /has a line break as its character 17/],
      ['0123456789\0abcdef', /has U\+0000 as its character 11/],
      ['a'.repeat(1025), /has 1025 characters, and 1024 are the most/],
      [Buffer.from([...Buffer.from('0123456789abcdef'), 0xe9]), /has what is no text/],
    ] as const) {
      await writeFile(join(folder, 'wrong'), secret)
      const refused = complaints(await load('secret_file: wrong\n'))
      expect(refused).toHaveLength(1)
      expect(refused[0]).toMatch(said)
      // No header carries what nodes prove to one another with.
      const ofPeers = complaints(await load('peer_secret_file: wrong\n'))
      expect(ofPeers).toEqual(
        secret.length >= 16 ? [] : [expect.stringMatching(/the secret in \S+ is empty; openssl/)],
      )
    }
    const latin = complaints(await load('# caf\u00e9\n'))
    expect(latin).toEqual([])
    await writeFile(join(folder, 'a.yaml'), Buffer.from(`${good}# caf\xe9\n`, 'latin1'))
    const options = { environment: {}, flags: new Map(), workingFolder: '/' }
    const file = join(folder, 'a.yaml')
    expect(complaints(await loadConfig({ ...options, file }, buildConfig))).toEqual([
      `${file}:9:6: this is not UTF-8`,
    ])
    await writeFile(file, `\ufeff${good}`)
    expect(complaints(await loadConfig({ ...options, file }, buildConfig))).toEqual([])
    await writeFile(join(folder, 'peers'), 'fedcba9876543210\n')
    const both = await load('secret_file: secret\npeer_secret_file: peers\n')
    expect(both.ok && both.files.peerSecret).toBe('fedcba9876543210')
    expect(complaints(await load('secret_file: secret\npeer_secret_file: secret\n'))[0]).toMatch(
      /a\.yaml:10:19: it holds the same secret as secret_file: every client could pass for a node/,
    )
    const missing = await loadConfig(
      {
        file: join(folder, 'none.yaml'),
        environment: {},
        flags: new Map(),
        workingFolder: '/',
      },
      buildConfig,
    )
    await mkdir(join(folder, 'data'))
    await writeFile(join(folder, 'data', 'a'), 'no folder')
    expect(complaints(await load(''))).toEqual([
      `${join(folder, 'a.yaml')}:4:7: data ${join(folder, 'data', 'a')} is a file, not a folder`,
    ])
    expect(complaints(missing)[0]).toMatch(/none\.yaml: cannot be read: there is no such file/)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('the nearest word is found by edit distance, and none when all are far', () => {
  expect(editDistance('lisetn', 'listen')).toBe(1)
  expect(editDistance('', 'abc')).toBe(3)
  expect(nearest('dta', ['data', 'node'])).toBe('data')
  expect(nearest('replicas', ['data', 'node'])).toBeUndefined()
})

test('buffered cells have a copy on one other replica set, or as many as configured', () => {
  const two = good.replace('127.0.0.1:4702/" }', '127.0.0.1:4702/", set: west }')
  const copies = (...given: Parameters<typeof build>): number | undefined => {
    const built = build(...given)
    return built.ok ? built.config.bufferCopies : undefined
  }
  expect([copies(good), copies(two)]).toEqual([1, 1])
  expect(copies(`${two}buffer_copies: 1\n`, {}, { TRILITHON_BUFFER_COPIES: '0' })).toBe(0)
  expect(copies(two, { buffer_copies: '1' }, { TRILITHON_BUFFER_COPIES: '0' })).toBe(1)
  expect(complaints(build(two, { buffer_copies: '2' }))).toEqual([
    '--buffer-copies: buffer_copies (2) wants as many replica sets besides that of the cell, and there is one other',
  ])
})

test('a log is kept in LevelDB unless the configuration says otherwise', () => {
  const kind = (...given: Parameters<typeof build>): string | undefined => {
    const built = build(...given)
    return built.ok ? built.config.logStore : undefined
  }
  expect([kind(good), kind(`${good}log_store: files\n`)]).toEqual(['leveldb', 'files'])
  expect(kind(good, { log_store: 'files' }, { TRILITHON_LOG_STORE: 'leveldb' })).toBe('files')
})
