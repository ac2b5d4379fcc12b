/** A path in lines that a person can read: what happens to whom, and what that node does then. */
import { latin1 } from '../../src/base/bytes.ts'
import type { SharesRow } from '../../src/placement/shares.ts'
import { describeBallot } from '../../src/paxos/ballot.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import type { LogRecord } from '../../src/replication/effect.ts'
import type { Model } from './model.ts'
import { nodeAction, type NodeAction, type SentMessage } from './node-action.ts'
import { unpackAction, type ActionCode } from './state-vector.ts'
import type { Observation } from './observation.ts'
import { describeSubmission } from './scopes.ts'

/** One line an action. */
export function narrate(model: Model, path: readonly ActionCode[]): readonly string[] {
  const lines: string[] = []
  let vector = model.initial
  for (const [at, code] of path.entries()) {
    const { node } = unpackAction(code)
    const { before, outcome } = model.happening(vector, code)
    const what = [
      describeAction(model, nodeAction(model, code)),
      ...recordsGiven(before.pending, outcome.next.pending).map((one) => `queues ${one}`),
      ...outcome.observations.flatMap(describeObservation),
      ...outcome.sent.map(({ to, message }) => `-> ${to} ${describeMessage(message)}`),
    ]
    const name = model.setting.names[node] ?? '?'
    lines.push(`${String(at + 1).padStart(3)} ${name}  ${what.join('; ')}`)
    vector = model.successor(vector, code).vector
  }
  return lines
}

function describeAction(model: Model, action: NodeAction): string {
  switch (action.kind) {
    case 'deliver':
      return `<- ${action.from} ${describeMessage(action.message)}`
    case 'flush':
      return 'its disk has written what was queued first'
    case 'timer':
      return `the ${action.timer} deadline comes`
    case 'crash':
      return (
        `crashes and restarts: ${action.writes} queued writes survive, ` +
        `and state record ${action.state}`
      )
    case 'lose':
      return (
        `crashes: ${action.writes} queued writes survive; its log has given up what state record ` +
        `${action.state} holds, and its data store is lost`
      )
    case 'restore':
      return `is restored, since state record ${action.state} is durable`
    case 'submit':
      return `a client submits ${describeSubmission(model.setting.scope, action.submission)}`
    case 'read':
      return `a client begins read ${action.read}`
    case 'snapshot':
      return `sends ${action.peer} a snapshot of state record ${action.state}, and forgets its log up to there`
    case 'hear':
      return 'hears that the voters change, and grants no lease any more'
    case 'seal':
      return 'seals the first epoch'
    default:
      return describeSetAction(action)
  }
}

/** Of leases, and of the row of the buckets. */
function describeSetAction(
  action: NodeAction & { readonly kind: 'learn' | 'tell' | 'renew' | 'lapse' | 'expire' },
): string {
  switch (action.kind) {
    case 'learn':
      return `applies the row of the buckets: ${describeRow(action.row)}`
    case 'tell':
      return 'is to tell which groups may have begun'
    case 'renew':
      return `it is time to renew the lease of ${action.peer}`
    case 'lapse':
      return `a tick passes for the lease that ${action.peer} has granted`
    case 'expire':
      return `a tick passes for the lease granted to ${action.peer}`
  }
}

function describeRow(row: SharesRow): string {
  return row
    .map(({ phase, began, told = [] }) => {
      return `${phase}, ${began.length} listed${told.length > 0 ? ` by ${told.join(' ')}` : ''}`
    })
    .join('; ')
}

interface Queued {
  readonly records: readonly LogRecord[]
}

/** The records that this step gave to the log and that are not durable yet. */
function recordsGiven(before: readonly Queued[], after: readonly Queued[]): readonly string[] {
  const known = new Set(before.flatMap((write) => write.records))
  const given = after.flatMap((write) => write.records).filter((record) => !known.has(record))
  return given.map(({ kind, position, ballot }) => `${kind} #${position} ${describeBallot(ballot)}`)
}

function describeObservation(seen: Observation): readonly string[] {
  switch (seen.kind) {
    case 'accepted': {
      const { position, ballot, value } = seen
      return [`durable: accepted #${position} ${describeBallot(ballot)} ${describeValue(value)}`]
    }
    case 'applied':
      return [`applies #${seen.position} ${describeValue(seen.value)}`]
    case 'verdict':
      return [`answers submission ${seen.request}: ${seen.verdict.kind}`]
    case 'row':
      return [`the row of the buckets: ${describeRow(seen.row)}`]
    case 'served':
      return [`serves read ${seen.read} at #${seen.position}`]
    default:
      return []
  }
}

export function describeMessage(message: SentMessage): string {
  const position = 'position' in message ? ` #${message.position}` : ''
  if (message.kind === 'digest') return `digest through #${message.through}`
  if (message.kind === 'sealed') {
    const open = message.open.map((one) => `#${one.position} ${describeBallot(one.ballot)}`)
    return `sealed through #${message.applied} (accepted above: ${open.join(', ') || 'nothing'})`
  }
  const ballot = 'ballot' in message ? ` ${describeBallot(message.ballot)}` : ''
  return `${message.kind}${position}${ballot}${describeDetail(message)}`
}

function describeDetail(message: SentMessage): string {
  switch (message.kind) {
    case 'accept':
      return ` ${describeValue(message.value)}`
    case 'promised': {
      const { accepted } = message
      if (accepted === undefined) return ' (nothing accepted)'
      return ` (accepted ${describeBallot(accepted.ballot)} ${describeValue(accepted.value)})`
    }
    case 'refused':
      return ` (promised ${describeBallot(message.promised)})`
    case 'entries':
      return ` [${message.entries.map((one) => `#${one.position} ${describeValue(one.value)}`).join(' ')}]`
    case 'fetch':
      return ` ${message.from}..${message.through}`
    case 'accepted':
      return message.holders.length === 0
        ? ''
        : ` (holders ${message.holders.map(({ node }) => node).join(' ')})`
    case 'highest': {
      const term = message.term === undefined ? '' : ` (term ${message.term.number})`
      return `${term} of ${message.read}`
    }
    case 'query':
      return ` ${message.read}`
    case 'renew':
      return ` (done ${message.serial})`
    case 'renewed':
      return ` (term ${message.term.number}, ${message.revoked.length} revoked)`
    case 'forward-reply':
      return ` ${message.verdict.kind}`
    default:
      return ''
  }
}

/** The keys that an entry writes, its maker, and the maker's clock reading. */
function describeValue(value: Uint8Array): string {
  const entry = decodeEntry(value)
  if (entry === undefined) return '?'
  const { nextLeader, timestamp, transactions } = entry
  const keys = transactions.flatMap((one) => one.mutations.map(({ key }) => latin1(key)))
  const what = keys.length === 0 ? 'no-op' : keys.join('+')
  return `{${what} by ${nextLeader.node}.${nextLeader.incarnation} t${timestamp}}`
}
