/**
 * Tells a run in lines: one line for each message sent or delivered, durable record or trace event.
 * A line is data first, so that an explanation can choose among lines, and text for a reader of all
 * of them.
 */
import { crc32 } from '../../src/base/bytes.ts'
import { describeBallot } from '../../src/paxos/ballot.ts'
import type { TraceEvent } from '../../src/ports/trace.ts'
import type { FlushRecord } from '../../src/log/flush.ts'
import type { Message, PeerFrame } from '../../src/replication/message.ts'
import { asBallot } from '../checkers/trace-fields.ts'

export type Verb = 'sends' | 'gets' | 'disk' | 'does' | 'note'

export interface StoryLine {
  readonly timeMicros: number
  readonly who: string
  readonly verb: Verb
  /** The other end of a message. */
  readonly peer?: string
  /** Of the message, record or event; of a note, its text. */
  readonly kind: string
  /** As it was sent, written or traced. */
  readonly fields: Readonly<Record<string, unknown>>
}

export class Narrator {
  readonly #now: () => number
  readonly #write: (line: StoryLine) => void

  constructor(now: () => number, write: (line: StoryLine) => void) {
    this.#now = now
    this.#write = write
  }

  sent(from: string, to: string, frame: PeerFrame): void {
    for (const message of frame.messages) this.#message(from, 'sends', to, message)
  }

  delivered(from: string, to: string, frame: PeerFrame): void {
    for (const message of frame.messages) this.#message(to, 'gets', from, message)
  }

  durable(node: string, { kind, ...fields }: FlushRecord): void {
    this.#write({ timeMicros: this.#now(), who: node, verb: 'disk', kind, fields })
  }

  /** Rows of a group, as of a position, are on the node's data disk. */
  rows(node: string, group: string, position: number): void {
    const fields = { group, position }
    this.#write({ timeMicros: this.#now(), who: node, verb: 'disk', kind: 'rows', fields })
  }

  event(node: string, { kind, ...fields }: TraceEvent): void {
    this.#write({ timeMicros: this.#now(), who: node, verb: 'does', kind, fields })
  }

  note(who: string, what: string): void {
    this.#write({ timeMicros: this.#now(), who, verb: 'note', kind: what, fields: {} })
  }

  #message(who: string, verb: Verb, peer: string, { kind, ...fields }: Message): void {
    this.#write({ timeMicros: this.#now(), who, verb, peer, kind, fields })
  }
}

/** The line as text. */
export function renderLine({ timeMicros, who, verb, peer, kind, fields }: StoryLine): string {
  const seconds = (timeMicros / 1_000_000).toFixed(6).padStart(12)
  const arrow = verb === 'sends' ? `-> ${peer}` : verb === 'gets' ? `<- ${peer}` : verb
  return `${seconds} ${who.padEnd(4)} ${arrow.padEnd(6)} ${kind} ${describeFields(fields)}`.trimEnd()
}

/** The epoch is the same throughout; positions appear beside their group. */
const fieldsLeftOut: readonly string[] = ['group', 'position', 'epoch']

export function describeFields(fields: Readonly<Record<string, unknown>>): string {
  const { group, position } = fields
  const place = typeof group === 'string' ? [describePlace(group, position)] : []
  const words = Object.entries(fields)
    .filter(([name, value]) => !fieldsLeftOut.includes(name) && value !== undefined)
    .map(([name, value]) => `${name}=${describeValue(value)}`)
  return [...place, ...words].join(' ')
}

function describeValue(value: unknown): string {
  if (value instanceof Uint8Array) return digestValue(value)
  if (Array.isArray(value)) return `[${value.length}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const ballot = asBallot(value)
  if (ballot !== undefined) return describeBallot(ballot)
  const words = Object.entries(value).map(([name, inner]) => `${name}=${describeValue(inner)}`)
  return `{${words.join(' ')}}`
}

/** The end of its key tells groups of one run apart. */
function describePlace(group: string, position: unknown): string {
  const name = Buffer.from(group, 'latin1').toString('hex').slice(-8)
  return typeof position === 'number' ? `${name}#${position}` : name
}

/** Equal values have equal marks. */
export function digestValue(value: Uint8Array): string {
  return `${crc32(value).toString(16)}/${value.length}`
}
