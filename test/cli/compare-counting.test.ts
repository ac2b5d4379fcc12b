/** `trilithon compare now` while nodes count their groups: it waits, tells how far they are, and can be stopped. */
import { createServer, type Server } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import {
  eventually,
  patienceMs,
  runProgram,
  startProgram,
  type Program,
  type ProgramResult,
} from '../cluster/harness.ts'

/** On a busy machine the first questions may have no answer in time. The command has begun nothing then. */
const unanswered = 'error: no node answers'

/** A node as the command meets it: its rounds come to no end before all nodes have counted. */
class FakeNode {
  readonly id: string
  url = ''
  readonly #cluster: FakeCluster
  readonly #server: Server
  begun = 0
  #asked = 0
  #rounds = 0
  #uncompared = 0

  constructor(id: string, cluster: FakeCluster) {
    this.id = id
    this.#cluster = cluster
    this.#server = createServer(({ method, url }, response) => {
      const isBegun = method === 'POST'
      if (isBegun) this.#begin()
      const body = url === '/status' ? this.#cluster.status(this.id) : this.#report()
      const round = isBegun ? { round: this.begun, isJoined: false } : {}
      response.writeHead(isBegun ? 202 : 200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ ...body, ...round }))
    })
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('it has no port')
    this.url = `http://127.0.0.1:${address.port}`
  }

  get isCounting(): boolean {
    return this.begun > 0 && this.#asked < (this.#cluster.counts[this.id] ?? 0)
  }

  #begin(): void {
    const { nodes, counts, others } = this.#cluster
    this.begun += 1
    const isEarly = nodes.some((node) => node.isCounting || (counts[node.id] ?? 0) > node.#asked)
    this.#uncompared = isEarly ? others : this.#cluster.uncompared
    this.#rounds += others - this.#uncompared
  }

  /** Each question finds one group more counted. */
  #report(): object {
    if (this.isCounting) this.#asked += 1
    const figures = { rounds: this.#rounds, uncompared: this.#uncompared }
    const counting = { isCounting: this.isCounting, countedGroups: this.#asked }
    return { incarnation: 1, ended: this.begun, ...figures, ...(this.#cluster.tells && counting) }
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

class FakeCluster {
  readonly nodes: readonly FakeNode[]
  /** By node, its groups, of which each question finds one more counted. */
  readonly counts: Readonly<Record<string, number>>
  /** Whether the nodes tell that they count. */
  readonly tells: boolean
  /** Nodes with which rounds come to no end although all have counted. */
  uncompared = 0

  constructor(counts: Readonly<Record<string, number>>, tells = true) {
    this.counts = counts
    this.tells = tells
    this.nodes = ['a', 'b'].map((id) => new FakeNode(id, this))
  }

  get others(): number {
    return this.nodes.length - 1
  }

  status(node: string): object {
    const nodes = this.nodes.map(({ id, url }) => ({ id, url }))
    const state = { state: 'ready', ready: true, version: '0', uptimeSeconds: 1, messages: [] }
    return { node, cluster: 'counted', ...state, nodes }
  }

  get begun(): readonly number[] {
    return this.nodes.map(({ begun }) => begun)
  }

  get #environment(): { readonly TRILITHON_URL: string } {
    return { TRILITHON_URL: this.nodes[0]?.url ?? '' }
  }

  start(...words: readonly string[]): Program {
    return startProgram(['compare', 'now', ...words], { environment: this.#environment })
  }

  run(...words: readonly string[]): Promise<ProgramResult> {
    return eventually('a node answers', async () => {
      const options = { environment: this.#environment }
      const result = await runProgram(['compare', 'now', ...words], options)
      return result.stderr.includes(unanswered) ? undefined : result
    })
  }
}

const open: FakeCluster[] = []
afterEach(() => {
  for (const { nodes } of open.splice(0)) for (const node of nodes) node.close()
})

async function listening(cluster: FakeCluster): Promise<FakeCluster> {
  open.push(cluster)
  await Promise.all(cluster.nodes.map((node) => node.listen()))
  return cluster
}

test('HEAL-2: it waits until both nodes have counted, and begins one more round', async () => {
  const cluster = await listening(new FakeCluster({ a: 2, b: 22 }))
  const { code, stdout, stderr } = await cluster.run()
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(/b: counts its groups first, \d+ group/),
  ])
  expect(stdout).toContain('the nodes have the same rows')
  expect(stdout).toMatch(/^b +1 .* 0$/m)
  expect(cluster.begun).toEqual([2, 2])
})

test('HEAL-2: it waits no longer than --count-timeout, and says how far the count is', async () => {
  const cluster = await listening(new FakeCluster({ a: 0, b: 1_000_000 }))
  const { code, stderr } = await cluster.run('--count-timeout', '1')
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^b: not compared with 1 node: this node still counts its groups, \d groups? so far; run trilithon compare now again later, or with a longer --count-timeout$/m,
  )
  expect(stderr).toContain('a: not compared with 1 node: see trilithon status')
  expect(cluster.begun).toEqual([1, 1])
  const wrong = await cluster.run('--count-timeout', 'long')
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('wants a number from 0')])
  expect(cluster.begun).toEqual([1, 1])
})

test('Ctrl-C ends the command, and no count', async () => {
  const cluster = await listening(new FakeCluster({ a: 0, b: 1_000_000 }))
  let program = cluster.start()
  await eventually('it waits', async () => {
    if (program.stderr().includes(unanswered)) program = cluster.start()
    return program.stderr().includes('b: counts its') || undefined
  })
  program.child.kill('SIGINT')
  expect(await program.exited()).toMatchObject({ code: 1 })
  expect(program.stderr()).toContain(
    'SIGINT: the nodes go on counting their groups; run trilithon compare now again later',
  )
})

test(
  'a round that comes to no end for another reason is begun three times more',
  { timeout: patienceMs },
  async () => {
    const cluster = await listening(new FakeCluster({}, false))
    cluster.uncompared = 1
    const { code, stderr } = await cluster.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining('b: not compared with 1 node: see')])
    expect(cluster.begun).toEqual([4, 4])
  },
)

test('HEAL-2: where a node is down, the others are compared once they have counted', async () => {
  const cluster = await listening(new FakeCluster({ a: 3 }))
  cluster.uncompared = 1
  cluster.nodes[1]?.close()
  const { code, stderr } = await cluster.run()
  expect([code, stderr]).toEqual([4, expect.stringContaining('no answer of b')])
  expect(cluster.begun).toEqual([2, 0])
})
