/** The reference pages say what the code does. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { retryByCode } from '../../src/base/errors.ts'
import { exitByCode } from '../../src/cli/exit.ts'
import { buildGatewayConfig, gatewaySettings } from '../../src/gateway/gateway-config.ts'
import { statusByCode } from '../../src/gateway/problems.ts'
import { limitSettings, nodeSettings } from '../../src/config/settings.ts'
import { parseYaml } from '../../src/config/source.ts'
import { buildConfig } from '../../src/config/config.ts'

function page(name: string): string {
  return readFileSync(new URL(`../../src/docs/${name}`, import.meta.url), 'utf8')
}

test('the table of errors has every code with its status, exit code and retry', () => {
  const rows = [
    ...page('errors.md').matchAll(/^\| `([a-z-]+)` \| (\d+) \| (\d+) \| ([a-z-]+) \|/gm),
  ]
  const told = rows.map(([, code = '', status, exit, retry]) => [
    code,
    { status: Number(status), exit: Number(exit), retry },
  ])
  const meant = Object.entries(retryByCode).map(([code, retry]) => {
    const status = Object.entries(statusByCode).find(([name]) => name === code)?.[1]
    const exit = Object.entries(exitByCode).find(([name]) => name === code)?.[1]
    return [code, { status, exit, retry }]
  })
  expect(Object.fromEntries(told)).toEqual(Object.fromEntries(meant))
})

test('the configuration shown is a good one, and names every setting', () => {
  const yaml = /```yaml\n([^]*?)```/.exec(page('operating.md'))?.[1] ?? ''
  const parsed = parseYaml(yaml, 'operating.md')
  expect(parsed).toMatchObject({ ok: true })
  if (!parsed.ok) return
  const file = { path: 'operating.md', root: parsed.root }
  expect(
    buildConfig({ file, environment: {}, flags: new Map(), workingFolder: '/' }),
  ).toMatchObject({ ok: true, config: { node: 'a', cluster: 'trips' } })
  for (const { name } of nodeSettings) {
    const inFile = name.split('.').at(-1) ?? name
    if (name === 'insecure') expect(page('operating.md')).toContain('--insecure')
    else expect(yaml, `operating.md shows ${name}`).toMatch(new RegExp(`\\b${inFile}:`))
  }
})

test('the configuration of a gateway that is shown is a good one, and names every setting', () => {
  const yaml = /```yaml\n([^]*?)```/.exec(page('gateway.md'))?.[1] ?? ''
  const parsed = parseYaml(yaml.replace(/^# (?!secret_file|tls)/gm, ''), 'gateway.md')
  expect(parsed).toMatchObject({ ok: true })
  if (!parsed.ok) return
  const file = { path: 'gateway.md', root: parsed.root }
  const built = buildGatewayConfig({ file, environment: {}, flags: new Map(), workingFolder: '/' })
  expect(built).toMatchObject({ ok: true, config: { name: 'gateway', cluster: 'trips' } })
  const plain = buildGatewayConfig({
    ...{ environment: { TRILITHON_NODES: 'http://127.0.0.1:4700' }, flags: new Map() },
    workingFolder: '/',
  })
  // The value shown after a # holds without it.
  const { cluster: _, nodes: __, ...shown } = built.ok ? built.config : { cluster: '', nodes: [] }
  expect(plain).toMatchObject({ ok: true, config: shown })
  for (const { name } of gatewaySettings) {
    const inFile = name.split('.').at(-1) ?? name
    if (name === 'insecure') expect(page('gateway.md')).toContain('--insecure')
    else expect(yaml, `gateway.md shows ${name}`).toMatch(new RegExp(`\\b${inFile}:`))
  }
})

test('checking.md shows the limits of scrubs and comparisons, each a setting, with their defaults', () => {
  const rows = [...page('checking.md').matchAll(/^\| `(limits\.[a-z_]+)` \| (\d+) \|/gm)]
  const told = rows.map(([, name, fallback]) => ({ name, fallback }))
  const meant = limitSettings
    .filter(({ limit }) => /^(?:scrub|compare)/.test(limit))
    .map(({ name, fallback }) => ({ name, fallback }))
  const byName = (one: { name?: string | undefined }): string => one.name ?? ''
  const inOrder = <One extends { name?: string | undefined }>(list: One[]): One[] =>
    list.sort((x, y) => byName(x).localeCompare(byName(y)))
  expect(inOrder(told)).toEqual(inOrder(meant))
  expect(meant).toHaveLength(4)
})
