/** `trilithon erase status`: which deletions still stand in files, at which node, where and why. */
import type { Command } from 'commander'
import { formatIso } from '../base/datetime.ts'
import { CliError, exitFailure, exitUnavailable } from './exit.ts'
import type { Options } from './options.ts'
import { print, printJson, say, table } from './output.ts'
import { askNodes, type Asked } from './status.ts'
import { addUrlFlag } from './url-flags.ts'

export function addEraseCommand(program: Command): void {
  const erase = program
    .command('erase')
    .description('the bytes of what was deleted: whether they have left the files of all nodes')
  addUrlFlag(erase.command('status'))
    .description(
      'the deletions that still stand in files: at which node, where, why, and until when',
    )
    .option('--json', 'as JSON')
    .action(showErase)
}

/** A round of deletions at one node, as its `/status` has it. Moments are milliseconds since 1970. */
interface Request {
  readonly round: number
  readonly stage: string
  readonly since: number
  readonly deadline: number
  readonly groups?: number
  readonly why: readonly string[]
}

interface NodeErase {
  readonly id: string
  readonly requests: readonly Request[]
  /** Why the node is not known to be done, though it names no round. */
  readonly unknown?: string
}

const microsPerMs = 1_000

async function showErase(options: Options): Promise<void> {
  const { nodes } = await askNodes(options)
  const found = nodes.map(eraseOf)
  const pending = found.reduce((sum, { requests }) => sum + requests.length, 0)
  const silent = found.filter(({ unknown }) => unknown !== undefined)
  const nowMs = Date.now()
  if (options['json'] === true) {
    const isDone = pending === 0 && silent.length === 0
    printJson({
      done: isDone,
      nodes: found.map((one) => ({ ...one, requests: one.requests.map(dated) })),
    })
  } else show(found, nowMs)
  if (silent.length > 0) {
    const names = silent.map(({ id }) => id).join(', ')
    throw new CliError(`what stands in the files of ${names} is not known`, exitUnavailable)
  }
  const late = found.flatMap(({ requests }) => requests).filter(({ deadline }) => deadline < nowMs)
  if (late.length > 0) {
    throw new CliError(`${late.length} rounds are behind their deadline`, exitFailure)
  }
}

function show(found: readonly NodeErase[], nowMs: number): void {
  const rows = found.flatMap(({ id, requests }) =>
    requests.map(({ round, stage, since, deadline, groups = 'all', why }) => {
      const isLate = deadline < nowMs
      const until = `${momentText(deadline)}${isLate ? ' (late)' : ''}`
      return [id, String(round), String(groups), stage, momentText(since), until, why.join('; ')]
    }),
  )
  if (rows.length > 0) {
    print(table([['node', 'round', 'groups', 'in', 'since', 'until', 'why'], ...rows]))
  } else if (found.every(({ unknown }) => unknown === undefined)) {
    print('nothing that was deleted is left in the files of any node')
  }
  for (const { id, unknown } of found) if (unknown !== undefined) say(`${id}: ${unknown}`)
}

function dated({ since, deadline, ...request }: Request): object {
  return { ...request, since: momentText(since), deadline: momentText(deadline) }
}

function momentText(ms: number): string {
  return formatIso(ms * microsPerMs)
}

function eraseOf({ id, report, why = 'it tells nothing of it' }: Asked): NodeErase {
  const { requests, isBehind } = report?.replica?.erase ?? {}
  if (report === undefined) return { id, requests: [], unknown: why }
  if (!Array.isArray(requests) || !requests.every(isRequest)) {
    return {
      id,
      requests: [],
      unknown: 'it is of an earlier version, or its stores are being opened',
    }
  }
  const unknown = 'it has started, and has not yet taken in all that its peers wrote meanwhile'
  return { id, requests, ...(isBehind === true && { unknown }) }
}

function isRequest(value: unknown): value is Request {
  if (typeof value !== 'object' || value === null) return false
  const { round, stage, since, deadline, why }: Partial<Record<keyof Request, unknown>> = value
  const areNumbers = [round, since, deadline].every((one) => typeof one === 'number')
  return areNumbers && typeof stage === 'string' && Array.isArray(why)
}
