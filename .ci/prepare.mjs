/**
 * Makes a clone ready to run: dependencies by `npm ci` when they are missing or not those of the
 * lock file and, with `--build`, dist/ by tsc when a source has changed since the last build.
 *
 * `--package` is for npm, which runs it before it packs or links this folder: the same as `--build`, but
 * what another package manager has installed stays, and without the compiler an install that leaves out
 * devDependencies goes on. tsc does not check the types then, which takes more than half of its time: the one who
 * installs changes nothing, and `--build` builds again. In a package, where there are no sources, there is nothing to do.
 *
 * Silent when there is nothing to do, else one line on stderr for each thing done. Starts at the
 * same time take turns; the second finds the work done. Plain Node, since nothing is installed yet.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const inRoot = (...parts) => join(root, ...parts)

const oldestNode = [20, 19]
const turnWaitMs = 15 * 60_000
const turnPollMs = 250

/** What decides about the build. All of `sources` are compiled into one tree; tests are run from their sources. */
const sources = ['src', 'sim', 'schema', 'bench']
const buildConfig = '.ci/build.json'
const settings = ['tsconfig.json', buildConfig, 'package.json']
/** Inside dist/, so that whoever removes dist/ removes it too. */
const buildStamp = '.built-from'

class PrepareError extends Error {}

function say(text) {
  process.stderr.write(`prepare: ${text}\n`)
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])) return
  throw new PrepareError(
    `Node.js ${oldestNode.join('.')} or newer is needed and this is ${process.versions.node}: install a newer one (https://nodejs.org) and start again.`,
  )
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    // Missing or half written: the caller treats both as absent.
    return undefined
  }
}

/**
 * npm writes node_modules/.package-lock.json when an installation is complete, so that file is the
 * stamp: every package of our lock file must be in it, in the same version.
 */
function isInstalled() {
  const wanted = readJson(inRoot('package-lock.json'))?.packages
  const installed = readJson(inRoot('node_modules', '.package-lock.json'))?.packages
  if (wanted === undefined) throw new PrepareError('package-lock.json is missing or damaged.')
  if (installed === undefined) return false
  return Object.entries(wanted).every(([path, { version, integrity, optional }]) => {
    const found = installed[path]
    // Optional packages are those of other platforms.
    if (path === '' || found === undefined) return path === '' || optional === true
    return found.version === version && (integrity === undefined || found.integrity === integrity)
  })
}

