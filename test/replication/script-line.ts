/** Messages, records and effects of the core in golden scripts: the words of a line. */
import { unreachable } from '../../src/base/assert.ts'
import { latin1 } from '../../src/base/bytes.ts'
import type { Verdict } from '../../src/group/outcome.ts'
import { decodeTransaction, formatIntent, type Transaction } from '../../src/group/transaction.ts'
import type { LeaseMessage, Renewed, Term } from '../../src/lease/message.ts'
import { describeBallot } from '../../src/paxos/ballot.ts'
import type { RowWritten } from '../../src/replication/apply.ts'
import type { Effect, LogRecord } from '../../src/replication/effect.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import type {
  Accept,
  Accepted,
  Entries,
  Fetch,
  Forward,
  GroupLeaseMessage,
  GroupMessage,
  Highest,
  Promised,
} from '../../src/replication/message.ts'
import type { CoreMessage } from './core-cluster.ts'

/** Numbers of another incarnation begin at another multiple of this. */
const numbersPerLife = 2 ** 32

/** The message by its kind, position and ballot: enough to find its sending. */
export function nameMessage(message: CoreMessage): string {
  const position = 'position' in message ? [`#${message.position}`] : []
  const ballot = 'ballot' in message ? [describeBallot(message.ballot)] : []
  return [message.kind, ...position, ...ballot].join(' ')
}

/** The message with all that a reader wants to know of it. */
export function describeMessage(message: CoreMessage): string {
  return `${nameMessage(message)}${detailOf(message)}`
}

function detailOf(message: CoreMessage): string {
  switch (message.kind) {
    case 'promised':
      return ofPromise(message)
    case 'accept':
      return ofAccept(message)
    case 'accepted':
      return ofHolders(message)
    case 'refused':
      return `, promised ${describeBallot(message.promised)}`
    case 'fetch':
      return ofRange(message)
    case 'entries':
      return ofEntries(message)
    case 'query':
      return ` for round ${roundOf(message.read)}${message.mayRegister ? ', to be registered' : ''}`
    case 'highest':
      return ofHighest(message)
    case 'forward':
      return ofForward(message)
    case 'forward-reply':
      return ` ${describeVerdict(message.verdict)}`
    case 'prepare':
    case 'faulty':
    case 'committed':
      return ''
    default:
      return detailOfLease(message)
  }
}

function detailOfLease(message: GroupLeaseMessage | LeaseMessage): string {
  switch (message.kind) {
    case 'invalidate':
      return ''
    case 'invalidated':
      return ` by incarnation ${message.incarnation}`
    case 'revoke':
    case 'revoked':
      return ` for holder ${message.holder}`
    case 'release':
      return ` of attempts through ${roundOf(message.attempt)}`
    case 'renew':
      return message.term === undefined ? ' (no term yet)' : ` of ${describeTerm(message.term)}`
    case 'renewed':
      return ofRenewed(message)
    case 'hand-back':
      return ` ${describeTerm(message.term)}`
    case 'slow':
      return ` ${message.holder}`
    default:
      return unreachable(message)
  }
}

function ofAccept({ value, previous }: Accept): string {
  const entry = ` ${describeValue(value)}`
  return previous === undefined ? entry : `${entry}, previous ${describeBallot(previous)}`
}

function ofHighest({ read, term }: Highest): string {
  const registered = term === undefined ? '' : `, registered under ${describeTerm(term)}`
  return ` for round ${roundOf(read)}${registered}`
}

function ofRenewed({ term, leaseMs, serial, revoked }: Renewed): string {
  const revoking = revoked.length === 0 ? '' : `, revokes the group with serial ${serial}`
  return ` ${describeTerm(term)} for ${leaseMs} ms${revoking}`
}

function ofPromise({ accepted }: Promised): string {
  if (accepted === undefined) return ', nothing accepted'
  return `, accepted ${describeBallot(accepted.ballot)} ${describeValue(accepted.value)}`
}

function ofHolders({ holders }: Accepted): string {
  if (holders.length === 0) return ''
  return `, holders ${holders.map(({ node, incarnation }) => `${node}.${incarnation}`).join(' ')}`
}

