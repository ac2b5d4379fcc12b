/** Tells a run in lines that a person can read: one a message, a durable record, a trace event. */
import { crc32 } from '../src/base/bytes.ts'
import { describeBallot } from '../src/paxos/ballot.ts'
import type { TraceEvent } from '../src/ports/trace.ts'
import type { LogRecord } from '../src/replication/effect.ts'
import type { Message, PeerFrame } from '../src/replication/message.ts'
import { asBallot } from './checkers/trace-fields.ts'

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

  durable(node: string, { kind, ...fields }: LogRecord): void {
    this.#line(node, 'disk', `${kind} ${describeFields(fields)}`)
  }

  event(node: string, { kind, ...fields }: TraceEvent): void {
    this.#line(node, 'does', `${kind} ${describeFields(fields)}`)
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
  const { kind, ...fields } = message
  return `${kind} ${describeFields(fields)}`
}

/** The epoch is the same throughout; positions are told along with their group. */
const fieldsLeftOut: readonly string[] = ['group', 'position', 'epoch']

function describeFields(fields: Readonly<Record<string, unknown>>): string {
  const { group, position } = fields
  const place = typeof group === 'string' ? [placeOf(group, position)] : []
  const words = Object.entries(fields)
    .filter(([name, value]) => !fieldsLeftOut.includes(name) && value !== undefined)
    .map(([name, value]) => `${name}=${describeValue(value)}`)
  return [...place, ...words].join(' ')
}

function describeValue(value: unknown): string {
  if (value instanceof Uint8Array) return markOf(value)
  if (Array.isArray(value)) return `[${value.length}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const ballot = asBallot(value)
  if (ballot !== undefined) return describeBallot(ballot)
  const words = Object.entries(value).map(([name, inner]) => `${name}=${describeValue(inner)}`)
  return `{${words.join(' ')}}`
}

/** The end of its key tells groups of one run apart. */
function placeOf(group: string, position: unknown): string {
  const name = Buffer.from(group, 'latin1').toString('hex').slice(-8)
  return typeof position === 'number' ? `${name}#${position}` : name
}

/** Equal values have equal marks. */
function markOf(value: Uint8Array): string {
  return `${crc32(value).toString(16)}/${value.length}`
}
