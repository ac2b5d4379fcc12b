/** `trilithon sets add`: a replica set that comes later. Its nodes run already, and wait for this. */
import { askNode } from '../adapters/node-asks.ts'
import { isNodeId } from '../base/ids.ts'
import { isPlaceName } from '../base/placed-group.ts'
import { scalarText } from '../config/source.ts'
import { isWildcard, readCalledUrl } from '../config/values.ts'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'
import { majority } from './members-words.ts'
import type { Options } from './options.ts'
import { counted, print, printJson, say } from './output.ts'
import { SetsAsks } from './sets-asks.ts'
import { parseUrls } from './url-flags.ts'

/** A node that is to begin the set. */
interface Begun {
  readonly id: string
  readonly url: string
}

const askMs = 5_000
const pollMs = 500
const waitMsMax = 60_000

export async function addSet(name: string, options: Options): Promise<void> {
  if (!isPlaceName(name)) {
    throw new CliError(`"${name}" names no set: a name is 1 to 32 of a-z, 0-9 and -`, exitUsage)
  }
  const nodes = parseNodes(String(options['nodes']))
  const asks = await SetsAsks.open(options)
  const isThere = asks.names.includes(name)
  if (isThere && options['dryRun'] === true) {
    throw new CliError(`there is a replica set ${name} already`, exitFailure)
  }
  // Where the set is there, the cluster says whether it has these nodes.
  if (!isThere) await checkNodes(name, nodes, options)
  const [first = ''] = asks.names
  const ids = nodes.map(({ id }) => id).join(', ')
  const isJson = options['json'] === true
  if (options['dryRun'] === true) {
    if (isJson) return printJson({ dryRun: true, set: name, nodes })
    print(`would add replica set ${name} of ${ids}`)
    return print(`needs a majority of each replica set of now: ${asks.names.join(', ')}`)
  }
  const list = nodes.map(({ id, url }) => `${id}=${url}`).join(',')
  const query = new URLSearchParams({ set: name, nodes: list })
  await asks.change(first, `/sets/add?${query.toString()}`)
  if (options['wait'] === true) await follow(name, options)
  if (isJson) return printJson({ set: name, nodes })
  print(`added replica set ${name} of ${ids}`)
  print('it has no buckets yet: trilithon sets rebalance gives it some, trilithon sets give others')
}

function parseNodes(text: string): readonly Begun[] {
  const nodes = text.split(',').map((one) => {
    const [id = '', ...rest] = one.trim().split('=')
    const read = readCalledUrl(scalarText(rest.join('='), { kind: 'flag', name: '--nodes' }))
    if (!isNodeId(id)) {
      throw new CliError(
        `--nodes: "${one}" is no NAME=URL such as g=http://10.0.0.7:4700`,
        exitUsage,
      )
    }
    if (!read.ok) {
      const why = read.problems.map(({ reason }) => reason).join('; ')
      throw new CliError(`--nodes: ${id} ${why}`, exitUsage)
    }
    if (!isWildcard(read.value)) return { id, url: read.value }
    const wild = `--nodes: ${read.value} is an address to listen on: no other node reaches ${id} by it`
    throw new CliError(wild, exitUsage)
  })
  const twin = nodes.find(({ id }, at) => nodes.findIndex((one) => one.id === id) !== at)
  if (twin === undefined) return nodes
  throw new CliError(`--nodes: ${twin.id} stands there twice`, exitUsage)
}

/** A majority has to be up and wait for the set: else the groups that go to it would wait. Each that answers has to be the right one. */
async function checkNodes(name: string, nodes: readonly Begun[], options: Options): Promise<void> {
  const statuses = await Promise.all(parseUrls(options).map(askStatus))
  const cluster = statuses.map((one) => one.body?.['cluster']).find((one) => one !== undefined)
  const told = await Promise.all(nodes.map(async (node) => checkNode(name, node, cluster)))
  const waiting = told.filter((why) => why === undefined).length
  const needed = majority(nodes.length)
  if (waiting >= needed) return
  const why = told.filter((one) => one !== undefined).join('; ')
  const text = `${waiting} of ${counted(nodes.length, 'node')} of replica set ${name} wait for it, and ${needed} are needed: ${why}; start them first`
  throw new CliError(text, exitUnavailable)
}

/** The reason why it does not answer; undefined: it waits. */
async function checkNode(
  name: string,
  { id, url }: Begun,
  cluster: unknown,
): Promise<string | undefined> {
  const { body, why = 'no answer' } = await askStatus(url)
  if (body === undefined) return `${id} at ${url}: ${why}`
  const { node, set } = body
  if (node !== id) throw new CliError(`at ${url} is node ${String(node)}, not ${id}`, exitFailure)
  if (body['cluster'] !== cluster) {
    const text = `${id} is of cluster ${String(body['cluster'])}, not of ${String(cluster)}`
    throw new CliError(text, exitFailure)
  }
  if (set === name) return undefined
  const text = `the configuration of ${id} has it in replica set ${String(set)}, not in ${name}`
  throw new CliError(text, exitFailure)
}

function askStatus(url: string): ReturnType<typeof askNode> {
  return askNode({ method: 'GET', url, path: '/status', headers: {}, timeoutMs: askMs })
}

/** Resolves when a node of each set tells of the set, one of its own included. */
async function follow(name: string, options: Options): Promise<void> {
  const endMs = performance.now() + waitMsMax
  let told = ''
  for (;;) {
    const asks = await SetsAsks.open(options)
    const views = await asks.look()
    const late = asks.names.filter((_, at) => {
      const view = views[at]
      return typeof view === 'string' || view?.sets.every(({ set }) => set !== name) !== false
    })
    if (asks.names.includes(name) && late.length === 0) return
    const text = `these sets do not tell of ${name} yet: ${late.join(', ')}`
    if (performance.now() > endMs) throw new CliError(text, exitUnavailable)
    if (text !== told) say(text)
    told = text
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
