/** The words of an explanation: rules, faults, operations and lines as a person would say them. */
import { describeBallot } from '../src/paxos/ballot.ts'
import { decodeEntry } from '../src/replication/entry.ts'
import { asBallot } from './checkers/trace-fields.ts'
import type { Fault } from './fault.ts'
import { describeFields, markOf, type StoryLine } from './narrator.ts'
import type { Operation } from './scenario-operation.ts'

/** What each rule says, for those who do not know them by number. */
const rules: Readonly<Record<string, string>> = {
  'PAX-1': 'At most one value is ever chosen at a position, and it never changes.',
  'PAX-2': 'A promise, as the disk holds it, never goes back.',
  'PAX-3': 'A ballot is accepted only at or above the promise.',
  'PAX-4': 'What an answer claims is durable before the answer leaves.',
  'PAX-5': 'One ballot, one value; after phase 1 the value accepted at the highest ballot.',
  'PAX-6': 'Ballot zero belongs to the leader that the chosen entry before names.',
  'PAX-7': 'Quorums are majorities of the voters.',
  'LOG-1': 'A position is applied after all before it, and what is applied was chosen.',
  'LOG-2': 'The same applied position means the same rows and state, byte for byte.',
  'LOG-3': 'An intent is in effect at most once.',
  'LOG-4': 'An acknowledged commit is chosen, and stays.',
  'LOG-5': 'A no-op stands only where nothing was or can be chosen.',
  'LOG-6': 'The applied position and the rows are written in one batch.',
  'LEASE-3': 'A current read sees every commit acknowledged before it began.',
  'LEASE-4': 'A read shows one state, whole.',
  'MVCC-2': 'Timestamps rise strictly with the position.',
  'CELL-1': 'A cell never changes, and none is shown that nobody wrote.',
  'CELL-2': 'Newest is the highest ref key, on every path.',
  'CELL-3': 'Added ids are dense, and rise in the order in which cells can be seen.',
  'LIVE-1': 'In a healed world everything that was begun comes to an end.',
  'LIVE-2': 'In a healed world every replica can be read.',
  'LIVE-3': 'In a healed world no replica stays behind.',
  'LIVE-4': 'In a healed world no hole is left open.',
  'LIVE-5': 'Messages are bounded: there is no storm.',
  'META-3': 'Nothing fails that nobody expects.',
}

export function describeRule(rule: string): string {
  return rules[rule] ?? 'See the list of rules.'
}

export function describeTime(micros: number): string {
  return `${(micros / 1_000).toFixed(3)} ms`
}

export function describeFault(fault: Fault): string {
  const { kind, atMicros, ...others } = fault
  const words = Object.entries(others).map(([name, value]) => describeMember(name, value))
  return `${describeTime(atMicros)}  ${[kind, ...words].join(', ')}`
}

function describeMember(name: string, value: unknown): string {
  if (name === 'node' || name === 'client') return String(value)
  if (name === 'ways' && Array.isArray(value)) return `ways ${value.map(describeWay).join(' ')}`
  if (name === 'between') return describeWay(value)
  if (name.endsWith('Micros'))
    return `${name.slice(0, -'Micros'.length)} ${describeTime(Number(value))}`
  return `${name} ${JSON.stringify(value)}`
}

function describeWay(way: unknown): string {
  return Array.isArray(way) ? way.join('>') : String(way)
}

export function describeOperation(operation: Operation): string {
  const { kind, client, atMicros, ...others } = operation
  const words = Object.entries(others).map(([name, value]) => `${name} ${shortened(value)}`)
  return `${describeTime(atMicros)}  ${client}  ${kind} ${words.join(', ')}`
}

function shortened(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > 40 ? `${text.slice(0, 37)}…` : text
}

/** Values of entries by letters, in the order in which they appear. */
export class Letters {
  readonly #letterByMark = new Map<string, string>()
  readonly #bytesByLetter = new Map<string, Uint8Array>()

  of(value: Uint8Array): string {
    const mark = markOf(value)
    const known = this.#letterByMark.get(mark)
    if (known !== undefined) return known
    const count = this.#letterByMark.size
    const round = Math.floor(count / 26)
    const letter = `${String.fromCharCode(65 + (count % 26))}${round === 0 ? '' : round}`
    this.#letterByMark.set(mark, letter)
    this.#bytesByLetter.set(letter, value)
    return letter
  }

  /** What each letter stands for. */
  legend(): readonly string[] {
    return [...this.#bytesByLetter].map(([letter, bytes]) => `${letter}  ${describeEntry(bytes)}`)
  }
}

function describeEntry(bytes: Uint8Array): string {
  const entry = decodeEntry(bytes)
  if (entry === undefined) return `${bytes.length} bytes that are no entry`
  const { position, nextLeader, transactions } = entry
  const next = `then ${nextLeader.node} leads, in incarnation ${nextLeader.incarnation}`
  if (transactions.length === 0) return `a no-op for position ${position}; ${next}`
  const intents = transactions.map(({ session, sequence }) => `${session.slice(0, 16)}/${sequence}`)
  return `for position ${position}: ${intents.slice(0, 4).join(', ')}; ${next}`
}

/** One line a state change. */
export function describeLine(line: StoryLine, letters: Letters): string {
  const { timeMicros, who } = line
  return `${describeTime(timeMicros).padStart(14)}  ${who.padEnd(4)} ${sentenceOf(line, letters)}`
}

function sentenceOf({ verb, kind, peer, fields }: StoryLine, letters: Letters): string {
  const words = wordsOf(fields, letters)
  switch (verb) {
    case 'note':
      return kind
    case 'gets':
    case 'sends':
      return `${verb === 'gets' ? 'hears from' : 'tells'} ${peer}: ${kind}${words}`
    case 'disk':
      return `has on its disk: ${kind}${words}`
    case 'does':
      return `${verbs[kind] ?? kind}${words}`
    default:
      return verb satisfies never
  }
}

const verbs: Readonly<Record<string, string>> = {
  propose: 'proposes',
  promise: 'promises',
  accept: 'accepts',
  chosen: 'takes for chosen',
  apply: 'applies',
  serve: 'serves a read',
  settled: 'tells who asked',
}

function wordsOf(fields: StoryLine['fields'], letters: Letters): string {
  const { group, position, epoch, ballot, value, accepted, ...others } = fields
  const isPlaced = group !== undefined && typeof position === 'number'
  const parts = [
    value instanceof Uint8Array ? letters.of(value) : undefined,
    asBallot(ballot) === undefined ? undefined : `at ${ballotText(ballot)}`,
    describeAccepted(accepted, letters),
    isPlaced ? `#${position}` : undefined,
    describeFields({ ...others, ...(epoch === undefined ? {} : {}) }),
  ]
  const words = parts.filter((part) => part !== undefined && part !== '').join(' ')
  return words === '' ? '' : ` ${words}`
}

function ballotText(value: unknown): string {
  const ballot = asBallot(value)
  return ballot === undefined ? '' : describeBallot(ballot)
}

/** What an acceptor says it had accepted, in its promise. */
function describeAccepted(accepted: unknown, letters: Letters): string | undefined {
  if (typeof accepted !== 'object' || accepted === null) return undefined
  if (!('value' in accepted) || !(accepted.value instanceof Uint8Array)) return undefined
  const ballot = 'ballot' in accepted ? ballotText(accepted.ballot) : ''
  return `(had accepted ${letters.of(accepted.value)} at ${ballot})`
}
