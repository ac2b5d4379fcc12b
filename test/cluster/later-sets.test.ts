/** Two replica sets of real processes, and a third one that comes later, while a client writes: it gets a third of the buckets. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import type { Client } from '../../src/index.ts'
import { applyAccounts, CountedWrites, setOf } from './accounts.ts'
import {
  eventually,
  patienceMs,
  runProgram,
  startCluster,
  startGateway,
  type TestCluster,
} from './harness.ts'

const page = readFileSync(new URL('../../src/docs/operating.md', import.meta.url), 'utf8')

const sets: Readonly<Record<string, readonly string[]>> = {
  east: ['a', 'b', 'c'],
  west: ['d'],
  third: ['g', 'h', 'i'],
}
const third = sets['third'] ?? []

let cluster: TestCluster
beforeAll(async () => {
  const names = Object.keys(sets)
  cluster = await startCluster({
    ids: Object.values(sets).flat(),
    setOf: (id) => names.find((name) => sets[name]?.includes(id)) ?? '',
    joining: third,
  })
})
afterAll(() => cluster?.close())

const oldCount = 40
/** Between two writes of a client: the machine has other work. */
const thinkMs = 150

async function run(words: readonly string[], at = 'a'): Promise<string> {
  const given = [...words, '--url', cluster.node(at).url]
  const { code, stdout, stderr } = await runProgram(given, { timeoutMs: 4 * patienceMs })
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`)
  return stdout
}

function addThird(more: readonly string[] = []): Promise<string> {
  const nodes = third.map((id) => `${id}=${cluster.node(id).url}`).join(',')
  return run(['sets', 'add', 'third', '--nodes', nodes, ...more])
}

function client(...ids: readonly string[]): Promise<Client> {
  const endpoints = ids.map((id) => cluster.node(id).url)
  return connect({ endpoints, timeoutMs: patienceMs })
}

/** The page shows what the command says. */
function expectShown(output: string): void {
  expect(output).not.toBe('')
  expect(page).toContain(output)
}

const writes = new CountedWrites()
const { written } = writes

function write(by: Client, name: string): Promise<void> {
  return writes.write(by, name)
}

async function isStarting(id: string): Promise<string | undefined> {
  const { body } = await ask(id, '/status')
  return body.includes('has no replica set third yet') ? body : undefined
}

async function ask(id: string, path: string): Promise<{ readonly body: string }> {
  const response = await fetch(`${cluster.node(id).url}${path}`).catch(() => undefined)
  return { body: (await response?.text()) ?? '' }
}

test('MOVE-16: a set that comes later gets a third of the buckets under a writer, and no node, gateway or client starts anew', async () => {
  const pids = new Map(['a', 'b', 'c', 'd'].map((id) => [id, cluster.node(id).pid]))
  const clients = await Promise.all([client('a'), client('d')])
  const [first, second] = clients
  const writing = { isOver: false }
  let writers: readonly Promise<void>[] = []
  const gateway = await startGateway([cluster.node('b').url])
  try {
    await applyAccounts(first)
    for (let at = 0; at < oldCount; at++) await write(first, `old-${at}`)
    writers = clients.map(async (by, nth) => {
      for (let turn = 0; !writing.isOver; turn++) {
        await write(by, `old-${2 * ((turn * 7 + nth * 15) % (oldCount / 2)) + nth}`)
        await write(by, `new-${nth}-${turn}`)
        await new Promise((resolve) => setTimeout(resolve, thinkMs))
      }
    })
    // Its nodes run, and wait.
    for (const id of third) if (cluster.node(id).pid === undefined) cluster.node(id).spawn()
    for (const id of third) await eventually(`${id} waits`, () => isStarting(id))
    await expect(addThird()).rejects.toThrow('run trilithon upgrade finalize first')
    await run(['upgrade', 'finalize'])
    expectShown(await addThird(['--dry-run']))
    expectShown(await addThird(['--wait']))
    for (const id of third) await cluster.node(id).ready()
    expect(await run(['sets', 'list'])).toMatch(/^third +0 +0\.0 %/m)
    expectShown(await run(['sets', 'rebalance', '--wait']))
    for (const id of ['b', 'd', 'h']) {
      expect(await run(['sets', 'list'], id)).toMatch(/^third +136[56] +33\.3 %/m)
    }
    for (const by of clients) await write(by, `last-${written.size}`)
    writing.isOver = true
    await Promise.all(writers)
    for (const by of clients) expect(await writes.listWrong(by)).toEqual([])
    const newcomer = await client('h')
    clients.push(newcomer)
    expect(await writes.listWrong(newcomer)).toEqual([])
    const where = await Promise.all([...written.keys()].map((name) => setOf(second, name)))
    expect(where.filter((set) => set === 'third').length).toBeGreaterThan(written.size / 6)
    for (const [id, pid] of pids) expect(cluster.node(id).pid).toBe(pid)
    await eventually('the gateway follows', async () => {
      const body = await (await fetch(`${gateway.url}/status`)).text()
      return third.every((id) => body.includes(cluster.node(id).url)) || undefined
    })
  } finally {
    writing.isOver = true
    await Promise.allSettled(writers)
    await gateway.stop()
    await Promise.all(clients.map((one) => one.close()))
  }
}, 400_000)

test('all nodes start anew, and know of the set', async () => {
  for (const { stop } of cluster.nodes) await stop()
  for (const node of cluster.nodes) node.spawn()
  for (const node of cluster.nodes) await node.ready()
  const by = await client('d')
  try {
    expect(await writes.listWrong(by)).toEqual([])
    await write(by, 'after')
    expect(await run(['sets', 'list'], 'd')).toMatch(/^third +136[56] +33\.3 %/m)
    expect(
      await run(['sets', 'give', '--from', 'third', '--to', 'west', '--buckets', '100', '--wait']),
    ).toMatch(/^moved 100 buckets of set third/m)
    expect(await writes.listWrong(by)).toEqual([])
  } finally {
    await by.close()
  }
}, 400_000)

test('wrong requests for a later set are refused in words', async () => {
  const at = (id: string): string => `${id}=${cluster.node(id).url}`
  await expect(run(['sets', 'add', 'West!', '--nodes', at('g')])).rejects.toThrow('names no set')
  await expect(run(['sets', 'add', 'fourth', '--nodes', 'g'])).rejects.toThrow('exit 2')
  await expect(
    run(['sets', 'add', 'fourth', '--nodes', `x=${cluster.node('g').url}`]),
  ).rejects.toThrow('is node g, not x')
  await expect(run(['sets', 'add', 'fourth', '--nodes', at('g')])).rejects.toThrow(
    'has it in replica set third',
  )
  await expect(run(['sets', 'add', 'west', '--nodes', at('g')])).rejects.toThrow(
    'There is a replica set west already',
  )
  await expect(run(['sets', 'add', 'third', '--nodes', at('g')])).rejects.toThrow(
    'with other nodes',
  )
  await expect(
    run(['sets', 'add', 'fourth', '--nodes', 'x=http://127.0.0.1:9,y=http://127.0.0.1:19']),
  ).rejects.toThrow('0 of 2 nodes of replica set fourth wait for it, and 2 are needed')
  expect(await addThird()).toMatch(/^added replica set third/m)
}, 200_000)
