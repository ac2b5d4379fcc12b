/** Questions about the voters of a replica set, to the first of its nodes that can answer, and requests for changes. */
import { askNode, type NodeRequest } from '../adapters/node-asks.ts'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import { isChange, readMembers, type ChangeView, type MembersView } from '../node/members-view.ts'
import { readHeaders } from './node-asks.ts'
import type { Options } from './options.ts'
import { askNodes } from './status.ts'

interface Address {
  readonly id: string
  readonly url: string
}

/** The voters as one node sees them. */
export interface MembersTold {
  readonly from: Address
  readonly view: MembersView
}

const askTimeoutMs = 5_000
/** The node answers when its group has the change, or when no majority has answered it for some time. */
const changeTimeoutMs = 30_000

export class MembersAsks {
  /** All nodes of the replica set. Those that have answered are first. */
  readonly nodes: readonly Address[]
  readonly #headers: NodeRequest['headers']

  /** The nodes of the replica set that the addresses lead to. Throws where none of the addresses answers. */
  static async open(options: Options): Promise<MembersAsks> {
    const headers = await readHeaders(options)
    const { nodes } = await askNodes(options)
    const [live, silent] = [true, false].map((isLive) =>
      nodes.filter(({ report }) => (report !== undefined) === isLive),
    )
    return new MembersAsks([...(live ?? []), ...(silent ?? [])], headers)
  }

  private constructor(nodes: readonly Address[], headers: NodeRequest['headers']) {
    this.nodes = nodes.map(({ id, url }) => ({ id, url }))
    this.#headers = headers
  }

  /**
   * The voters as the first node sees them that votes itself. Where none votes, as the first node sees them that answers.
   * `except` is not asked. Throws, with the reason of each node, where none answers.
   */
  async look(except?: string): Promise<MembersTold> {
    let first: MembersTold | undefined
    const why: string[] = []
    for (const from of this.nodes.filter(({ id }) => id !== except)) {
      const told = await this.#lookAt(from)
      if (typeof told === 'string') {
        why.push(told)
        continue
      }
      const own = told.view.members.find(({ node }) => node === from.id)
      if (own?.standing === 'voting') return told
      first ??= told
    }
    if (first !== undefined) return first
    const beside = except === undefined ? '' : ` beside ${except}`
    const reasons = why.length === 0 ? 'there is no other one' : why.join('; ')
    throw new CliError(`no node${beside} tells of the voters: ${reasons}`, exitUnavailable)
  }

  async #lookAt(from: Address): Promise<MembersTold | string> {
    const { body, why = 'no answer' } = await this.#ask('GET', from, '/members', askTimeoutMs)
    if (body === undefined) return `${from.id}: ${why}`
    const view = readMembers(body)
    return view === undefined
      ? `${from.id}: it is of another version, and its answer has another form`
      : { from, view }
  }

  /** Has the node begin a change, or give it up. Throws its refusal. */
  async change(at: Address, path: string): Promise<ChangeView> {
    const reply = await this.#ask('POST', at, path, changeTimeoutMs)
    const change = reply.body?.['change']
    if (isChange(change)) return change
    const { why = 'its answer has another form' } = reply
    if (reply.isRefused === true) throw new CliError(`refused by ${at.id}: ${why}`, exitFailure)
    const text = `${at.id}: ${why}; see trilithon nodes list, and run the same command again`
    throw new CliError(text, exitUnavailable)
  }

  #ask(
    method: NodeRequest['method'],
    { url }: Address,
    path: string,
    timeoutMs: number,
  ): ReturnType<typeof askNode> {
    return askNode({ method, url, path, headers: this.#headers, timeoutMs })
  }
}
