/** Questions about builds to every node of all replica sets, and the requests that put a cluster version in force. */
import { setTimeout as sleep } from 'node:timers/promises'
import { askNode, isObject, type NodeRequest } from '../adapters/node-asks.ts'
import {
  firstVersion,
  isVersion,
  supportsVersion,
  untoldVersions,
  versionsText,
  type Versions,
} from '../base/cluster-version.ts'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import { readHeaders } from './node-asks.ts'
import type { Options } from './options.ts'
import { askNodes, type Asked } from './status.ts'

/** A node as it tells of itself. */
export interface NodeSeen {
  readonly id: string
  readonly url: string
  readonly set: string
  /** The version of its program; absent: it does not answer. */
  readonly build?: string
  /** Absent with it. */
  readonly supports?: Versions
  /** The cluster version in force at it; absent with it. */
  readonly version?: number
}

export interface SetSeen {
  readonly name: string
  /** The highest one that any of its nodes has applied. */
  readonly version: number
}

export interface Hindrance {
  /** `down`: no answer. `old`: its build supports less. */
  readonly kind: 'down' | 'old'
  readonly text: string
}

export interface UpgradeSeen {
  readonly nodes: readonly NodeSeen[]
  readonly sets: readonly SetSeen[]
  /** The highest version that any node supports. */
  readonly target: number
  readonly hindrances: readonly Hindrance[]
}

interface Address {
  readonly id: string
  readonly url: string
  /** As another node names its set; absent: it does not. */
  readonly set?: string
}

const askTimeoutMs = 5_000
/** The node answers when its group has the row, or when no majority has answered it for some time. */
const raiseTimeoutMs = 30_000
const followMsMax = 20_000
const lookMs = 250

export class UpgradeAsks {
  readonly #first: readonly Asked[]
  readonly #headers: NodeRequest['headers']

  /** Throws where none of the addresses answers. */
  static async open(options: Options): Promise<UpgradeAsks> {
    const headers = await readHeaders(options)
    return new UpgradeAsks((await askNodes(options)).nodes, headers)
  }

  private constructor(first: readonly Asked[], headers: NodeRequest['headers']) {
    this.#first = first
    this.#headers = headers
  }

