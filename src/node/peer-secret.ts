/**
 * The secret by which nodes prove themselves to one another, where the configuration names no
 * `peer_secret_file`. On loopback it is a secret of the user who runs them, in a file that only this user may
 * read: a web page, another user's process, and a client that has only the clients' secret are no nodes.
 */
import { randomBytes } from 'node:crypto'
import { chmod, link, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from '../adapters/make-folder.ts'
import { isLoopback } from '../config/check.ts'
import type { ConfigFiles } from '../config/load.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import type { NodeConfig } from '../config/node-config.ts'

/** Of a node whose configuration names no file; calls `warn` where the secret keeps no stranger out. */
export async function peerSecretWithoutFile(
  { nodes, listen }: Pick<NodeConfig, 'nodes' | 'listen'>,
  { secret }: Pick<ConfigFiles, 'secret'>,
  warn: (text: string) => void,
): Promise<string> {
  // The node has no peers, and no stranger must pass for one.
  if (nodes.length === 1) return randomBytes(32).toString('hex')
  if (isLoopback(listen.host)) {
    const found = await userSecret(stateFolder(process.env))
    if (found.ok) return found.secret
    warn(`the peers' secret of this user, ${found.reason}; set peer_secret_file`)
  }
  const whoever = secret === undefined ? 'every process that reaches this address' : 'every client'
  warn(`no peer_secret_file: ${whoever} can pass for a node of this cluster`)
  return secret ?? ''
}

export type UserSecret =
  | { readonly ok: true; readonly secret: string; readonly path: string }
  | { readonly ok: false; readonly reason: string }

const fileName = 'peer-secret'
const secretPattern = /^[0-9a-f]{64}$/

/** Where programs of a user keep what is to stay: `$XDG_STATE_HOME`, or `~/.local/state`. */
export function stateFolder(environment: Readonly<Record<string, string | undefined>>): string {
  const named = environment['XDG_STATE_HOME']
  const isNamed = named !== undefined && named !== ''
  return join(isNamed ? named : join(homedir(), '.local', 'state'), 'trilithon')
}

/** The secret in this folder, made when there is none yet; several nodes may start at once. */
export async function userSecret(folder: string): Promise<UserSecret> {
  const path = join(folder, fileName)
  try {
    const found = (await readSecret(path)) ?? (await makeSecret(folder, path))
    if (secretPattern.test(found)) return { ok: true, secret: found, path }
    return { ok: false, reason: `${path} holds no secret: remove it while no node runs` }
  } catch (error) {
    const reason = error instanceof LooseFile ? error.message : fileFailure(error)
    return { ok: false, reason: `${path} cannot be used: ${reason}` }
  }
}

class LooseFile extends Error {}

async function readSecret(path: string): Promise<string | undefined> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (found === undefined) return undefined
  if (process.platform !== 'win32' && (found.mode & 0o077) !== 0) {
    throw new LooseFile('others may read it; chmod 600 it, or remove it while no node runs')
  }
  return (await readFile(path, 'utf8')).trim()
}

/** The process that links the file first has made the secret; the others read that file. */
async function makeSecret(folder: string, path: string): Promise<string> {
  await makeFolder(folder, 0o700)
  await chmod(folder, 0o700)
  const draft = join(folder, `${fileName}.${process.pid}.${randomBytes(6).toString('hex')}`)
  try {
    await writeFile(draft, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
    await link(draft, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    await rm(draft, { force: true })
  }
  return (await readSecret(path)) ?? ''
}
