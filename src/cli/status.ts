/**
 * `trilithon status`: asks one node for the cluster it belongs to, then every node for itself. Ends
 * with 0 when a majority is ready, 4 when not.
 */
import type { Command } from 'commander'
import { causeOfError, causeOfStatus } from '../adapters/link-causes.ts'
import { exitUnavailable, CliError } from './exit.ts'
import { byteText, duration, print, printJson, say, styledData, table } from './output.ts'
import { addUrlFlag, parseUrls } from './url-flags.ts'
import { isVoter } from '../node/status-nodes.ts'
import type { Options } from './options.ts'

export function addStatusCommand(program: Command): void {
  addUrlFlag(program.command('status'))
    .description('show the nodes of a cluster, what is wrong, and what to do')
    .option('--json', 'as JSON')
    .action(showStatus)
}

type SeenNode = Pick<Asked, 'id' | 'url' | 'isJoining' | 'isReader'>

/** The members read from a node's `/status`; all others go through as they are. */
interface NodeReport {
  readonly node: string
  readonly cluster: string
  /** The name of its replica set; absent of a gateway. */
  readonly set?: string
  readonly state: string
  readonly ready: boolean
  readonly version: string
  readonly uptimeSeconds: number
  readonly nodes: readonly SeenNode[]
  /** Bytes; absent until they were measured, and of a gateway. */
  readonly disk?: { readonly logBytes: number; readonly dataBytes: number }
  /** Absent of a gateway, and while the stores are being opened. */
  readonly replica?: {
    readonly firstFlush?: number
    readonly scrubbedPart?: number
    readonly scrubPasses?: number
    readonly logScrubbedPart?: number
    readonly rowScrubPasses?: number
    /** Absent of an earlier version. */
    readonly erase?: { readonly requests?: unknown; readonly isBehind?: unknown }
  }
  readonly messages: readonly string[]
}

/** The answer of one node. */
export interface Asked {
  readonly id: string
  readonly url: string
  /** It is being added: no majority is of it yet. Absent: it is not. */
  readonly isJoining?: true
  /** It is a read-only member: no majority is of it. Absent: it is not. */
  readonly isReader?: true
  /** Absent: it did not answer. */
  readonly report: NodeReport | undefined
  /** Why it did not. */
  readonly why?: string
}

const askTimeoutMs = 3000

/** Every node of the cluster that one of the addresses leads to. Throws where none answers. */
export async function askNodes(
  options: Options,
): Promise<{ readonly cluster: string; readonly nodes: readonly Asked[] }> {
  const urls = parseUrls(options)
  const answers = await Promise.all(urls.map(ask))
  const first = answers.find(({ report }) => report !== undefined)?.report
  if (first === undefined) {
    const why = urls.map((url, place) => `${url}: ${answers[place]?.why ?? 'no answer'}`).join('; ')
    throw new CliError(`no node answers: ${why} (--url names another)`, exitUnavailable)
  }
  const nodes = await Promise.all(
    first.nodes.map(async ({ id, url, isJoining, isReader }): Promise<Asked> => {
      const kind = { ...(isJoining && { isJoining }), ...(isReader && { isReader }) }
      return { id, url, ...kind, ...(await ask(url)) }
    }),
  )
  return { cluster: first.cluster, nodes }
}

async function showStatus(options: Options): Promise<void> {
  const { cluster, nodes: asked } = await askNodes(options)
  const voters = asked.filter(isVoter)
  const ready = voters.filter(({ report }) => report?.ready === true).length
  const majority = Math.floor(voters.length / 2) + 1
  const spare = ready - majority
  if (options['json'] === true) {
    printJson({ cluster, ready, canLose: Math.max(-1, spare), nodes: asked })
  } else {
    show(cluster, asked, spare)
  }
  if (spare < 0) {
    throw new CliError(
      `${ready} of ${voters.length} nodes are ready; ${majority} are needed`,
      exitUnavailable,
    )
  }
}