  /** Asks each node that any node names. */
  async look(): Promise<UpgradeSeen> {
    const seen = new Map<string, NodeSeen>()
    const firstSet = this.#first.map(({ report }) => report?.set).find((one) => one !== undefined)
    let next: Address[] = this.#first.map(({ id, url }) => {
      return { id, url, ...(firstSet !== undefined && { set: firstSet }) }
    })
    // The members of a set as its nodes name them; of the configuration, those of sets that name none.
    const members = new Map<string, Set<string>>()
    while (next.length > 0) {
      const told = await Promise.all(next.map((address) => this.#ask(address)))
      for (const { node, names } of told) {
        seen.set(node.id, node)
        for (const { id, set = node.set } of names.members) {
          members.set(set, (members.get(set) ?? new Set()).add(id))
        }
      }
      const named = told.flatMap(({ names }) => [...names.members, ...names.configured])
      const byId = new Map(named.filter(({ id }) => !seen.has(id)).map((one) => [one.id, one]))
      next = [...byId.values()]
    }
    const nodes = [...seen.values()].filter(({ id, set }) => members.get(set)?.has(id) !== false)
    return summarize(nodes)
  }

  async #ask(address: Address): Promise<Told> {
    const { id, url, set = '' } = address
    const none = { members: [], configured: [] }
    if (url === '') return { node: { id, url, set }, names: none }
    const { body } = await this.#request('GET', url, '/upgrade', askTimeoutMs)
    const told = body && readUpgrade(body, id, url)
    if (told !== undefined) return told
    const { body: status } = await this.#request('GET', url, '/status', askTimeoutMs)
    const build = status?.['version']
    if (typeof build !== 'string' || status?.['state'] !== 'running') {
      return { node: { id, url, set }, names: none }
    }
    const own = typeof status['set'] === 'string' ? status['set'] : set
    const known = { build, supports: untoldVersions, version: firstVersion }
    return { node: { id, url, set: own, ...known }, names: none }
  }

  /** Has a node of the set raise its version, step by step. Throws its refusal. */
  async raise({ name, version }: SetSeen, target: number): Promise<void> {
    for (let to = version + 1; to <= target; to++) await this.#raiseTo(name, to)
  }

  async #raiseTo(set: string, to: number): Promise<void> {
    const why: string[] = []
    for (const { id, url } of (await this.look()).nodes.filter((one) => one.set === set)) {
      const path = `/upgrade/finalize?to=${to}`
      const reply = await this.#request('POST', url, path, raiseTimeoutMs)
      if (reply.body !== undefined) return
      const { why: reason = 'its answer has another form' } = reply
      if (reply.isRefused === true) throw new CliError(`refused by ${id}: ${reason}`, exitFailure)
      why.push(`${id}: ${reason}`)
    }
    const text = `set ${set} has not taken cluster version ${to}: ${why.join('; ')}; run the same command again`
    throw new CliError(text, exitUnavailable)
  }

  /** Resolves when the version is in force at all nodes. Throws where that takes too long. */
  async follow(version: number): Promise<void> {
    const untilMs = performance.now() + followMsMax
    for (;;) {
      const { nodes } = await this.look()
      const late = nodes.filter((one) => (one.version ?? 0) < version).map(({ id }) => id)
      if (late.length === 0) return
      if (performance.now() > untilMs) {
        const text = `${late.join(', ')} has yet to put cluster version ${version} in force: see trilithon upgrade status`
        throw new CliError(text, exitUnavailable)
      }
      await sleep(lookMs)
    }
  }

  #request(
    method: NodeRequest['method'],
    url: string,
    path: string,
    timeoutMs: number,
  ): ReturnType<typeof askNode> {
    return askNode({ method, url, path, headers: this.#headers, timeoutMs })
  }
}

interface Told {
  readonly node: NodeSeen
  readonly names: { readonly members: readonly Address[]; readonly configured: readonly Address[] }
}

/** Undefined for an answer of another form, or of another node. */
function readUpgrade(
  body: Readonly<Record<string, unknown>>,
  id: string,
  url: string,
): Told | undefined {
  const { node, set, build, supports, version, members, nodes } = body
  if (node !== id || typeof set !== 'string' || typeof build !== 'string') return undefined
  if (!isVersions(supports) || !isVersion(version)) return undefined
  if (!Array.isArray(members) || !Array.isArray(nodes)) return undefined
  const ofSet = members.flatMap((one: unknown) => readAddress(one, 'node', set))
  const configured = nodes.flatMap((one: unknown) => readAddress(one, 'id', undefined))
  const others = configured.filter((one) => one.set !== set)
  return {
    node: { id, url, set, build, supports, version },
    names: { members: ofSet, configured: others },
  }
}

function readAddress(value: unknown, name: 'node' | 'id', set: string | undefined): Address[] {
  if (!isObject(value)) return []
  const { url = '', set: own = set } = value
  const id = value[name]
  if (typeof id !== 'string' || typeof url !== 'string') return []
  return [{ id, url, ...(typeof own === 'string' && { set: own }) }]
}

function isVersions(value: unknown): value is Versions {
  return isObject(value) && isVersion(value['min']) && isVersion(value['max'])
}

function summarize(nodes: readonly NodeSeen[]): UpgradeSeen {
  const names = [...new Set(nodes.map(({ set }) => set))]
  const sets = names.map((name): SetSeen => {
    const versions = nodes.filter(({ set }) => set === name).map(({ version = 0 }) => version)
    return { name, version: Math.max(firstVersion, ...versions) }
  })
  const target = Math.max(firstVersion, ...nodes.map(({ supports }) => supports?.max ?? 0))
  const hindrances = nodes.flatMap((node) => findHindrance(node, target))
  return { nodes, sets, target, hindrances }
}

function findHindrance({ id, build, supports }: NodeSeen, target: number): readonly Hindrance[] {
  if (supports === undefined) return [{ kind: 'down', text: `${id} does not answer: start it` }]
  if (supportsVersion(supports, target)) return []
  const text = `${id} runs build ${build}, which supports ${versionsText(supports)}: upgrade it`
  return [{ kind: 'old', text }]
}
