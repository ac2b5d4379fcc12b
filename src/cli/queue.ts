/** `trilithon queue`: shows the messages that wait in queues and the dead ones, and brings dead ones back. */
import type { Command } from 'commander'
import { StoreError } from '../base/errors.ts'
import { bytesOfGroup, groupOfBytes, type GroupId, type Timestamp } from '../base/ids.ts'
import type { Client } from '../client/client.ts'
import { formatIso } from '../base/datetime.ts'
import { parseJsonText } from '../base/json-text.ts'
import type { QueueSum, RowsSum } from '../queues/queue-sum.ts'
import type { InboxMessage } from '../queues/message.ts'
import { compileSchema } from '../tables/compile.ts'
import type { CompiledSchema } from '../tables/compiled.ts'
import { groupWords, rootOfGroup } from '../tables/group-context.ts'
import { addClusterFlags, parseCount, withClient } from './client.ts'
import { CliError, exitUsage } from './exit.ts'
import type { Options } from './options.ts'
import { counted, duration, grouped, print, printJson, say, table } from './output.ts'

const bodyCharsShown = 60

export function addQueueCommand(program: Command): void {
  const queue = program.command('queue').description('look at queues, and bring back dead letters')
  addClusterFlags(queue.command('list'))
    .description(
      'list queues that have messages: how many wait, how old they are, how many are dead',
    )
    .action(list)
  addClusterFlags(queue.command('show').argument('<QUEUE>', 'such as Calendars.invitations'))
    .description('messages that wait to be handled, group by group in their order')
    .option('--limit <N>', 'print at most this many', '100')
    .action(show)
  const dead = queue.command('dead').description('messages that were given up')
  addClusterFlags(dead.command('list').argument('<QUEUE>', 'such as Calendars.invitations'))
    .description('dead letters, group by group, the longest dead first')
    .option('--limit <N>', 'print at most this many', '100')
    .action(listDead)
  addClusterFlags(queue.command('redrive').argument('<QUEUE>', 'such as Calendars.invitations'))
    .description('put dead letters at the end of their queue, to be tried again')
    .option('--group <HEX>', 'those of this group only, as dead list gives it')
    .option('--id <N...>', 'these of the group only')
    .action(redrive)
}

async function list(options: Options): Promise<void> {
  const queues = await withClient(options, (client) => client.queues.list())
  if (options['json'] === true) return printJson(queues.map(plainSum))
  if (queues.length === 0) return say('no queue has a message')
  const rows = queues.map(({ queue, waiting, dead }) => [
    queue ?? '(on the way)',
    countWords(waiting),
    grouped(waiting.groups),
    ageWords(waiting.oldest),
    countWords(dead),
  ])
  print(table([['QUEUE', 'WAITING', 'GROUPS', 'OLDEST', 'DEAD'], ...rows]))
}

function plainSum({ queue, waiting, dead }: QueueSum): object {
  return { queue: queue ?? null, waiting: plainRows(waiting), dead: plainRows(dead) }
}

function plainRows({ oldest, ...rest }: RowsSum): object {
  return { ...rest, ...(oldest !== undefined && { oldest: formatIso(oldest) }) }
}

function countWords({ messages, isWhole }: RowsSum): string {
  return `${grouped(messages)}${isWhole ? '' : '+'}`
}

function ageWords(oldest: Timestamp | undefined): string {
  return oldest === undefined ? '-' : duration(Math.max(0, Date.now() - oldest / 1000))
}

async function show(queue: string, options: Options): Promise<void> {
  const limit = parseLimit(options)
  await withClient(options, async (client) => {
    const names = await makeNames(client, queue)
    const found = await client.queues.waiting(queue, limit)
    if (found.length === 0) sayEmpty(queue, 'message that waits')
    for (const { group, id, message, sentAt, due } of found) {
      const own = { ...plainMessage(group, id, message, sentAt), failures: message.failures }
      if (options['json'] === true) {
        printJson({ ...own, ...(due !== undefined && { due: formatIso(due) }) })
      } else {
        const later = due === undefined ? '' : `, due ${formatIso(due)}`
        const failed = message.failures > 0 ? `, failed ${message.failures} times` : ''
        print(
          `${names(group)} #${id}: sent ${formatIso(sentAt)}${later}${failed}: ${shortBody(message)}`,
        )
      }
    }
  })
}

