/** Nodes that were given different lists of nodes, or none of whose peers is there, say so. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { freePorts } from '../../sim/processes/free-ports.ts'
import { createCluster, eventually, runProgram, startProgram } from './harness.ts'

interface Report {
  readonly ready: boolean
  readonly nodes: readonly { readonly id: string; readonly isUp: boolean }[]
  readonly messages: readonly string[]
}

async function statusOf(url: string): Promise<Report> {
  const report: Report = JSON.parse(await (await fetch(`${url}/status`)).text())
  return report
}

test('HELLO-4: a node whose list of nodes is in another order has no links, and all say why', async () => {
  const cluster = await createCluster()
  try {
    const [a, b, c] = cluster.nodes
    if (a === undefined || b === undefined || c === undefined) throw new Error('there are three')
    const config = await readFile(c.configPath, 'utf8')
    const [line = '', list = ''] = /^nodes: (.*)$/m.exec(config) ?? []
    const nodes: readonly unknown[] = JSON.parse(list)
    const other = config.replace(line, `nodes: ${JSON.stringify(nodes.toReversed())}`)
    await writeFile(c.configPath, other)
    for (const node of [a, b, c]) node.spawn()
    await Promise.all([a.ready(), b.ready()])
    const toldBy = async (url: string, id: string): Promise<string> =>
      eventually(`${url} tells of ${id}`, async () => {
        const { messages } = await statusOf(url)
        return messages.find((text) => text.startsWith(`node ${id} `) && text.includes('nodes: '))
      })
    for (const url of [a.url, b.url]) {
      expect(await toldBy(url, 'c')).toMatch(
        /^node c cannot be reached \(nodes: the two sides have /,
      )
      expect((await statusOf(url)).nodes).toMatchObject([
        { isUp: true },
        { isUp: true },
        { isUp: false },
      ])
    }
    expect(await toldBy(c.url, 'a')).toContain("this side's is ")
    expect((await statusOf(c.url)).ready).toBe(false)
    expect(a.log()).toMatch(/"msg":"(link refused|refused by the other side)"/)
    expect(a.log()).toContain("this side's is a b c")
    expect(c.log()).toMatch(/this side's is a b c.*refused by the other side/)
    const shown = await runProgram(['status', '--url', a.url])
    expect(shown).toMatchObject({ code: 0 })
    expect(shown.stderr).toContain('a: node c cannot be reached (nodes: ')
  } finally {
    await cluster.close()
  }
})

test('a node says why it has no link to a peer that it dials', async () => {
  const cluster = await createCluster({ ids: ['a', 'b'] })
  try {
    const a = cluster.node('a')
    a.spawn()
    const told = await eventually('it tells', async () => {
      const report = await statusOf(a.url).catch(() => undefined)
      return report?.messages.find((text) => text.includes('connection refused'))
    })
    expect(told).toBe(
      'node b cannot be reached (connection refused: nothing listens there): start it, or look at its log',
    )
    cluster.node('b').spawn()
    await a.ready()
    await eventually('it tells no more', async () => {
      const { messages } = await statusOf(a.url)
      return messages.some((text) => text.includes('cannot be reached')) ? undefined : true
    })
  } finally {
    await cluster.close()
  }
})

test('a gateway says why it has no link to a node, and shows its clients no address', async () => {
  const [nobody = 0, port = 0] = await freePorts(2)
  const listen = `127.0.0.1:${port}`
  const nodes = `http://127.0.0.1:${nobody}`
  // A request that no node answers takes all of its time.
  const flags = ['--timeout-ms', '2000']
  const program = startProgram(['gateway', '--nodes', nodes, '--listen', listen, ...flags])
  try {
    const told = await eventually('it tells', async () => {
      const report = await statusOf(`http://${listen}`).catch(() => undefined)
      return report?.messages.find((text) => text.includes('connection refused'))
    })
    expect(told).toMatch(
      /^node \S+ cannot be reached \(connection refused: nothing listens there\)/,
    )
    const cell = '/v1/datastores/x/cells/0b5c1a52-1f5e-4d0c-8d2b-3c6a0d1e7f00/BASE/0'
    const asked = await fetch(`http://${listen}${cell}`)
    const text = await asked.text()
    expect(asked.status).toBe(503)
    expect(text).toContain('no node could be reached')
    expect(text).not.toContain(String(nobody))
  } finally {
    program.child.kill('SIGTERM')
    await program.exited()
  }
})
