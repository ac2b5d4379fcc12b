/** Where clients reach a node: which addresses it may advertise, and which names it has by one. */
import { expect, test } from 'vitest'
import { buildConfig, type ConfigResult } from '../../src/config/config.ts'
import { parseYaml } from '../../src/config/source.ts'
import { buildGatewayConfig } from '../../src/gateway/gateway-config.ts'
import { listUrls } from '../../src/node/links.ts'

function build(more: string): ConfigResult {
  const yaml = `cluster: trips\nnode: a\ndata: ./data\nnodes: [{ id: a, url: "http://h:1" }]\n${more}`
  const parsed = parseYaml(yaml, 'a.yaml')
  if (!parsed.ok) return parsed
  const file = { path: 'a.yaml', root: parsed.root }
  return buildConfig({ file, environment: {}, flags: new Map(), workingFolder: '/here' })
}

test('without an advertised address clients reach a node where its peers do', () => {
  const built = build('')
  expect(built.ok && built.config.advertisedUrl).toBeUndefined()
  expect(built.ok && listUrls(built.config)).toEqual(['http://h:1'])
})

test.each([
  ['https://a.example', 'https://a.example'],
  ['wss://a.example:4700', 'https://a.example:4700'],
  ['http://10.0.0.1:4700', 'http://10.0.0.1:4700'],
])('%s is one, and its host is a name of the node', (given, wanted) => {
  const built = build(`advertised_url: "${given}"\n`)
  expect(built.ok && built.config.advertisedUrl).toBe(wanted)
  expect(built.ok && built.names).toEqual(['h', new URL(wanted).hostname])
  expect(built.ok && listUrls(built.config)).toEqual(['http://h:1', wanted])
  const shown = built.ok ? built.settings.find(({ name }) => name === 'advertised_url') : undefined
  expect(shown?.value).toBe(wanted)
})

test.each([
  [
    'http://0.0.0.0:4700',
    'is an address to listen on: clients would reach their own machine by it',
  ],
  ['http://a.example:0', 'no process can be called at port 0'],
  ['https://a.example/path', 'only scheme, host and port'],
  ['a.example:4700', 'wants a URL such as http://127.0.0.1:4700'],
  [`https://${'a'.repeat(300)}.example`, 'has more than 300 characters'],
])('%s is none', (given, why) => {
  const built = build(`advertised_url: "${given}"\n`)
  const said = built.ok ? '' : built.problems.map(({ text }) => text).join('; ')
  expect(said).toContain(why)
})

test.each([
  ['', true],
  ['follow: false\n', false],
])('a gateway follows the nodes unless its configuration says otherwise: %j', (more, wanted) => {
  const parsed = parseYaml(`nodes: ["http://127.0.0.1:4700"]\n${more}`, 'g.yaml')
  const file = parsed.ok ? { path: 'g.yaml', root: parsed.root } : undefined
  const flags = new Map<string, string>()
  const built = buildGatewayConfig({
    ...(file && { file }),
    environment: {},
    flags,
    workingFolder: '/',
  })
  expect(built.ok && built.config.follow).toBe(wanted)
})
