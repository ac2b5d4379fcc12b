/** The secret of a user's nodes: the first node makes it once, for that user's eyes only. */
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { mainSet, type NodeAddress } from '../../src/config/values.ts'
import { peerSecretWithoutFile, stateFolder, userSecret } from '../../src/node/peer-secret.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-state-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('nodes that start at once have one secret, which stays, and no other user may read', async () => {
  const state = join(folder, 'deep', 'trilithon')
  const found = await Promise.all(Array.from({ length: 8 }, () => userSecret(state)))
  const secrets = new Set(found.map((one) => (one.ok ? one.secret : one.reason)))
  expect(secrets.size).toBe(1)
  expect([...secrets][0]).toMatch(/^[0-9a-f]{64}$/)
  expect(await userSecret(state)).toEqual(found[0])
  expect(await readdir(state)).toEqual(['peer-secret'])
  expect((await stat(join(state, 'peer-secret'))).mode & 0o077).toBe(0)
  expect((await stat(state)).mode & 0o077).toBe(0)
})

test('a secret that is readable by others, malformed or impossible to make is refused in words', async () => {
  const path = join(folder, 'peer-secret')
  const made = await userSecret(folder)
  expect(made.ok).toBe(true)
  await chmod(path, 0o644)
  expect(await userSecret(folder)).toMatchObject({
    ...{ ok: false, reason: expect.stringContaining('others may read it; chmod 600 it') },
  })
  await writeFile(path, 'x')
  await chmod(path, 0o600)
  expect(await userSecret(folder)).toMatchObject({
    ...{ ok: false, reason: expect.stringContaining('holds no secret') },
  })
  expect(await userSecret(join(path, 'below'))).toMatchObject({ ok: false })
})

test('a lone node draws a secret; a cluster without a secret file warns that clients pass for nodes', async () => {
  const address = (id: string): NodeAddress => {
    return { id: nodeId(id), url: `http://10.0.0.1:${id.charCodeAt(0)}`, set: mainSet }
  }
  const said: string[] = []
  const listen = { host: '10.0.0.1', port: 1 }
  const of = (ids: readonly string[], secret?: string): Promise<string> => {
    const config = { listen, nodes: ids.map(address) }
    return peerSecretWithoutFile(config, { secret }, (text) => said.push(text))
  }
  expect(await of(['a'], 'clients know it')).toMatch(/^[0-9a-f]{64}$/)
  expect(await of(['a'])).not.toBe(await of(['a']))
  expect(said).toEqual([])
  expect([await of(['a', 'b'], 'clients know it'), await of(['a', 'b'])]).toEqual([
    'clients know it',
    '',
  ])
  expect(said).toEqual([
    'no peer_secret_file: every client can pass for a node of this cluster',
    'no peer_secret_file: every process that reaches this address can pass for a node of this cluster',
  ])
})

test('it is kept where the user keeps such things', () => {
  expect(stateFolder({ XDG_STATE_HOME: '/var/of/me' })).toBe('/var/of/me/trilithon')
  expect(stateFolder({ XDG_STATE_HOME: '' })).toMatch(/\.local\/state\/trilithon$/)
})