async function listDead(queue: string, options: Options): Promise<void> {
  const limit = parseLimit(options)
  await withClient(options, async (client) => {
    const names = await makeNames(client, queue)
    const found = await client.queues.deadLetters(queue).list(limit)
    if (found.length === 0) sayEmpty(queue, 'dead letter')
    for (const letter of found) {
      const { group, id, message, diedAt } = letter
      const { error, failures } = message
      if (options['json'] === true) {
        const own = plainMessage(group, id, message, message.sentAt)
        printJson({ ...own, diedAt: formatIso(diedAt), failures, error })
      } else {
        const where = `${names(group)} #${id} (--group ${encodeHex(group)} --id ${id})`
        print(`${where}: failed ${failures} times, ${error}: ${shortBody(message)}`)
      }
    }
  })
}

async function redrive(queue: string, options: Options): Promise<void> {
  const { group } = options
  const ids = parseIds(options)
  if (ids !== undefined && group === undefined) {
    throw new CliError('--id names letters of one group; give --group too', exitUsage)
  }
  const count = await withClient(options, async (client) => {
    const letters = client.queues.deadLetters(queue)
    if (group === undefined) return letters.redriveAll()
    const of = parseGroup(String(group))
    if (ids !== undefined) return letters.redrive(of, ids)
    return letters.redriveAll(of)
  })
  if (options['json'] === true) printJson({ queue, redriven: count })
  else print(`${counted(count, 'message')} put back into ${queue}`)
  if (count === 0 && ids === undefined) sayEmpty(queue, 'dead letter')
  const missing = new Set(ids).size - count
  if (missing <= 0) return
  const text = `${counted(missing, 'letter')} named by --id cannot be found among the dead letters of ${queue}`
  throw new StoreError('not-found', text)
}

function plainMessage(
  group: GroupId,
  id: number,
  { sender, body, redriven }: InboxMessage,
  sentAt: Timestamp,
): object {
  const text = Buffer.from(body).toString()
  return {
    group: encodeHex(group),
    id,
    from: encodeHex(sender ?? group),
    sentAt: formatIso(sentAt),
    redriven,
    body: parseJson(text) ?? text,
  }
}

function parseJson(text: string): unknown {
  // Shown as the text that it is, where printing it as JSON would lose some of it.
  const read = parseJsonText(text)
  return read.ok ? read.value : undefined
}

function shortBody({ body }: InboxMessage): string {
  const text = Buffer.from(body).toString()
  return text.length > bodyCharsShown ? `${text.slice(0, bodyCharsShown)}…` : text
}

/** The schema that the queue's name begins with, where the cluster has it. */
async function findSchema(client: Client, queue: string): Promise<CompiledSchema | undefined> {
  const name = queue.slice(0, Math.max(0, queue.indexOf('.')))
  const version = name === '' ? undefined : await client.schemaVersion(name)
  return version && compileSchema(version)
}

/** An empty queue and a slip look alike. */
function sayEmpty(queue: string, what: string): void {
  say(`queue ${queue} has no ${what} (is the name right?)`)
}

/** Groups in words, where the queue's name begins with that of a schema the cluster has. */
async function makeNames(client: Client, queue: string): Promise<(group: GroupId) => string> {
  const schema = await findSchema(client, queue)
  return (group) => (schema && describeGroup(schema, group)) ?? encodeHex(group)
}

function describeGroup(schema: CompiledSchema, group: GroupId): string | undefined {
  const found = rootOfGroup(schema, group)
  return found && groupWords({ schema, ...found, group })
}

function encodeHex(group: GroupId): string {
  return Buffer.from(bytesOfGroup(group)).toString('hex')
}

function parseGroup(hex: string): GroupId {
  if (/^(?:[0-9a-f]{2})+$/.test(hex)) return groupOfBytes(Buffer.from(hex, 'hex'))
  throw new CliError(`--group wants what queue dead list --json gives, not "${hex}"`, exitUsage)
}

function parseIds({ id }: Options): readonly number[] | undefined {
  if (id === undefined) return undefined
  const texts: unknown[] = Array.isArray(id) ? id : [id]
  return texts.map((text) => parseCount('--id', text, 1, Number.MAX_SAFE_INTEGER))
}

function parseLimit(options: Options): number {
  return parseCount('--limit', options['limit'], 1, 1_000)
}
