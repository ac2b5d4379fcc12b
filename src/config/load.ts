/** Reads a configuration with its files: the YAML itself, secrets, certificate and key, each looked at as well as read. */
import { dirname } from 'node:path'
import { stat, statfs } from 'node:fs/promises'
import { secretProblem, shortSecretProblem } from '../base/secret-text.ts'
import { textOfUtf8 } from '../base/utf8.ts'
import { readBounded } from '../adapters/bounded-file.ts'
import { systemClock } from '../adapters/system-clock.ts'
import type { ConfigSources, EffectiveSetting } from './gather.ts'
import {
  parseYaml,
  describeOrigin,
  type ConfigProblem,
  type Origin,
  type Warning,
} from './source.ts'
import { authoritiesFault, tlsProblem, tlsWarnings } from './tls.ts'
import { fileFailure } from '../adapters/file-failure.ts'

export interface LoadOptions {
  readonly file: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly flags: ReadonlyMap<string, string>
  readonly workingFolder: string
}

/** The contents of the files that a configuration names. */
export interface ConfigFiles {
  readonly secret: string | undefined
  /** The secret with which nodes prove themselves to one another. */
  readonly peerSecret?: string | undefined
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined
}

/** A configuration that names files. */
export interface FileNames {
  readonly secretFile: string | undefined
  readonly peerSecretFile?: string | undefined
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  /** A folder, which need not be there yet. */
  readonly data?: string
}