function ofRange({ from, through }: Fetch): string {
  return from === through ? ` #${from}` : ` #${from} to #${through}`
}

function ofEntries({ entries, committed }: Entries): string {
  const told = entries.map(
    ({ position, ballot, value }) =>
      ` #${position} ${describeBallot(ballot)} ${describeValue(value)}`,
  )
  return `${told.length === 0 ? ' none' : told.join()}, committed through #${committed}`
}

function ofForward({ transaction, readPosition, reads, hops }: Forward): string {
  const decoded = decodeTransaction(transaction)
  const what = decoded === undefined ? '?' : describeTransaction(decoded)
  const read = reads.length === 0 ? '' : `, read ${reads.map((key) => latin1(key)).join(' ')}`
  return ` {${what}}${read} at #${readPosition}, hop ${hops}`
}

function roundOf(drawn: number): number {
  return drawn % numbersPerLife
}

function describeTerm({ incarnation, number }: Term): string {
  return `term ${incarnation}.${number}`
}

function describeTransaction(transaction: Transaction): string {
  const writes = transaction.mutations.map(({ key, value }) =>
    value === undefined ? `delete ${latin1(key)}` : `${latin1(key)}=${latin1(value)}`,
  )
  return `${writes.join(' ')} of ${formatIntent(transaction)}.${transaction.attempt}`
}

/** An entry: its transactions in order, and the leader that it names. */
export function describeValue(value: Uint8Array): string {
  const entry = decodeEntry(value)
  if (entry === undefined) return '{?}'
  const { nextLeader, transactions } = entry
  const what =
    transactions.length === 0 ? 'no-op' : transactions.map(describeTransaction).join('; ')
  return `{${what} | next ${nextLeader.node}.${nextLeader.incarnation}}`
}

export function describeVerdict(verdict: Verdict): string {
  if (verdict.kind === 'committed') {
    return `committed at #${verdict.position}, attempt ${verdict.attempt}`
  }
  if (verdict.kind !== 'conflict') return verdict.kind
  const { position, key, by } = verdict
  if (key === undefined || by === undefined) return `conflict, read before #${position}`
  return `conflict, ${latin1(key)} was written at #${position} by ${formatIntent(by)}`
}

export function describeRecord(record: LogRecord): string {
  const { kind, position, ballot } = record
  const name = `${kind} #${position} ${describeBallot(ballot)}`
  if (kind !== 'chosen') return name
  const { value } = record
  return value === undefined
    ? `${name} (along with the next flush)`
    : `${name} ${describeValue(value)}`
}

/**
 * The line for an effect that no other node sees; undefined where other lines tell of it. `nameOf` names the
 * write of a request.
 */
export function describeEffect(
  effect: Effect,
  nameOf: (request: number) => string,
): string | undefined {
  switch (effect.kind) {
    case 'apply':
      return `applies #${effect.position}: ${describeWrites(effect.writes)}`
    case 'verdict':
      return `answers ${nameOf(effect.request)}: ${describeVerdict(effect.verdict)}`
    case 'serve':
      return `serves read ${effect.read} at #${effect.position}`
    case 'deliver':
      return describeDelivered(effect.message)
    case 'send':
    case 'send-accepted':
    case 'persist':
    case 'note':
    case 'wake':
    case 'renew':
    case 'slow':
    case 'send-entries':
      return undefined
    default:
      return unreachable(effect)
  }
}

function describeWrites(writes: readonly RowWritten[]): string {
  if (writes.length === 0) return 'nothing'
  return writes
    .map(({ text, value }) =>
      value === undefined ? `${text} deleted` : `${text}=${latin1(value)}`,
    )
    .join(' ')
}

/** Of what a node tells itself, that which other nodes hear with it. */
function describeDelivered(message: GroupMessage): string | undefined {
  const isOfLease = message.kind === 'revoke' || message.kind === 'revoked'
  return isOfLease ? `tells itself ${describeMessage(message)}` : undefined
}