function show(cluster: string, asked: readonly Asked[], spare: number): void {
  const verdict = spare < 0 ? 'has no majority' : `can lose ${spare} more ${nodesWord(spare)}`
  print(styledData('bold', `cluster ${cluster} ${verdict}`))
  const head = ['node', 'state', 'up for', 'version', 'log', 'data', 'scrubbed', 'url']
  const rows = asked.map(({ id, url, isReader, report }) => {
    if (report === undefined) return [id, 'no answer', '', '', '', '', '', url]
    const { state, ready: isReady, uptimeSeconds, version, disk, replica } = report
    const upFor = duration(uptimeSeconds * 1000)
    const { firstFlush = 1 } = replica ?? {}
    const from = firstFlush > 1 ? ` from flush ${firstFlush}` : ''
    const bytes = [`${sizeText(disk?.logBytes)}${from}`, sizeText(disk?.dataBytes)]
    const ready = isReader ? 'read-only' : 'ready'
    return [id, isReady ? ready : state, upFor, version, ...bytes, scrubText(replica), url]
  })
  print(table([head, ...rows]))
  for (const { id, report, why } of asked) {
    if (why !== undefined) say(`${id}: ${why}`)
    for (const message of report?.messages ?? []) say(`${id}: ${message}`)
  }
}

function sizeText(bytes: number | undefined): string {
  return bytes === undefined ? '-' : byteText(bytes)
}

/**
 * How far the check of `data/` has come, that it went through before, and how far the check of `log/` is, which
 * comes after it, and how often the rows of all groups were counted: `40 %`, `40 %, 2 passes, log 100 %, rows 1 pass`.
 */
export function scrubText(replica: NodeReport['replica']): string {
  const { scrubbedPart, scrubPasses = 0, logScrubbedPart = 0, rowScrubPasses = 0 } = replica ?? {}
  // Of an earlier version, or of a gateway.
  if (typeof scrubbedPart !== 'number') return '-'
  const part = `${Math.floor(100 * scrubbedPart)} %`
  const rows = rowScrubPasses > 0 ? `, rows ${passesText(rowScrubPasses)}` : ''
  if (scrubPasses === 0) return `${part}${rows}`
  const log = logScrubbedPart > 0 ? `, log ${Math.floor(100 * logScrubbedPart)} %` : ''
  return `${part}, ${passesText(scrubPasses)}${log}${rows}`
}

function passesText(passes: number): string {
  return `${passes} ${passes === 1 ? 'pass' : 'passes'}`
}

function nodesWord(count: number): string {
  return count === 1 ? 'node' : 'nodes'
}

/** A node's report, or why it gives none. */
async function ask(url: string): Promise<Pick<Asked, 'report' | 'why'>> {
  try {
    const response = await fetch(`${url}/status`, { signal: AbortSignal.timeout(askTimeoutMs) })
    const found: unknown = await response.json().catch(() => undefined)
    if (isReport(found)) return { report: found }
    const { reason } = causeOfStatus(response.status, false, url)
    return { report: undefined, why: reason }
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError'
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : undefined
    const why = cause === undefined ? String(error) : causeOfError(cause, url).reason
    return { report: undefined, why: isLate ? 'no answer in time' : why }
  }
}

function isReport(value: unknown): value is NodeReport {
  if (typeof value !== 'object' || value === null) return false
  const hasNames = 'node' in value && 'cluster' in value && 'state' in value && 'version' in value
  const hasFigures = 'ready' in value && 'uptimeSeconds' in value
  const hasLists = 'nodes' in value && Array.isArray(value.nodes) && 'messages' in value
  return hasNames && hasFigures && hasLists && (!('disk' in value) || isDisk(value.disk))
}

function isDisk(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { logBytes, dataBytes }: { logBytes?: unknown; dataBytes?: unknown } = value
  return typeof logBytes === 'number' && typeof dataBytes === 'number'
}
