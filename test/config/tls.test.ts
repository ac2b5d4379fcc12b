/** Certificates and keys that will not do are found before anything listens. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildGatewayConfig } from '../../src/gateway/gateway-config.ts'
import { buildConfig } from '../../src/config/config.ts'
import { loadConfig, type BuildResult, type FileNames } from '../../src/config/load.ts'
import type { ConfigSources } from '../../src/config/gather.ts'
import { tlsProblem, tlsWarnings } from '../../src/config/tls.ts'
import { cert, key } from '../node/tls-kit.ts'

const paths = { certFile: 'c.pem', keyFile: 'k.pem' }
const pem = { type: 'pkcs8', format: 'pem' } as const
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const otherKey = Buffer.from(other.privateKey.export(pem))
const encrypted = Buffer.from(
  other.privateKey.export({ ...pem, cipher: 'aes-256-cbc', passphrase: 'x' }),
)
const publicKey = Buffer.from(other.publicKey.export({ type: 'spki', format: 'pem' }))
const cut = Buffer.from(key.toString().replace(/\n.{20}/, '\n'))
const cutCert = Buffer.from(cert.toString().replace(/\nMIIB.{20}/, '\nMIIB'))
const text = Buffer.from('no PEM at all')
const der = Buffer.from(
  cert
    .toString()
    .replace(/-----.*-----/g, '')
    .replaceAll('\n', ''),
  'base64',
)

test.each([
  ['no certificate', text, key, 'tls.cert_file', /^c\.pem holds no certificate/],
  ['a certificate that is not text', der, key, 'tls.cert_file', /^c\.pem holds no certificate/],
  ['an empty file', Buffer.alloc(0), key, 'tls.cert_file', /^c\.pem holds no certificate/],
  ['both exchanged', key, cert, 'tls.cert_file', /and this is a private key$/],
  ['a certificate for a key', cert, cert, 'tls.key_file', /and this is a certificate$/],
  ['a damaged certificate', cutCert, key, 'tls.cert_file', /^the first certificate in c\.pem/],
  ['no key', cert, text, 'tls.key_file', /^k\.pem holds no private key/],
  ['a public key', cert, publicKey, 'tls.key_file', /^k\.pem holds no private key/],
  ['a damaged key', cert, cut, 'tls.key_file', /^the key in k\.pem cannot be read: /],
  ['an encrypted key', cert, encrypted, 'tls.key_file', /^the key in k\.pem is encrypted/],
  ['a key of another', cert, otherKey, 'tls.key_file', /is not that of the certificate in c\.pem$/],
] as const)('%s is refused', (_title, ownCert, ownKey, setting, said) => {
  const found = tlsProblem({ cert: ownCert, key: ownKey }, paths)
  expect(found).toEqual({ setting, text: expect.stringMatching(said) })
})

test('a correct certificate passes, also with blanks and words around it', () => {
  expect(tlsProblem({ cert, key }, paths)).toBeUndefined()
  const worded = Buffer.from(`subject=CN=localhost\r\n${cert.toString()}\n`)
  expect(tlsProblem({ cert: worded, key }, paths)).toBeUndefined()
  expect(tlsProblem({ cert: Buffer.concat([cert, cert]), key }, paths)).toBeUndefined()
})

test('the check warns of dates and names that clients will refuse', () => {
  const at = (date: string, names: readonly string[] = []): readonly string[] =>
    tlsWarnings({ cert, key }, paths, names, Date.parse(date)).map(({ text: said }) => said)
  expect(at('2030-01-01')).toEqual([])
  expect(at('2130-01-01')).toEqual(['the certificate in c.pem expired on Nov  2 07:07:11 2126 GMT'])
  expect(at('2020-01-01')).toEqual([
    'the certificate in c.pem is not valid before Nov 26 07:07:11 2026 GMT',
  ])
  expect(at('2030-01-01', ['localhost'])).toEqual([])
  expect(at('2030-01-01', ['127.0.0.1'])).toEqual([])
  expect(at('2030-01-01', ['db.example', 'localhost'])).toEqual([])
  for (const name of ['db.example', '127.0.0.2', '::1']) {
    expect(at('2030-01-01', [name])[0]).toContain(`is not for ${name} (it is for DNS:localhost, `)
  }
})

let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-config-tls-'))
  await writeFile(join(folder, 'c.pem'), cert)
  await writeFile(join(folder, 'k.pem'), key)
  await writeFile(join(folder, 'other.pem'), otherKey)
})

afterAll(() => rm(folder, { recursive: true, force: true }))

async function load<Config extends FileNames>(
  yaml: string,
  build: (sources: ConfigSources) => BuildResult<Config>,
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly problems: readonly string[]; readonly warnings: readonly string[] }> {
  const file = join(folder, 'x.yaml')
  await writeFile(file, yaml)
  const result = await loadConfig(
    { file, environment, flags: new Map(), workingFolder: folder },
    build,
  )
  const said = (all: readonly { readonly where: string; readonly text: string }[]): string[] =>
    all.map(({ where, text: what }) => `${where}: ${what}`.replaceAll(`${folder}/`, ''))
  return result.ok
    ? { problems: [], warnings: said(result.warnings) }
    : { problems: said(result.problems), warnings: [] }
}

const node = `cluster: t
node: a
data: ./d
listen: 127.0.0.1:1
nodes:
  - { id: a, url: "https://127.0.0.1:1" }
  - { id: b, url: "https://127.0.0.1:2" }
  - { id: c, url: "https://127.0.0.1:3" }
`
const gateway = 'nodes: ["https://127.0.0.1:1"]\n'
const good = 'tls: { cert_file: c.pem, key_file: k.pem }\n'

test('nodes and gateways are refused with the place of the file that is wrong', async () => {
  const wrong = 'tls: { cert_file: c.pem, key_file: other.pem }\n'
  const said = 'the key in other.pem is not that of the certificate in c.pem'
  expect((await load(node + wrong, buildConfig)).problems).toEqual([`x.yaml:9:36: ${said}`])
  expect((await load(gateway + wrong, buildGatewayConfig)).problems).toEqual([
    `x.yaml:2:36: ${said}`,
  ])
  const none = { problems: [], warnings: [] }
  expect(await load(node + good, buildConfig)).toEqual(none)
  expect(await load(gateway + good, buildGatewayConfig)).toEqual(none)
})

test('a certificate for other names is taken with a warning', async () => {
  const elsewhere = node.replace('//127.0.0.1:1"', '//127.0.0.2:1"')
  expect((await load(elsewhere + good, buildConfig)).warnings).toEqual([
    expect.stringContaining('x.yaml:9:19: the certificate in c.pem is not for 127.0.0.2 '),
  ])
  const named = `${gateway}${good}allowed_hosts: [db.example]\n`
  expect((await load(named, buildGatewayConfig)).warnings).toEqual([
    expect.stringContaining('x.yaml:2:19: the certificate in c.pem is not for db.example '),
  ])
})

test('a file of authorities that Node.js would pass over is refused', async () => {
  const at = async (name: string): Promise<readonly string[]> =>
    (await load(node + good, buildConfig, { NODE_EXTRA_CA_CERTS: join(folder, name) })).problems
  expect(await at('c.pem')).toEqual([])
  expect(await at('none.pem')).toEqual([
    'NODE_EXTRA_CA_CERTS: none.pem cannot be read: there is no such file (ENOENT)',
  ])
  expect(await at('k.pem')).toEqual(['NODE_EXTRA_CA_CERTS: k.pem holds no certificate'])
})

test('an unreadable CA file is a warning to a process that makes no TLS calls', async () => {
  const environment = { NODE_EXTRA_CA_CERTS: join(folder, 'none.pem') }
  const said = 'NODE_EXTRA_CA_CERTS: none.pem cannot be read: there is no such file (ENOENT)'
  const plain = node.replaceAll('https:', 'http:')
  const warned = { problems: [], warnings: [said] }
  expect(await load(plain, buildConfig, environment)).toEqual(warned)
  const plainGateway = gateway.replace('https:', 'http:')
  expect(await load(plainGateway, buildGatewayConfig, environment)).toEqual(warned)
  const oneOverTls = plain.replace('http://127.0.0.1:3', 'https://127.0.0.1:3')
  expect((await load(oneOverTls, buildConfig, environment)).problems).toEqual([said])
  expect((await load(gateway, buildGatewayConfig, environment)).problems).toEqual([said])
  const alone = node.replace(/ {2}- \{ id: b[^]*/, '') + good
  const { problems, warnings } = await load(alone, buildConfig, environment)
  expect(problems).toEqual([])
  expect(warnings).toContain(said)
})

