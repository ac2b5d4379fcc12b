/**
 * Requests and files that a node must refuse, or survive: each with one clear sentence, nothing lost, no
 * hang.
 */
import { randomUUID } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { connect as connectSocket } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { expect, test } from 'vitest'
import {
  createCluster,
  eventually,
  runProgram,
  startProgram,
  startCluster,
  withFolder,
  type TestCluster,
} from './harness.ts'

const oneNode =
  'cluster: test\nnode: a\nlisten: 127.0.0.1:0\nnodes: [{ id: a, url: "http://127.0.0.1:4700" }]\n'

/** Uses a cluster of one node: enough for what concerns one. */
async function withNode(use: (cluster: TestCluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster({ ids: ['a'] })
  try {
    await use(cluster)
  } finally {
    await cluster.close()
  }
}

async function putCells(cluster: TestCluster, count: number): Promise<readonly string[]> {
  const rowKeys = Array.from({ length: count }, () => randomUUID())
  for (const rowKey of rowKeys) {
    const response = await fetch(`${cluster.node('a').url}${cellPath(rowKey)}/0`, {
      method: 'PUT',
      body: JSON.stringify({ rowKey }),
      headers: { 'content-type': 'application/json' },
    })
    expect(response.status, await response.text()).toBe(201)
  }
  return rowKeys
}

async function expectCells(cluster: TestCluster, rowKeys: readonly string[]): Promise<void> {
  for (const rowKey of rowKeys) {
    const response = await fetch(`${cluster.node('a').url}${cellPath(rowKey)}`)
    expect(await response.json()).toMatchObject({ rowKey, body: { rowKey } })
  }
}

function cellPath(rowKey: string): string {
  return `/v1/datastores/trips/cells/${rowKey}/BASE`
}

/** The last line on stderr, of a node that ended with 1 and no stack trace. */
async function refusal(
  configPath: string,
  flags: readonly string[] = [],
  code = 1,
): Promise<string> {
  const result = await runProgram(['node', '--config', configPath, ...flags])
  expect(result, result.stderr).toMatchObject({ code, stdout: '' })
  expect(result.stderr).not.toMatch(/^ +at /m)
  return result.stderr.trim().split('\n').at(-1) ?? ''
}

test('a busy port is refused in one sentence that names the flag', () =>
  withNode(async (cluster) => {
    const { configPath, url } = cluster.node('a')
    const port = new URL(url).port
    expect(await refusal(configPath, ['--data', join(cluster.folder, 'other')])).toBe(
      `error: port ${port} on 127.0.0.1 is in use by another process; stop that one, or choose another port with --listen`,
    )
  }))

test('a data folder in use is refused, with the process that uses it', () =>
  withNode(async (cluster) => {
    const { configPath, pid } = cluster.node('a')
    const said = await refusal(configPath, ['--listen', '127.0.0.1:0'])
    expect(said).toMatch(/^error: the data folder \S+ is in use by process \d+ on \S+; stop it/)
    expect(said).toContain(`process ${pid} `)
  }))

test('a folder of another cluster, or of another node, is refused and left alone', () =>
  withNode(async (cluster) => {
    const rowKeys = await putCells(cluster, 1)
    const node = cluster.node('a')
    await node.stop()
    expect(await refusal(node.configPath, ['--cluster', 'other'])).toMatch(
      /belongs to cluster "test", not to "other"/,
    )
    const asB = ['--node', 'b', '--nodes', `b=${node.url}`]
    expect(await refusal(node.configPath, asB)).toMatch(/belongs to node "a", not to "b"/)
    await node.start()
    await expectCells(cluster, rowKeys)
  }))

test('a path that cannot be a folder is refused', () =>
  withNode(async (cluster) => {
    const { configPath } = cluster.node('a')
    const flags = ['--data', join(configPath, 'data'), '--listen', '127.0.0.1:0']
    expect(await refusal(configPath, flags, 2)).toMatch(
      /cannot be made: a part of its path is a file/,
    )
  }))

test.runIf(process.platform === 'linux')('a folder that the system does not make is refused', () =>
  withFolder(async (folder) => {
    const path = join(folder, 'a.yaml')
    await writeFile(path, oneNode)
    const of = (data: string): Promise<string> => refusal(path, ['--data', data], 2)
    expect(await of('/proc/x')).toMatch(/data \/proc\/x lies where the system keeps no files/)
    expect(await of('/proc')).toMatch(/data \/proc lies where the system keeps no files/)
  }),
)

test.runIf(process.platform === 'linux').each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s ends a node cleanly and with a word as soon as its program runs',
  (signal) =>
    withFolder(async (folder) => {
      await writeFile(join(folder, 'a.yaml'), oneNode)
      const flags = ['node', '--config', 'a.yaml', '--data', 'data']
      const program = startProgram(flags, { folder })
      const { pid } = program.child
      // Node.js itself catches the other two. The program asks for this one last.
      const bit = BigInt(constants.signals.SIGHUP - 1)
      await eventually('it listens to signals', async () => {
        const status = await readFile(`/proc/${pid}/status`, 'utf8')
        const caught = BigInt(`0x${/SigCgt:\s*([0-9a-f]+)/.exec(status)?.[1] ?? '0'}`)
        return ((caught >> bit) & 1n) === 1n ? true : undefined
      })
      program.child.kill(signal)
      expect(await program.exited(), program.stderr()).toEqual({ code: 0, signal: undefined })
      expect(program.stderr()).toContain(signal)
    }),
)

