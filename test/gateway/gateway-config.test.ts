/** A gateway's configuration: what contradicts itself is refused, and slips in variables are warned of. */
import { expect, test } from 'vitest'
import { buildGatewayConfig, type GatewayConfig } from '../../src/gateway/gateway-config.ts'
import type { BuildResult } from '../../src/config/load.ts'
import { buildConfig } from '../../src/config/config.ts'
import { parseYaml } from '../../src/config/source.ts'

const good = 'nodes: ["http://127.0.0.1:4700", "http://127.0.0.1:4701"]\n'

function build(
  yaml: string,
  environment: Readonly<Record<string, string>> = {},
): BuildResult<GatewayConfig> {
  const parsed = parseYaml(yaml, 'g.yaml')
  if (!parsed.ok) return parsed
  const file = { path: 'g.yaml', root: parsed.root }
  return buildGatewayConfig({ file, environment, flags: new Map(), workingFolder: '/here' })
}

test.each([
  [
    'a try that takes longer than the request',
    `${good}timeout_ms: 500\ntry_timeout_ms: 501\n`,
    /^g\.yaml:3:17: try_timeout_ms \(501\) must not exceed timeout_ms \(500\): a request would end/,
  ],
  [
    'a breaker that opens for longer than at most',
    `${good}breaker_open_ms: 20000\n`,
    /^g\.yaml:2:18: breaker_open_ms \(20000\) must not exceed breaker_open_max_ms \(15000\)$/,
  ],
  [
    'a node twice',
    'nodes: ["http://127.0.0.1:4700", "ws://127.0.0.1:4700"]\n',
    /^g\.yaml:1:34: nodes: two nodes have the url http:\/\/127\.0\.0\.1:4700$/,
  ],
  [
    'a node twice, by another name',
    'nodes: ["http://127.0.0.1:4700", "https://localhost:4700"]\n',
    /^g\.yaml:1:34: nodes: two nodes have the same address: http:\/\/127\.0\.0\.1:4700 and https:\/\/localhost:4700$/,
  ],
  ['a node without a host', 'nodes: ["ws://"]\n', /^g\.yaml:1:9: nodes: wants a URL such as/],
  [
    'a time in which no request is answered',
    `${good}timeout_ms: 1\n`,
    /^g\.yaml:2:13: timeout_ms: wants a whole number from 10 to/,
  ],
  [
    'room for no whole request',
    `${good}request_bytes_max: 1\n`,
    /^g\.yaml:2:20: request_bytes_max: wants a whole number from 8388608 to/,
  ],
])('%s is refused with one clear problem', (_title, yaml, said) => {
  const result = build(yaml)
  const problems = result.ok ? [] : result.problems.map(({ where, text }) => `${where}: ${text}`)
  expect(problems).toEqual([expect.stringMatching(said)])
})

test('a default gives way to a number that was given', () => {
  const result = build(`${good}timeout_ms: 500\nbreaker_open_max_ms: 300\n`)
  expect(result).toMatchObject({
    config: { timeoutMs: 500, tryTimeoutMs: 500, breakerOpenMs: 300, breakerOpenMaxMs: 300 },
  })
})

test('a misspelt variable is warned of, at gateways and at nodes', () => {
  const environment = {
    TRILITHON_LISTN: '127.0.0.1:1',
    trilithon_nodes: 'http://127.0.0.1:1',
    TRILITHON_COLOUR: 'red',
    // Variables of the commands that ask a cluster, of container systems, of other programs.
    TRILITHON_URL: 'http://127.0.0.1:1',
    TRILITHON_SERVICE_HOST: '10.0.0.1',
    TRILITHON_PORT: 'tcp://10.0.0.1:4700',
    TRILITHON_A_PORT_4700_TCP_ADDR: '10.0.0.1',
    OTHER_LISTN: 'x',
  }
  const text = 'this process has no such setting, and passes over it'
  const warnings = [
    ['TRILITHON_LISTN', `${text}; did you mean TRILITHON_LISTEN?`],
    ['trilithon_nodes', `${text}; did you mean TRILITHON_NODES?`],
    ['TRILITHON_COLOUR', text],
  ].map(([name, said]) => ({ setting: name, where: name, text: said }))
  expect(build(good, environment)).toMatchObject({ ok: true, warnings })
  const flags = new Map([
    ...[['cluster', 't'] as const, ['node', 'a'] as const, ['data', 'd'] as const],
    ['nodes', 'a=http://127.0.0.1:4700'] as const,
  ])
  const node = buildConfig({ environment, flags, workingFolder: '/here' })
  expect(node.ok && node.warnings.slice(1)).toEqual(warnings)
})
