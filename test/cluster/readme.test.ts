/** The programs of README and of the pages do what is said of them: compiled and run as a user's, against three real nodes. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { startCluster, withFolder } from './harness.ts'

const root = resolve(import.meta.dirname, '../..')
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')
const timeoutMs = 60_000

/** The program under a heading, asking these nodes. */
function program(file: string, heading: string, urls: readonly string[]): string {
  const page = readFileSync(join(root, file), 'utf8')
  const under = page.slice(page.indexOf(`## ${heading}\n`))
  const text = /```ts\n([^]*?)```/.exec(under)?.[1] ?? ''
  return text.replace(/nodes: \[.*?\]/, `nodes: ${JSON.stringify(urls)}`)
}

/** A package of a user's, which depends on this one. */
function writePackage(folder: string, text: string): void {
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'trilithon'))
  symlinkSync(join(root, 'node_modules', '@types'), join(folder, 'node_modules', '@types'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'program.ts'), text)
  const compilerOptions = {
    ...{ strict: true, noEmit: true, target: 'es2022', module: 'nodenext', types: ['node'] },
    skipLibCheck: false,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
}

function run(folder: string, arguments_: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, arguments_, {
    ...{ cwd: folder, encoding: 'utf8', timeout: timeoutMs },
  })
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' })
  return stdout
}

test.each([
  ['README.md', 'A first program', '', "1 { city: 'Berlin', kilometres: 4.3 }\n"],
  [
    'README.md',
    'Tables',
    'console.log(value[0]?.tag, value.length)\nawait client.close()\n',
    "[ 'sea', 'sky' ] 1\n",
  ],
  [
    'src/docs/queues.md',
    'A program',
    `const bob = rootKey(Account, { account: 'bob' })
const look = () => db.read(bob, 'current', (rows) => rows.get(Account, { account: 'bob' }))
while ((await look()).value === undefined) await new Promise((resolve) => setTimeout(resolve, 50))
console.log((await look()).value?.cents)
await handling.stop()
console.log(handling.counts)
await client.close()
`,
    '30\n{ handled: 1, failures: 0, dead: 0 }\n',
  ],
])(
  '%s, %s: the program compiles, and runs to its end',
  { timeout: 3 * timeoutMs },
  async (file, heading, ending, said) => {
    const cluster = await startCluster()
    try {
      await withFolder(async (folder) => {
        writePackage(folder, `${program(file, heading, cluster.urls)}\n${ending}`)
        run(folder, [tsc, '-p', folder])
        expect(run(folder, [tsx, join(folder, 'program.ts')])).toBe(said)
      })
    } finally {
      await cluster.close()
    }
  },
)

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