function install() {
  const packages = Object.keys(readJson(inRoot('package-lock.json')).packages).length - 1
  say(`installing dependencies (npm ci, at most ${packages} packages)`)
  const flags = ['ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund']
  const npm = process.env.npm_execpath ?? ''
  const [command, ...first] = npm.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm']
  // npm's own count of packages goes nowhere; its errors are shown.
  const run = spawnSync(command, [...first, ...flags, '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (run.error !== undefined) throw new PrepareError(`npm cannot be started: ${run.error.message}`)
  if (run.status === 0 && isInstalled()) return
  throw new PrepareError(
    'npm ci failed, see above: it needs the npm registry and room on the disk. Start again when both are there.',
  )
}

/** A fingerprint of everything that is compiled: names, sizes and times, which is enough to notice. */
function sourcesNow() {
  const hash = createHash('sha256')
  const compiler = readJson(inRoot('node_modules', 'typescript', 'package.json'))
  hash.update(`typescript ${compiler?.version}\n`)
  for (const name of [...sources, ...settings]) addToHash(hash, name)
  return hash.digest('hex')
}

function addToHash(hash, name) {
  const found = statSync(inRoot(name), { throwIfNoEntry: false })
  if (found?.isDirectory()) {
    for (const child of readdirSync(inRoot(name)).sort()) addToHash(hash, `${name}/${child}`)
  } else if (/\.(ts|json)$/.test(name)) {
    hash.update(`${name} ${found?.size} ${found?.mtimeMs}\n`)
  }
}

function isBuilt(withChecks) {
  const stamp = inRoot('dist', buildStamp)
  if (!existsSync(stamp)) return false
  const [from, isUnchecked] = readFileSync(stamp, 'utf8').split(' ')
  return from === sourcesNow() && (!withChecks || isUnchecked === undefined)
}

/** Compiles beside dist/ and then changes places: stale files go, and a failed build leaves the old one. */
function build(withChecks) {
  say('building dist/ (tsc)')
  const fresh = inRoot('.dist-fresh')
  const old = inRoot('.dist-old')
  const remove = (folder) => rmSync(folder, { recursive: true, force: true })
  remove(fresh)
  const from = sourcesNow()
  const tsc = inRoot('node_modules', 'typescript', 'bin', 'tsc')
  const flags = ['-p', inRoot(buildConfig), '--outDir', fresh]
  if (!withChecks) flags.push('--noCheck')
  const run = spawnSync(process.execPath, [tsc, ...flags], {
    cwd: root,
    // What tsc finds belongs on stderr with the rest: stdout is the started program's.
    stdio: ['ignore', 2, 2],
  })
  if (run.status !== 0) {
    remove(fresh)
    throw new PrepareError('tsc failed, see above; dist/ is as it was.')
  }
  // A linked command (`npm link`, `npm install -g .`) is this very file.
  for (const path of Object.values(readJson(inRoot('package.json')).bin)) {
    chmodSync(join(fresh, relative('dist', path)), 0o755)
  }
  writeFileSync(join(fresh, buildStamp), withChecks ? from : `${from} unchecked`)
  remove(old)
  if (existsSync(inRoot('dist'))) renameSync(inRoot('dist'), old)
  renameSync(fresh, inRoot('dist'))
  remove(old)
}

/** A name that only one process can listen on, per clone. The system frees it when that one ends. */
function turnName() {
  const hash = createHash('sha256').update(root).digest('hex').slice(0, 16)
  const name = `trilithon-prepare-${hash}`
  if (process.platform === 'linux') return `\0${name}`
  return process.platform === 'win32' ? `\\\\.\\pipe\\${name}` : join(tmpdir(), `${name}.sock`)
}

function listen(name) {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(name, () => resolve(server))
  })
}

async function takeTurn() {
  const giveUpAt = Date.now() + turnWaitMs
  for (let waits = 0; Date.now() < giveUpAt; waits++) {
    const turn = await listen(turnName())
    if (turn !== undefined) return turn
    if (waits === 0) say('waiting for another start that is preparing this folder')
    await delay(turnPollMs)
  }
  throw new PrepareError(
    'another start has been preparing this folder for 15 minutes: end it first.',
  )
}

/** Whether npm was told to leave out what a build needs. */
function isWithoutDevelopment() {
  const omitted = (process.env.npm_config_omit ?? '').split(/\s+/)
  return omitted.includes('dev')
}

async function prepare({ withBuild, forPackage }) {
  checkNode()
  if (!existsSync(inRoot('src', 'index.ts'))) return
  const hasCompiler = () => existsSync(inRoot('node_modules', 'typescript', 'bin', 'tsc'))
  const hasAll = () => (forPackage ? hasCompiler() : isInstalled())
  const withChecks = !forPackage
  const isReady = () => hasAll() && (!withBuild || isBuilt(withChecks))
  if (isReady()) return
  if (forPackage && !hasAll() && isWithoutDevelopment()) {
    return say('dist/ is as it is: it is built with devDependencies (npm run build)')
  }
  const turn = await takeTurn()
  try {
    if (!hasAll()) install()
    if (withBuild && !isBuilt(withChecks)) build(withChecks)
  } finally {
    turn.close()
  }
}

try {
  const forPackage = process.argv.includes('--package')
  await prepare({ withBuild: forPackage || process.argv.includes('--build'), forPackage })
} catch (error) {
  say(error instanceof PrepareError ? error.message : String(error?.stack ?? error))
  process.exitCode = 1
}
