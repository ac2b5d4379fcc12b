/** Tells a run in lines that a person can read: one a message, a durable record, a trace event. */
import { crc32 } from '../src/base/bytes.ts'
import { describeBallot, type Ballot } from '../src/paxos/ballot.ts'
import type { TraceEvent } from '../src/ports/trace.ts'
import type { LogRecord } from '../src/replication/effect.ts'
import type { Message, PeerFrame } from '../src/replication/message.ts'

export class Narrator {
  readonly #now: () => number
  readonly #write: (line: string) => void

  constructor(now: () => number, write: (line: string) => void) {
    this.#now = now
    this.#write = write
  }

  sent(from: string, to: string, frame: PeerFrame): void {
    for (const message of frame.messages) this.#line(from, `-> ${to}`, describeMessage(message))
  }

  delivered(from: string, to: string, frame: PeerFrame): void {
    for (const message of frame.messages) this.#line(to, `<- ${from}`, describeMessage(message))
  }

  durable(node: string, record: LogRecord): void {
    const { kind, group, position, ballot } = record
    const value = record.kind === 'promise' ? undefined : record.value
    this.#line(
      node,
      'disk',
      `${kind} ${placeOf(group, position)} ${ballotOf(ballot)}${valueOf(value)}`,
    )
  }

  event(node: string, { kind, ...fields }: TraceEvent): void {
    const words = Object.entries(fields).map(
      ([name, value]) => `${name}=${describeField(name, value)}`,
    )
    this.#line(node, 'does', `${kind} ${words.join(' ')}`)
  }

  note(who: string, what: string): void {
    this.#line(who, 'note', what)
  }

  #line(who: string, verb: string, what: string): void {
    const seconds = (this.#now() / 1_000_000).toFixed(6).padStart(12)
    this.#write(`${seconds} ${who.padEnd(4)} ${verb.padEnd(6)} ${what}`)
  }
}

function describeMessage(message: Message): string {
  const { kind } = message
  switch (message.kind) {
    case 'promised': {
      const { accepted } = message
      const had = accepted && ` had ${describeBallot(accepted.ballot)}${valueOf(accepted.value)}`
      return `${kind} ${placeOf(message.group, message.position)} ${ballotOf(message.ballot)}${had ?? ''}`
    }
    case 'accept':
      return `${kind} ${placeOf(message.group, message.position)} ${ballotOf(message.ballot)}${valueOf(message.value)}`
    case 'refused':
      return `${kind} ${placeOf(message.group, message.position)} ${ballotOf(message.ballot)} promised ${ballotOf(message.promised)}`
    case 'prepare':
    case 'accepted':
    case 'faulty':
    case 'committed':
      return `${kind} ${placeOf(message.group, message.position)} ${ballotOf(message.ballot)}`
    case 'fetch':
      return `${kind} ${placeOf(message.group, message.from)} to ${message.through}`
    case 'entries':
      return `${kind} ${placeOf(message.group, message.from)} ${message.entries.length} of them, committed ${message.committed}`
    case 'query':
    case 'highest':
      return `${kind} ${groupOf(message.group)} read ${message.read}${message.kind === 'highest' ? ` is ${message.position}` : ''}`
    case 'forward':
      return `${kind} ${groupOf(message.group)} request ${message.request} read at ${message.readPosition}`
    case 'forward-reply':
      return `${kind} ${groupOf(message.group)} request ${message.request} ${message.verdict.kind}`
    case 'digest-request':
      return `${kind} after ${message.after}`
    case 'digest':
      return `${kind} after ${message.after} through ${message.through}, ${message.groups.length} groups`
    default:
      return kind
  }
}

function describeField(name: string, value: unknown): string {
  if (name === 'group' && typeof value === 'string') return groupOf(value)
  if (value instanceof Uint8Array) return `${value.length} bytes${valueOf(value)}`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The end of its key tells groups of one run apart. */
function groupOf(group: string): string {
  return Buffer.from(group, 'latin1').toString('hex').slice(-8)
}

function placeOf(group: string, position: number): string {
  return `${groupOf(group)}#${position}`
}

function ballotOf(ballot: Ballot): string {
  return `at ${describeBallot(ballot)}`
}

/** Equal values have equal marks. */
function valueOf(value: Uint8Array | undefined): string {
  return value === undefined ? '' : ` value ${crc32(value).toString(16)}`
}
