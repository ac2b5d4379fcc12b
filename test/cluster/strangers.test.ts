/**
 * A cluster of real processes with the defaults of loopback, and those who have no business there: a
 * web page, a program that says it is a node, hundreds of connections that say nothing.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { connect as connectSocket, type Socket } from 'node:net'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import {
  decodeHandshake,
  encodeHandshake,
  nonceBytes,
  computeProof,
  protocolMax,
  protocolMin,
  type Hello,
} from '../../src/wire/handshake.ts'
import {
  createCluster,
  eventually,
  runProgram,
  startCluster,
  withFolder,
  type TestCluster,
  type TestNode,
} from './harness.ts'

async function figures(node: TestNode): Promise<string> {
  return (await fetch(`${node.url}/metrics`)).text()
}

/** Puts cells until it is stopped; resolves with the number of acknowledged ones, and failures. */
function putting(
  cluster: TestCluster,
  secret?: string,
): () => Promise<{ puts: number; failed: string[] }> {
  const told = { isOver: false }
  const failed: string[] = []
  const run = async (): Promise<number> => {
    const nodes = cluster.urls
    const client = await connect({ endpoints: nodes, ...(secret !== undefined && { secret }) })
    let puts = 0
    while (!told.isOver) {
      const cell = { rowKey: randomUUID(), column: 'A', refKey: 0 }
      const body = randomBytes(15_000).toString('base64')
      await client
        .cells('strangers')
        .put({ ...cell, body })
        .then(
          () => (puts += 1),
          (error: unknown) => failed.push(String(error)),
        )
    }
    await client.close()
    return puts
  }
  const running = run()
  return async () => {
    told.isOver = true
    return { puts: await running, failed }
  }
}

/** Says to a node that it is node `a`, with this secret; the words of its answers. */
async function sayItIsA(node: TestNode, secret: string): Promise<readonly string[]> {
  const names = { cluster: 'test', node: 'a', nonce: randomBytes(nonceBytes) }
  const own: Hello = { side: 'dialer', role: 'peer', protocolMin, protocolMax, ...names }
  const heard: string[] = []
  const socket = new WebSocket(`${node.url.replace('http', 'ws')}/v1/peer`)
  socket.on('open', () => socket.send(encodeHandshake({ kind: 'hello', hello: own })))
  socket.on('message', (data: Buffer) => {
    const message = decodeHandshake(data)
    heard.push(message?.kind === 'refuse' ? message.reason : (message?.kind ?? 'a frame'))
    if (message?.kind !== 'hello') return
    const mac = computeProof(secret, own, message.hello)
    socket.send(encodeHandshake({ kind: 'proof', mac }))
  })
  await new Promise((resolve) => socket.on('close', resolve))
  return heard
}

test('a foreign page and a holder of the clients’ secret stay out, and no node is expelled', async () => {
  await withFolder(async (folder) => {
    const secretFile = join(folder, 'secret')
    const secret = 'a secret of all clients'
    await writeFile(secretFile, secret)
    const cluster = await startCluster({ extraYaml: `secret_file: ${secretFile}` })
    try {
      const stop = putting(cluster, secret)
      const [b, c] = [cluster.node('b'), cluster.node('c')]
      for (const node of [b, c]) {
        for (const known of [secret, '']) {
          const heard = await sayItIsA(node, known)
          expect(heard).toEqual(['hello', expect.stringContaining("peers' secrets")])
        }
      }
      const page = new WebSocket(`${b.url.replace('http', 'ws')}/v1/client`, {
        origin: 'https://evil.example',
      })
      const answer = await new Promise((resolve) => {
        page.on('open', () => resolve('open'))
        page.on('error', (error) => resolve(error.message))
      })
      expect(answer).toBe('Unexpected server response: 403')
      const path = `${b.url}/v1/datastores/strangers/cells/${randomUUID()}/A/0`
      const headers = { origin: 'https://evil.example', authorization: `Bearer ${secret}` }
      const put = await fetch(path, { method: 'PUT', body: '1', headers })
      expect([put.status, await put.json()]).toMatchObject([403, { code: 'forbidden' }])
      expect(await figures(b)).toMatch(/^trilithon_turned_away_total\{reason="origin",.*\} 2$/m)
      const { puts, failed } = await stop()
      expect(failed).toEqual([])
      expect(puts).toBeGreaterThan(0)
      for (const node of cluster.nodes) {
        expect((await fetch(`${node.url}/readyz`)).status).toBe(200)
      }
    } finally {
      await cluster.close()
    }
  })
})

test('hundreds of idle connections to a node that may open few files end nothing, and peers get in', async () => {
  const cluster = await createCluster()
  const idle: Socket[] = []
  try {
    for (const node of cluster.nodes) node.spawn(node.id === 'a' ? { openFiles: 400 } : {})
    await Promise.all(cluster.nodes.map((node) => node.ready()))
    const a = cluster.node('a')
    const port = Number(new URL(a.url).port)
    const stop = putting(cluster)
    for (let i = 0; i < 600; i++) {
      const socket = connectSocket(port, '127.0.0.1')
      idle.push(socket.on('error', () => undefined).resume())
      if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await eventually('most are ended', async () => {
      return idle.filter(({ destroyed }) => destroyed).length >= 550 ? true : undefined
    })
    // A peer that comes back meets a house full of strangers.
    await cluster.node('b').stop('SIGKILL')
    await cluster.node('b').start()
    await eventually('node a sees all others', async () => {
      const report = await (await fetch(`${a.url}/readyz?verbose`)).text()
      return report.includes('3 of 3 nodes are reachable') ? true : undefined
    })
    const { puts } = await stop()
    expect(puts).toBeGreaterThan(0)
    expect(a.pid).toBeDefined()
    expect(await figures(a)).toMatch(/^trilithon_turned_away_total\{reason="displaced",.*\} [1-9]/m)
  } finally {
    for (const socket of idle) socket.destroy()
    await cluster.close()
  }
})

test('a node that may open too few files is refused at its start, with what to do', async () => {
  const cluster = await createCluster()
  try {
    const { configPath } = cluster.node('a')
    const result = await runProgram(['node', '--config', configPath], { openFiles: 210 })
    expect(result.code).toBe(1)
    expect(result.stderr).toMatch(
      /error: this process may have 210 files open, and wants 252 at least: raise the limit/,
    )
  } finally {
    await cluster.close()
  }
})