test('an unknown field ends with 2 and its place', () =>
  withFolder(async (folder) => {
    const path = join(folder, 'bad.yaml')
    await writeFile(path, 'cluster: test\nnode: a\nlisten: 127.0.0.1:0\ndta: ./x\n')
    const { code, stderr } = await runProgram(['node', '--config', path])
    expect(code).toBe(2)
    expect(stderr).toContain(`${path}:4:1: unknown field "dta"; did you mean "data"?`)
  }))

test('damaged derived data is rebuilt from the log, and that is said and counted', () =>
  withNode(async (cluster) => {
    const node = cluster.node('a')
    const rowKeys = await putCells(cluster, 30)
    await node.stop()
    await writeFile(join(node.dataFolder, 'data', 'CURRENT'), 'MANIFEST-nonsense\n')
    await node.start()
    await expectCells(cluster, rowKeys)
    expect(node.log()).toContain('data/ was damaged')
    const metrics = await (await fetch(`${node.url}/metrics`)).text()
    expect(metrics).toMatch(/^trilithon_data_resets_total\{.*\} 1$/m)
    expect(await readdir(node.dataFolder)).toContain('data.damaged')
  }))

test('garbage on the port leaves the node serving', () =>
  withNode(async (cluster) => {
    const { url } = cluster.node('a')
    const { hostname, port } = new URL(url)
    await new Promise<void>((resolve) => {
      const socket = connectSocket(Number(port), hostname, () =>
        socket.end('\x16\x03\x01 nonsense'),
      )
      socket.on('close', () => resolve())
      socket.on('error', () => resolve())
      socket.resume()
    })
    for (const path of ['/v1/peer', '/v1/client', '/v1/other']) {
      await new Promise<void>((resolve) => {
        const socket = new WebSocket(`ws://${hostname}:${port}${path}`)
        socket.on('open', () => socket.send(Buffer.from('not a frame')))
        socket.on('error', () => resolve())
        socket.on('close', () => resolve())
      })
    }
    await expectCells(cluster, await putCells(cluster, 1))
    expect(cluster.node('a').pid).toBeDefined()
  }))

test('a peer of another cluster is refused, and both say so', async () => {
  const cluster = await createCluster({ ids: ['a', 'b'] })
  try {
    const { configPath } = cluster.node('b')
    const yaml = await readFile(configPath, 'utf8')
    await writeFile(configPath, yaml.replace('cluster: test', 'cluster: other'))
    cluster.node('a').spawn()
    cluster.node('b').spawn()
    await eventually('the refusal is in both logs', async () => {
      const logs = ['a', 'b'].map((id) => cluster.node(id).log())
      return logs.every((log) => /cluster/.test(log) && /refused/.test(log)) ? true : undefined
    })
    const ready = await fetch(`${cluster.node('a').url}/readyz`)
    expect(ready.status).toBe(503)
    expect(await ready.text()).toContain('1 of 2 nodes are reachable')
  } finally {
    await cluster.close()
  }
})

test('told twice to stop, a node ends at once', () =>
  withNode(async (cluster) => {
    const node = cluster.node('a')
    const shard = `${node.url}/v1/datastores/trips/shards/7/cells?wait=30`
    const waiting = fetch(shard).then(
      (response) => response.status,
      () => 'closed',
    )
    node.signal('SIGTERM')
    const exit = await node.stop('SIGTERM')
    // In order before the second signal came, or by that one.
    expect([0, 'SIGTERM']).toContain(exit.code ?? exit.signal)
    await waiting
  }))
