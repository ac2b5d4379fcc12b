/**
 * The package as a stranger installs it: from the file that `npm pack` makes, from a folder with its
 * sources, from a repository of git; each in an empty folder, with npm's own commands. It needs the npm
 * registry. Installs from git and for all users of a machine, which build or link in the same way, are tried at night
 * alone. Programs are compiled under each resolution that TypeScript has for packages with `exports`.
 */
import { spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startCluster } from '../cluster/harness.ts'
import { blocksOf } from '../examples/blocks.ts'
import { isNightly } from '../nightly-tests.ts'

const root = resolve(import.meta.dirname, '../..')
const tsc = join(root, 'node_modules/typescript/bin/tsc')
const tsx = join(root, 'node_modules/tsx/dist/cli.mjs')
const installMs = 240_000

let base = ''
let sources = ''
let tarball = ''

/** npm tells its scripts about itself by these: here it is run as from a shell. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|VITEST)/i.test(name)),
)

function run(folder: string, command: string, ...rest: readonly string[]): string {
  const ran = spawnSync(command, rest, {
    ...{ cwd: folder, env: environment, encoding: 'utf8', timeout: installMs },
  })
  const said = `${command} ${rest.join(' ')}\n${ran.stdout}\n${ran.stderr}`
  if (ran.status !== 0) throw new Error(said)
  return ran.stdout
}

/** An empty package of a user's. */
async function emptyFolder(name: string): Promise<string> {
  const folder = join(base, name)
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  return folder
}

const install = ['install', '--prefer-offline', '--no-audit', '--no-fund'] as const

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'trilithon-install-'))
  sources = join(base, 'sources')
  await mkdir(sources)
  // The files of a clone: neither dist/ nor node_modules/.
  const listed = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root })
  const packed = spawnSync('tar', ['cf', '-', '-T', '-'], {
    ...{ cwd: root, input: listed.stdout, maxBuffer: 512 * 1024 * 1024 },
  })
  spawnSync('tar', ['xf', '-', '-C', sources], { input: packed.stdout })
  run(root, 'npm', 'pack', '--ignore-scripts', '--pack-destination', base)
  const [file = ''] = (await readdir(base)).filter((name) => name.endsWith('.tgz'))
  tarball = join(base, file)
}, installMs)

afterAll(async () => {
  await rm(base, { recursive: true, force: true })
})

function versionIn(folder: string): string {
  return run(folder, join(folder, 'node_modules/.bin/trilithon'), '--version').trim()
}

async function ownVersion(): Promise<string> {
  const manifest: { readonly version: string } = JSON.parse(
    await readFile(join(root, 'package.json'), 'utf8'),
  )
  return manifest.version
}

test(
  'from a file: types fit under each resolution, programs run to their end, CommonJS too',
  async () => {
    const folder = await emptyFolder('from-file')
    run(folder, 'npm', ...install, tarball)
    expect(versionIn(folder)).toBe(await ownVersion())
    const cluster = await startCluster()
    try {
      const endpoints = `endpoints: ${JSON.stringify(cluster.urls)}`
      const programs = blocksOf(root, 'README.md').filter(({ language }) => language === 'ts')
      expect(programs).toHaveLength(2)
      for (const [nth, { text }] of programs.entries()) {
        await writeFile(join(folder, `p${nth}.ts`), text.replace(/endpoints: \[.*?\]/, endpoints))
      }
      await writeFile(
        join(folder, 'common.cts'),
        "import { connect } from 'trilithon'\nexport const client: Promise<unknown> = connect({ endpoints: ['http://a:1'] })\n",
      )
      // Without the types of Node.js: the package's own name nothing of them.
      const strict = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2023,dom']
      const flags = [...strict, '--types', '', '--skipLibCheck', 'false']
      for (const [module, files] of [
        ['nodenext', ['p0.ts', 'p1.ts', 'common.cts']],
        ['esnext', ['p0.ts', 'p1.ts']],
        ['preserve', ['p0.ts', 'p1.ts']],
      ] as const) {
        const resolution = module === 'nodenext' ? module : 'bundler'
        const how = ['--module', module, '--moduleResolution', resolution]
        run(folder, process.execPath, tsc, ...flags, ...how, ...files)
      }
      const said = programs.map((_, nth) => run(folder, process.execPath, tsx, `p${nth}.ts`))
      expect(said).toEqual(["1 { city: 'Berlin', kilometres: 4.3 }\n", "a.jpg [ 'sea', 'sky' ]\n"])
      const script = "process.stdout.write(typeof require('trilithon').connect)"
      await writeFile(join(folder, 'common.cjs'), script)
      expect(run(folder, process.execPath, 'common.cjs')).toBe('function')
      const paths = [
        'trilithon/schema',
        'trilithon/protobuf',
        'trilithon/triggers',
        'trilithon/sim',
      ]
      const imports = paths.map((path) => `await import('${path}')`).join('\n')
      await writeFile(join(folder, 'paths.mjs'), imports)
      run(folder, process.execPath, 'paths.mjs')
    } finally {
      await cluster.close()
    }
  },
  installMs,
)

test.runIf(isNightly)(
  'for all users of a machine: the command is where npm puts commands',
  async () => {
    const prefix = join(base, 'prefix')
    await mkdir(prefix)
    run(base, 'npm', ...install, '--global', '--prefix', prefix, tarball)
    const command = join(prefix, process.platform === 'win32' ? '' : 'bin', 'trilithon')
    expect(run(base, command, '--version').trim()).toBe(await ownVersion())
  },
  installMs,
)

test('an install that leaves out devDependencies does without a build, and says so', () => {
  const ran = spawnSync(process.execPath, ['.ci/prepare.mjs', '--package'], {
    ...{ cwd: sources, env: { ...environment, npm_config_omit: 'dev' }, encoding: 'utf8' },
  })
  const stderr: unknown = expect.stringContaining('npm run build')
  expect(ran).toMatchObject({ status: 0, stdout: '', stderr })
  expect(existsSync(join(sources, 'dist'))).toBe(false)
  expect(existsSync(join(sources, 'node_modules'))).toBe(false)
})

test.runIf(isNightly)(
  'from a repository of git: npm builds it',
  async () => {
    const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.com']
    run(sources, 'git', 'init', '--quiet')
    run(sources, 'git', 'add', '--all')
    run(sources, 'git', ...author, 'commit', '--quiet', '--message', 'A state')
    const folder = await emptyFolder('from-git')
    run(folder, 'npm', ...install, `git+file://${sources}`)
    expect(versionIn(folder)).toBe(await ownVersion())
    const installed = join(folder, 'node_modules/trilithon')
    expect(existsSync(join(installed, 'src/docs/tables.md'))).toBe(true)
    expect(existsSync(join(installed, 'test'))).toBe(false)
  },
  installMs,
)

test(
  'from a folder with sources: it is built there, and linked',
  async () => {
    expect(existsSync(join(sources, 'dist'))).toBe(false)
    const folder = await emptyFolder('from-folder')
    run(folder, 'npm', ...install, sources)
    expect(versionIn(folder)).toBe(await ownVersion())
  },
  installMs,
)

test('npm’s prepare step leaves an unpacked package as it is', async () => {
  const folder = join(base, 'unpacked')
  await mkdir(folder)
  run(folder, 'tar', 'xzf', tarball)
  const before = await readdir(join(folder, 'package'), { recursive: true })
  run(join(folder, 'package'), process.execPath, '.ci/prepare.mjs', '--package')
  expect(await readdir(join(folder, 'package'), { recursive: true })).toEqual(before)
})
