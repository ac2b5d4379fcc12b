/**
 * Nodes of which one has lost its disk, as `trilithon nodes` meets them over HTTP. They tell the voters and the changes that a
 * test says.
 */
import { createServer, type Server } from 'node:http'
import {
  eventually,
  runProgram,
  startProgram,
  type Program,
  type ProgramResult,
} from '../cluster/harness.ts'

/** An object of an answer. */
type Fields = Readonly<Record<string, unknown>>

export const since = '2026-01-31T08:30:00.000000Z'
export const firstStore = '30541edc-3175-4700-9226-c2bc18fbfb5c'
const newStore = 'a1f0c7de-9a52-4c0b-8f43-0d3c5d0a9a11'
const replacing = { number: 1, kind: 'replace', node: 'n2', seat: 4097, since }
export const copying: Fields = { ...replacing, phase: 'copying' }
export const bound: Fields = { ...copying, store: newStore }
export const sealing: Fields = { ...bound, phase: 'sealing' }
export const done: Fields = { ...bound, phase: 'done' }
export const renewing: Fields = { number: 2, kind: 'renew', phase: 'sealing', since }

/** On a busy machine the first questions may have no answer in time. The command has begun nothing then. */
export const unanswered = 'error: no node answers'

interface Report {
  epoch: number
  canLose: number
  members: readonly Fields[]
  change?: object
  version?: number
}

export const voter: Fields = { isAlive: true, epoch: 1, standing: 'voting' }
export const lost: Fields = { node: 'n2', isAlive: false, standing: 'unknown' }
export const first: Fields = { node: 'n1', storeId: firstStore, ...voter }
export const third: Fields = { node: 'n3', ...voter }

/** n1, n2 and n3 on free ports. */
export class FakeCluster {
  readonly asked: string[] = []
  /** Of the requests for changes. */
  readonly secrets: (string | undefined)[] = []
  report: Report = { epoch: 1, canLose: 0, members: [first, lost, third] }
  /** The changes that the next questions find, one after another; the last one remains. */
  steps: object[] = []
  /** The answer to each POST. */
  reply: readonly [status: number, body: object] = [202, { change: copying }]
  readonly #servers = new Map<string, Server>()
  readonly #urls = new Map<string, string>()

  async listen(): Promise<this> {
    for (const id of ['n1', 'n2', 'n3']) {
      const server = createServer(({ method = '', url = '', headers }, response) => {
        if (method === 'POST') this.secrets.push(headers.authorization)
        const [status, body] = this.#answer(id, method, url)
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(body))
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('it has no port')
      this.#servers.set(id, server)
      this.#urls.set(id, `http://127.0.0.1:${address.port}`)
    }
    return this
  }

  #answer(id: string, method: string, url: string): readonly [number, object] {
    if (url === '/status') {
      const nodes = [...this.#urls].map(([one, at]) => ({ id: one, url: at }))
      const state = { state: 'running', ready: true, version: '0', uptimeSeconds: 1, messages: [] }
      return [200, { node: id, cluster: 'trips', ...state, nodes }]
    }
    this.asked.push(`${id} ${method} ${url}`)
    if (method === 'POST') return this.reply
    const change = this.steps.length > 1 ? this.steps.shift() : this.steps[0]
    return [200, { ...this.report, ...(change !== undefined && { change }) }]
  }

  get posts(): readonly string[] {
    return this.asked.filter((one) => one.includes('POST'))
  }

  kill(...ids: readonly string[]): void {
    for (const id of ids) {
      this.#servers.get(id)?.close()
      this.#servers.get(id)?.closeAllConnections()
    }
  }

  close(): void {
    this.kill(...this.#servers.keys())
  }

  get #environment(): { readonly TRILITHON_URL: string } {
    return { TRILITHON_URL: [...this.#urls.values()].join(',') }
  }

  start(...words: readonly string[]): Program {
    return startProgram(['nodes', ...words], { environment: this.#environment })
  }

  run(...words: readonly string[]): Promise<ProgramResult> {
    return this.runVerb('nodes', ...words)
  }

  runVerb(...words: readonly string[]): Promise<ProgramResult> {
    return eventually('a node answers', async () => {
      const result = await runProgram(words, { environment: this.#environment })
      return result.stderr.includes(unanswered) ? undefined : result
    })
  }
}
