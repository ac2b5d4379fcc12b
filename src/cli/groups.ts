/** `trilithon groups where`: the replica set of a group, its nodes, and its leader. */
import type { Command } from 'commander'
import { askNode, isObject, type NodeRequest } from '../adapters/node-asks.ts'
import { bytesOfGroup } from '../base/ids.ts'
import { withClient } from './client.ts'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'
import { addTargetFlags, readGroup } from './group-target.ts'
import { readHeaders } from './node-asks.ts'
import type { Options } from './options.ts'
import { print, printJson, styledData, table } from './output.ts'
import { parseUrls } from './url-flags.ts'

export function addGroupsCommand(program: Command): void {
  const groups = program.command('groups').description('entity groups: where they are')
  addTargetFlags(groups.command('where').argument('[GROUP]', 'its name in hexadecimal digits'))
    .description('show the replica set of a group, the nodes of that set, and the leader')
    .action(showWhere)
}

interface WhereNode {
  readonly id: string
  readonly url: string
  readonly region?: string
  readonly zone?: string
}

/** The answer of a node. */
interface Where {
  readonly group: string
  readonly place?: string
  readonly set: string
  readonly region?: string
  readonly nodes: readonly WhereNode[]
  readonly leader?: string
  readonly refusal?: string
}

const askTimeoutMs = 5_000

async function showWhere(given: string | undefined, options: Options): Promise<void> {
  const group = given ?? (await findName(options))
  if (!/^(?:[0-9a-f]{2})+$/.test(group)) {
    throw new CliError(`"${group}" is no name of a group in hexadecimal digits`, exitUsage)
  }
  const headers = await readHeaders(options)
  const first = await askFirst(parseUrls(options), group, headers)
  // A node of another set does not know the leader.
  const leader = first.leader ?? (await findLeader(first, headers))
  const where: Where = { ...first, ...(leader !== undefined && { leader }) }
  if (options['json'] === true) printJson(where)
  else show(where)
  if (where.refusal !== undefined) throw new CliError(where.refusal, exitFailure)
}

async function findName(options: Options): Promise<string> {
  const group = await withClient(options, (client) => readGroup(client, options))
  return Buffer.from(bytesOfGroup(group)).toString('hex')
}

async function askFirst(
  urls: readonly string[],
  group: string,
  headers: NodeRequest['headers'],
): Promise<Where> {
  const why: string[] = []
  for (const url of urls) {
    const found = await ask(url, group, headers)
    if (typeof found !== 'string') return found
    why.push(`${url}: ${found}`)
  }
  throw new CliError(`no node tells where the group is: ${why.join('; ')}`, exitUnavailable)
}

async function findLeader(
  { nodes, group }: Where,
  headers: NodeRequest['headers'],
): Promise<string | undefined> {
  const answers = await Promise.all(nodes.map(({ url }) => ask(url, group, headers)))
  return answers.flatMap((one) => (typeof one === 'string' ? [] : (one.leader ?? [])))[0]
}

/** Why there is no answer, where there is none. */
async function ask(
  url: string,
  group: string,
  headers: NodeRequest['headers'],
): Promise<Where | string> {
  const path = `/groups/where?group=${group}`
  const { body, why = 'no answer' } = await askNode({
    ...{ method: 'GET', url, path, headers, timeoutMs: askTimeoutMs },
  })
  if (body === undefined) return why
  return isWhere(body) ? body : 'it is of another version, and its answer has another form'
}

function isWhere(body: unknown): body is Where {
  if (!isObject(body)) return false
  const { group, place, set, region, nodes, leader, refusal } = body
  const hasNames = typeof group === 'string' && typeof set === 'string'
  const areNodes = Array.isArray(nodes) && nodes.every(isWhereNode)
  return hasNames && areNodes && [place, region, leader, refusal].every(isText)
}

function isWhereNode(value: unknown): boolean {
  if (!isObject(value)) return false
  const { id, url, region, zone } = value
  return typeof id === 'string' && typeof url === 'string' && isText(region) && isText(zone)
}

function isText(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

function show({ group, place, set, region, nodes, leader }: Where): void {
  const why = place === undefined ? 'by the hash of its name' : `by its place, ${place}`
  const inRegion = region === undefined ? '' : ` in region ${region}`
  print(styledData('bold', `set ${set}${inRegion}, ${why}`))
  const rows = nodes.map(({ id, url, region: own = '-', zone = '-' }) => {
    return [id, own, zone, id === leader ? 'leader' : '', url]
  })
  print(table([['node', 'region', 'zone', '', 'url'], ...rows]))
  if (leader === undefined) print('no node of the set knows the leader: the group is at rest')
  print(`group ${group}`)
}
