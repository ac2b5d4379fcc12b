/** Questions about the buckets of replica sets, to the first node of each set that can answer, and requests to give some. */
import { askNode, isObject, type NodeRequest } from '../adapters/node-asks.ts'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import { readHeaders } from './node-asks.ts'
import type { Options } from './options.ts'
import { parseUrls } from './url-flags.ts'

/** Buckets that are on their way to another set. */
export interface Leaving {
  readonly phase: string
  readonly to: string
  readonly buckets: number
  readonly moved: number
  readonly left?: number
  readonly waitsFor?: string
}

/** A replica set as one of its nodes tells of it. */
export interface SetView {
  readonly set: string
  readonly buckets: number
  readonly sets: readonly {
    readonly set: string
    readonly nodes: readonly { readonly id: string; readonly url: string }[]
  }[]
  readonly leaving?: Leaving
}

const askTimeoutMs = 5_000
/** The node answers when its group has the change, or when no majority has answered it for some time. */
const changeTimeoutMs = 30_000

export class SetsAsks {
  readonly #headers: NodeRequest['headers']
  readonly #urls: ReadonlyMap<string, readonly string[]>

  /** The sets that the addresses lead to. Throws where none of the addresses answers. */
  static async open(options: Options): Promise<SetsAsks> {
    const headers = await readHeaders(options)
    const why: string[] = []
    for (const url of parseUrls(options)) {
      const view = await ask({
        method: 'GET',
        url,
        path: '/sets',
        headers,
        timeoutMs: askTimeoutMs,
      })
      if (typeof view !== 'string') return new SetsAsks(view, headers)
      why.push(`${url}: ${view}`)
    }
    throw new CliError(`no node tells of the replica sets: ${why.join('; ')}`, exitUnavailable)
  }

  private constructor({ sets }: SetView, headers: NodeRequest['headers']) {
    this.#headers = headers
    this.#urls = new Map(sets.map(({ set, nodes }) => [set, nodes.map(({ url }) => url)]))
  }

  get names(): readonly string[] {
    return [...this.#urls.keys()]
  }

  /** All sets in their order; those of which no node answers as the reason. */
  look(): Promise<readonly (SetView | string)[]> {
    return Promise.all(this.names.map((set) => this.find(set)))
  }

  /** The set as its first node tells that answers; the reason where none does. */
  async find(set: string): Promise<SetView | string> {
    const why: string[] = []
    for (const url of this.#urlsOf(set)) {
      const request = { method: 'GET', url, path: '/sets', headers: this.#headers } as const
      const view = await ask({ ...request, timeoutMs: askTimeoutMs })
      if (typeof view !== 'string') return view
      why.push(`${url}: ${view}`)
    }
    return why.join('; ')
  }

  /** Has the set give buckets, or keep those that leave it. Throws its refusal. */
  async change(set: string, path: string): Promise<SetView> {
    const why: string[] = []
    for (const url of this.#urlsOf(set)) {
      const request = { method: 'POST', url, path, headers: this.#headers } as const
      const {
        body,
        why: reason = 'no answer',
        isRefused,
      } = await askNode({
        ...{ ...request, timeoutMs: changeTimeoutMs },
      })
      if (isSetView(body)) return body
      if (isRefused === true) throw new CliError(`refused by set ${set}: ${reason}`, exitFailure)
      why.push(`${url}: ${reason}`)
    }
    const advice = 'see trilithon sets list, and run the same command again'
    throw new CliError(`set ${set}: ${why.join('; ')}; ${advice}`, exitUnavailable)
  }

  #urlsOf(set: string): readonly string[] {
    const urls = this.#urls.get(set)
    if (urls !== undefined) return urls
    throw new CliError(
      `no replica set has the name "${set}"; there are ${this.names.join(', ')}`,
      exitFailure,
    )
  }
}

/** Why there is no answer, where there is none. */
async function ask(request: NodeRequest): Promise<SetView | string> {
  const { body, why = 'no answer' } = await askNode(request)
  if (body === undefined) return why
  return isSetView(body) ? body : 'it is of another version, and its answer has another form'
}

function isSetView(body: unknown): body is SetView {
  if (!isObject(body)) return false
  const { set, buckets, sets, leaving } = body
  const isOfSet = typeof set === 'string' && typeof buckets === 'number'
  return isOfSet && Array.isArray(sets) && sets.every(isNamed) && isLeaving(leaving)
}

function isNamed(value: unknown): boolean {
  if (!isObject(value)) return false
  const { set, nodes } = value
  return typeof set === 'string' && Array.isArray(nodes) && nodes.every(isNode)
}

function isNode(value: unknown): boolean {
  return isObject(value) && typeof value['id'] === 'string' && typeof value['url'] === 'string'
}

function isLeaving(value: unknown): boolean {
  if (value === undefined) return true
  if (!isObject(value)) return false
  const { phase, to, buckets, moved, left, waitsFor } = value
  const texts = [phase, to, waitsFor ?? ''].every((one) => typeof one === 'string')
  return texts && [buckets, moved, left ?? 0].every((one) => typeof one === 'number')
}