export type BuildResult<Config> =
  | {
      readonly ok: true
      readonly config: Config
      readonly settings: readonly EffectiveSetting[]
      readonly origins: ReadonlyMap<string, Origin>
      /** Values that are permitted and hardly ever meant. */
      readonly warnings: readonly Warning[]
      /** Names by which others call the process over TLS: its certificate is to be for one of these. */
      readonly names: readonly string[]
      /** The URLs that the process calls. */
      readonly called: readonly string[]
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

export type PlacedWarning = Warning & ConfigProblem

export type LoadResult<Config> =
  | (BuildResult<Config> & {
      readonly ok: true
      readonly files: ConfigFiles
      readonly warnings: readonly PlacedWarning[]
    })
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

/** Reads the file, has `build` make a configuration of all sources, and reads what that names. */
export async function loadConfig<Config extends FileNames>(
  options: LoadOptions,
  build: (sources: ConfigSources) => BuildResult<Config>,
): Promise<LoadResult<Config>> {
  const { file, ...rest } = options
  if (file === undefined) return withFiles(build(rest), rest)
  const text = await readNamed(file)
  if (!text.ok) {
    return { ok: false, problems: [{ where: file, text: `cannot be read: ${text.reason}` }] }
  }
  const decoded = textOfUtf8(text.bytes)
  if (!decoded.ok) {
    const { line, column } = decoded.at
    const problem = { where: `${file}:${line}:${column}`, text: 'this is not UTF-8' }
    return { ok: false, problems: [problem] }
  }
  const parsed = parseYaml(decoded.text, file)
  if (!parsed.ok) return parsed
  return withFiles(build({ ...rest, file: { path: file, root: parsed.root } }), rest)
}

async function withFiles<Config extends FileNames>(
  result: BuildResult<Config>,
  { environment }: Pick<LoadOptions, 'environment'>,
): Promise<LoadResult<Config>> {
  if (!result.ok) return result
  const { config, origins, names, called } = result
  const problems: ConfigProblem[] = []
  const read = async (name: string, path: string | undefined): Promise<Buffer | undefined> => {
    if (path === undefined) return undefined
    const outcome = await readNamed(path)
    if (outcome.ok) return outcome.bytes
    problems.push(problemAt(origins, name, `${name} ${path} cannot be read: ${outcome.reason}`))
    return undefined
  }
  const readSecret = async (
    name: string,
    path: string | undefined,
    findProblem: (secret: string) => string | undefined,
  ): Promise<string | undefined> => {
    const secret = (await read(name, path))?.toString('utf8').trim()
    if (secret === undefined) return undefined
    const problem = findProblem(secret)
    if (problem === undefined) return secret
    problems.push(problemAt(origins, name, `the secret in ${path} ${problem}`))
    return undefined
  }
  const secret = await readSecret('secret_file', config.secretFile, secretProblem)
  const { peerSecretFile } = config
  const peerSecret = await readSecret('peer_secret_file', peerSecretFile, shortSecretProblem)
  if (secret !== undefined && secret === peerSecret) {
    const text =
      'it holds the same secret as secret_file: every client could pass for a node; make another one'
    problems.push(problemAt(origins, 'peer_secret_file', text))
  }
  const cert = await read('tls.cert_file', config.tls?.certFile)
  const key = await read('tls.key_file', config.tls?.keyFile)
  const tls = cert !== undefined && key !== undefined ? { cert, key } : undefined
  const warnings = [...result.warnings]
  if (tls !== undefined && config.tls !== undefined) {
    const found = tlsProblem(tls, config.tls)
    if (found !== undefined) problems.push(problemAt(origins, found.setting, found.text))
    else warnings.push(...tlsWarnings(tls, config.tls, names, systemClock.wallMicros() / 1000))
  }
  const { data } = config
  const unfit = data === undefined ? undefined : await dataProblem(data)
  if (unfit !== undefined) problems.push(problemAt(origins, 'data', `data ${data} ${unfit}`))
  const untrusted = await authoritiesProblems(environment)
  const isTlsCalled = called.some((url) => url.startsWith('https:'))
  if (isTlsCalled) problems.push(...untrusted)
  if (problems.length > 0) return { ok: false, problems }
  const placed = warnings.map((warning): PlacedWarning => {
    return { ...problemAt(origins, warning.setting, warning.text), ...warning }
  })
  placed.push(...untrusted.map((one) => ({ ...one, setting: authoritiesVariable })))
  return { ...result, warnings: placed, files: { secret, peerSecret, tls } }
}

const authoritiesVariable = 'NODE_EXTRA_CA_CERTS'

/**
 * Checks the further authorities that Node.js is to trust. Node.js goes on without them when the file holds
 * none, and then a link over TLS may fail. A process that makes no calls over TLS needs none of them.
 */
async function authoritiesProblems(
  environment: LoadOptions['environment'],
): Promise<readonly ConfigProblem[]> {
  const path = environment[authoritiesVariable]
  if (path === undefined || path === '') return []
  const read = await readNamed(path)
  const text = read.ok
    ? authoritiesFault(path, read.bytes)
    : `${path} cannot be read: ${read.reason}`
  return text === undefined ? [] : [{ where: authoritiesVariable, text }]
}

function problemAt(
  origins: ReadonlyMap<string, Origin>,
  name: string,
  text: string,
): ConfigProblem {
  return { where: describeOrigin(origins.get(name) ?? { kind: 'default' }), text }
}

/** File systems that show the kernel, and keep nothing: sysfs and proc of Linux. */
const kernelSystems: readonly number[] = [0x62_65_65_72, 0x9f_a0]

/** The reason why no node can keep its data there; undefined where one may. */
async function dataProblem(path: string): Promise<string | undefined> {
  try {
    if (!(await stat(path)).isDirectory()) return 'is a file, not a folder'
    const { type } = await statfs(path)
    return kernelSystems.includes(type) ? 'lies where the system keeps no files' : undefined
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    const parent = dirname(path)
    // It is made at the start, in the nearest folder above it.
    if (code === 'ENOENT' && parent !== path) {
      const unfit = await dataProblem(parent)
      return unfit === 'is a file, not a folder' ? partIsFile : unfit
    }
    const isUnfit = code === 'ENOTDIR' || code === 'ENAMETOOLONG' || code === 'ELOOP'
    return isUnfit ? `cannot be made: ${fileFailure(error)}` : undefined
  }
}

const partIsFile = 'cannot be made: a part of its path is a file, not a folder (ENOTDIR)'

type FileRead =
  { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly reason: string }

/** More than any configuration, secret or list of certificates has; devices have no end. */
const fileBytesMax: number = 8 * 1024 * 1024

async function readNamed(path: string): Promise<FileRead> {
  try {
    const found = await stat(path)
    // Reading a pipe without a writer would wait without end. The pipes that a shell passes lie below these
    // folders.
    if (found.isFIFO() && !/^\/(?:dev|proc)\//.test(path)) {
      return { ok: false, reason: 'it is a pipe; name a file' }
    }
    const bytes = await readBounded(path, fileBytesMax)
    if (bytes !== undefined) return { ok: true, bytes }
    return { ok: false, reason: `it has more than ${fileBytesMax} bytes` }
  } catch (error) {
    return { ok: false, reason: fileFailure(error) }
  }
}