test('the secret of the peers may be any text that is long enough', async () => {
  const wrapped = `${'A'.repeat(64)}\n${'B'.repeat(24)}`
  for (const secret of [wrapped, `${wrapped}\n`, 'sécret, of a sort', 'x'.repeat(1_025)]) {
    await writeFile(join(folder, 'peers'), secret)
    const file = join(folder, 'x.yaml')
    await writeFile(file, `${node}peer_secret_file: peers\n`)
    const sources = { file, environment: {}, flags: new Map(), workingFolder: folder }
    const result = await loadConfig(sources, buildConfig)
    if (!result.ok) expect.fail(JSON.stringify(result.problems))
    // As the versions before this read it: nodes of both prove the same.
    expect(result.files.peerSecret).toBe(secret.trim())
  }
  await writeFile(join(folder, 'peers'), 'fifteen letters\n')
  expect((await load(`${node}peer_secret_file: peers\n`, buildConfig)).problems).toEqual([
    'x.yaml:9:19: the secret in peers has 15 characters; at least 16 are wanted (openssl rand -hex 32 makes a good one)',
  ])
})

test('a gateway that calls an address to listen on is warned, and refused at port 0', async () => {
  const wildcard = 'nodes: ["http://0.0.0.0:4700"]\n'
  expect(await load(wildcard, buildGatewayConfig)).toEqual({
    problems: [],
    warnings: [
      'x.yaml:1:8: http://0.0.0.0:4700 is an address to listen on: it leads to the machine that calls it, or nowhere',
    ],
  })
  const none = 'nodes: ["http://127.0.0.1:0"]\n'
  expect((await load(none, buildGatewayConfig)).problems).toEqual([
    expect.stringContaining('no process can be called at port 0'),
  ])
})

test('a gateway that would ask itself is refused', async () => {
  const own = 'nodes: ["http://localhost:4800", "http://127.0.0.1:4700"]\n'
  expect((await load(own, buildGatewayConfig)).problems).toEqual([
    'x.yaml:1:8: http://localhost:4800 is where this gateway listens: it would ask itself',
  ])
})
