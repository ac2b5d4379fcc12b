/** Reads a configuration with its files: the YAML itself, the secret, certificate and key. */
import { readFile } from 'node:fs/promises'
import type { ConfigSources, EffectiveSetting } from './config-gather.ts'
import { parseYaml, describeOrigin, type ConfigProblem, type Origin } from './config-source.ts'
import { fileFailure } from './file-failure.ts'

export interface LoadOptions {
  readonly file: string | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly flags: ReadonlyMap<string, string>
  readonly workingFolder: string
}

/** What the files named by a configuration hold. */
export interface ConfigFiles {
  readonly secret: string | undefined
  /** What nodes prove to one another with. */
  readonly peerSecret?: string | undefined
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined
}

/** A configuration that names files. */
export interface FileNames {
  readonly secretFile: string | undefined
  readonly peerSecretFile?: string | undefined
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
}

export type BuildResult<Config> =
  | {
      readonly ok: true
      readonly config: Config
      readonly settings: readonly EffectiveSetting[]
      readonly origins: ReadonlyMap<string, Origin>
    }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

export type LoadResult<Config> =
  | (BuildResult<Config> & { readonly ok: true; readonly files: ConfigFiles })
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] }

/** A shorter secret can be guessed from a recorded handshake. */
const secretCharsMin = 16

/** Reads the file, has `build` make a configuration of all sources, and reads what that names. */
export async function loadConfig<Config extends FileNames>(
  options: LoadOptions,
  build: (sources: ConfigSources) => BuildResult<Config>,
): Promise<LoadResult<Config>> {
  const { file, ...rest } = options
  if (file === undefined) return withFiles(build(rest))
  const text = await readNamed(file)
  if (!text.ok) {
    return { ok: false, problems: [{ where: file, text: `cannot be read: ${text.reason}` }] }
  }
  const parsed = parseYaml(text.bytes.toString('utf8'), file)
  if (!parsed.ok) return parsed
  return withFiles(build({ ...rest, file: { path: file, root: parsed.root } }))
}

async function withFiles<Config extends FileNames>(
  result: BuildResult<Config>,
): Promise<LoadResult<Config>> {
  if (!result.ok) return result
  const { config, origins } = result
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
  ): Promise<string | undefined> => {
    const secret = (await read(name, path))?.toString('utf8').trim()
    if (secret === undefined || secret.length >= secretCharsMin) return secret
    const text =
      `the secret in ${path} has ${secret.length} characters; ` +
      `at least ${secretCharsMin} are wanted (openssl rand -hex 32 makes a good one)`
    problems.push(problemAt(origins, name, text))
    return undefined
  }
  const secret = await readSecret('secret_file', config.secretFile)
  const peerSecret = await readSecret('peer_secret_file', config.peerSecretFile)
  if (secret !== undefined && secret === peerSecret) {
    const text =
      'it holds the same secret as secret_file: every client could pass for a node; make another one'
    problems.push(problemAt(origins, 'peer_secret_file', text))
  }
  const cert = await read('tls.cert_file', config.tls?.certFile)
  const key = await read('tls.key_file', config.tls?.keyFile)
  if (problems.length > 0) return { ok: false, problems }
  const tls = cert !== undefined && key !== undefined ? { cert, key } : undefined
  return { ...result, files: { secret, peerSecret, tls } }
}

function problemAt(
  origins: ReadonlyMap<string, Origin>,
  name: string,
  text: string,
): ConfigProblem {
  return { where: describeOrigin(origins.get(name) ?? { kind: 'default' }), text }
}

type FileRead =
  { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly reason: string }

async function readNamed(path: string): Promise<FileRead> {
  try {
    return { ok: true, bytes: await readFile(path) }
  } catch (error) {
    return { ok: false, reason: fileFailure(error) }
  }
}
