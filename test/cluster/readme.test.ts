/** The lines of curl in README do what is said of them; its programs: `../examples/documents.test.ts`. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { startCluster } from './harness.ts'

const root = resolve(import.meta.dirname, '../..')
const timeoutMs = 60_000

test("README's lines of curl do what is said of them", { timeout: timeoutMs }, async () => {
  const cluster = await startCluster()
  try {
    const page = readFileSync(join(root, 'README.md'), 'utf8')
    const [, lines = ''] = /While it runs:\n\n```sh\n([^]*?)```/.exec(page) ?? []
    const places = cluster.urls.map((url) => url.replace('http://', ''))
    const script = lines
      .replaceAll(/127\.0\.0\.1:470([012])/g, (_, nth: string) => places[Number(nth)] ?? '')
      .replaceAll(/^curl /gm, 'echo; curl -fsS ')
    expect(script.match(/curl/g)).toHaveLength(4)
    const { status, stdout, stderr } = spawnSync('sh', ['-e'], { input: script, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const answers: unknown[] = stdout
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line): unknown => JSON.parse(line))
    const trip = { city: 'Berlin', kilometres: 4.2 }
    expect(answers).toMatchObject([
      { created: true },
      { refKey: 0, body: trip },
      { refKey: 0, body: trip },
      { node: 'a' },
    ])
  } finally {
    await cluster.close()
  }
})
