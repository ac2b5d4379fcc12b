/** Questions to all nodes about rounds of comparing or of scrubbing, and the answers as they come. */
import { askNode, type NodeRequest } from '../adapters/node-asks.ts'
import { readHeaders } from './node-asks.ts'
import type { Options } from './options.ts'
import { askNodes } from './status.ts'

/** Members that each answer has; the others are of the kind of round. */
export interface RoundReport {
  readonly incarnation: number
  readonly ended: number
  readonly isUnderWay: boolean
  /** Of the answer to a node's begin. */
  readonly round?: number
  readonly isJoined?: boolean
  /** Figures, and lists of names. */
  readonly [name: string]: unknown
}

/** The answer of one node. */
export interface NodeAnswer {
  readonly id: string
  readonly url: string
  /** Absent: there is none. */
  readonly report?: RoundReport
  /** Why not. */
  readonly why?: string
  /** It answered in words that it will not. */
  readonly isRefused?: boolean
}

const timeoutMs = 5_000

export class RoundAsks {
  readonly nodes: readonly Pick<NodeAnswer, 'id' | 'url'>[]
  readonly #headers: NodeRequest['headers']

  /** Every node of the cluster that the addresses lead to. Throws where none of them answers. */
  static async open(options: Options): Promise<RoundAsks> {
    const headers = await readHeaders(options)
    const { nodes } = await askNodes(options)
    return new RoundAsks(
      nodes.map(({ id, url }) => ({ id, url })),
      headers,
    )
  }

  private constructor(nodes: RoundAsks['nodes'], headers: NodeRequest['headers']) {
    this.nodes = nodes
    this.#headers = headers
  }

  /** The same request to each of these nodes, all at once. */
  all(
    method: 'GET' | 'POST',
    path: string,
    nodes: readonly Pick<NodeAnswer, 'id' | 'url'>[] = this.nodes,
  ): Promise<readonly NodeAnswer[]> {
    return Promise.all(
      nodes.map(async ({ id, url }) => ({ id, url, ...(await this.#ask(method, url, path)) })),
    )
  }

  async #ask(
    method: 'GET' | 'POST',
    url: string,
    path: string,
  ): Promise<Pick<NodeAnswer, 'report' | 'why' | 'isRefused'>> {
    const headers = this.#headers
    const { body, ...refusal } = await askNode({ method, url, path, headers, timeoutMs })
    return body === undefined ? refusal : { report: completed(body) }
  }
}

function completed(body: Readonly<Record<string, unknown>>): RoundReport {
  const { incarnation, ended, isUnderWay, round, isJoined, ...rest } = body
  return {
    ...rest,
    incarnation: toNumber(incarnation),
    ended: toNumber(ended),
    isUnderWay: isUnderWay === true,
    ...(round !== undefined && { round: toNumber(round), isJoined: isJoined === true }),
  }
}

function toNumber(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** A figure of a report; 0 where it has none. */
export function figureOf(report: RoundReport | undefined, name: string): number {
  return toNumber(report?.[name])
}

/** Whether a report says so; false where it does not tell. */
export function flagOf(report: RoundReport, name: string): boolean {
  return report[name] === true
}

/** A list of names in a report. */
export function namesOf(report: RoundReport | undefined, name: string): readonly string[] {
  const value = report?.[name]
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
