/** `trilithon groups where|move`: the replica set of a group, its nodes and its leader; and another set for it. */
import type { Command } from 'commander'
import { askNode, isObject, type NodeRequest } from '../adapters/node-asks.ts'
import { bytesOfGroup, groupOfBytes, type GroupId } from '../base/ids.ts'
import { readTimeoutMs, withClient } from './client.ts'
import type { GroupMove } from '../client/groups.ts'
import { CliError, exitFailure, exitUnavailable, exitUsage } from './exit.ts'
import { addTargetFlags, readGroup } from './group-target.ts'
import { readHeaders } from './node-asks.ts'
import type { Options } from './options.ts'
import { print, printJson, say, styledData, table } from './output.ts'
import { parseUrls } from './url-flags.ts'

export function addGroupsCommand(program: Command): void {
  const groups = program
    .command('groups')
    .description('entity groups: where they are, and another replica set for one')
  addTargetFlags(groups.command('where').argument('[GROUP]', 'its name in hexadecimal digits'))
    .description('show the replica set of a group, the nodes of that set, and the leader')
    .action(showWhere)
  addTargetFlags(groups.command('move').argument('[GROUP]', 'its name in hexadecimal digits'))
    .description(
      'move the group of a root entity to another replica set; its reads and writes wait meanwhile',
    )
    .requiredOption('--to <SET>', 'the name of the set: "trilithon nodes list" shows the sets')
    .option('--dry-run', 'only say whether it could be moved')
    .action(move)
}

async function move(given: string | undefined, options: Options): Promise<void> {
  const to = String(options['to'])
  const isTrial = options['dryRun'] === true
  const isJson = options['json'] === true
  if (given !== undefined) checkName(given)
  await withClient(options, async (client) => {
    const group = given === undefined ? await readGroup(client, options) : parseName(given)
    const name = Buffer.from(bytesOfGroup(group)).toString('hex')
    const sinceMs = performance.now()
    const done = await client.groups.move(group, to, readTimeoutMs(options), { isTrial })
    const tookMs = Math.round(performance.now() - sinceMs)
    if (isJson)
      return printJson({ group: name, ...done, ...(isTrial ? { dryRun: true } : { tookMs }) })
    print(describeMove(done, isTrial, tookMs))
    print(`group ${name}`)
  })
}

function describeMove({ from, to, hasMoved }: GroupMove, isTrial: boolean, tookMs: number): string {
  if (hasMoved) return `moved the group from set ${from} to set ${to} in ${tookMs} ms`
  if (from === to) return `the group is in set ${to} already`
  const text = 'both sets are ready for that'
  return isTrial
    ? `would move the group from set ${from} to set ${to}: ${text}`
    : `the group is in set ${from}`
}

function checkName(text: string): void {
  if (/^(?:[0-9a-f]{2})+$/.test(text)) return
  throw new CliError(`"${text}" is no name of a group in hexadecimal digits`, exitUsage)
}

function parseName(text: string): GroupId {
  return groupOfBytes(Buffer.from(text, 'hex'))
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
  readonly begins?: string
  readonly unsure?: string
  readonly region?: string
  readonly nodes: readonly WhereNode[]
  readonly leader?: string
  readonly refusal?: string
}

const askTimeoutMs = 5_000

async function showWhere(given: string | undefined, options: Options): Promise<void> {
  const group = given ?? (await findName(options))
  checkName(group)
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
  const { group, place, set, begins, unsure, region, nodes, leader, refusal } = body
  const hasNames = typeof group === 'string' && typeof set === 'string'
  const areNodes = Array.isArray(nodes) && nodes.every(isWhereNode)
  return hasNames && areNodes && [place, begins, unsure, region, leader, refusal].every(isText)
}

function isWhereNode(value: unknown): boolean {
  if (!isObject(value)) return false
  const { id, url, region, zone } = value
  return typeof id === 'string' && typeof url === 'string' && isText(region) && isText(zone)
}

function isText(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

function show({ group, place, set, begins, unsure, region, nodes, leader }: Where): void {
  const byName = place === undefined ? 'by the hash of its name' : `by its place, ${place}`
  const why = begins === undefined ? byName : `where it was moved; it began in set ${begins}`
  const inRegion = region === undefined ? '' : ` in region ${region}`
  print(styledData('bold', `set ${set}${inRegion}, ${why}`))
  const rows = nodes.map(({ id, url, region: own = '-', zone = '-' }) => {
    return [id, own, zone, id === leader ? 'leader' : '', url]
  })
  print(table([['node', 'region', 'zone', '', 'url'], ...rows]))
  if (leader === undefined) print('no node of the set knows the leader: the group is at rest')
  print(`group ${group}`)
  if (unsure !== undefined) say(`it may have been moved since: ${unsure}`)
}
