/** The words of an explanation: faults, operations, facts and lines as a person would say them. */
import { describeBallot } from '../../src/paxos/ballot.ts'
import { asBallot } from '../checkers/trace-fields.ts'
import type { Letters } from './explain-values.ts'
import type { Fault } from '../faults/fault.ts'
import { describeFields, type StoryLine } from '../cluster/narrator.ts'
import { describeAsked, type Operation } from './scenario-operation.ts'

const bodyCharactersTold = 40
const timeWidth = 14
const nameWidth = 4

export function describeTime(micros: number): string {
  return `${(micros / 1_000).toFixed(3)} ms`
}

export function describeFault(fault: Fault): string {
  return `${describeTime(fault.atMicros)}  ${faultWords(fault)}`
}

/** The fault that strikes, without its time. */
export function faultWords({ kind, name, ...others }: Fault): string {
  const words = Object.entries(others)
    .filter(([member]) => member !== 'atMicros')
    .map(([member, value]) => describeMember(member, value))
  const drawnAs = name === undefined ? [] : [`drawn as ${name}`]
  return [kind, ...words, ...drawnAs].join(', ')
}

function describeMember(name: string, value: unknown): string {
  if (name === 'node' || name === 'client') return String(value)
  if (name === 'ways' && Array.isArray(value)) return `ways ${value.map(describeWay).join(' ')}`
  if (name === 'between' || name === 'nodes') return describeWay(value)
  if (name.endsWith('Micros'))
    return `${name.slice(0, -'Micros'.length)} ${describeTime(Number(value))}`
  return `${name} ${JSON.stringify(value)}`
}

function describeWay(way: unknown): string {
  return Array.isArray(way) ? way.join('>') : String(way)
}

export function describeOperation(operation: Operation): string {
  const body = operation.kind === 'put' ? ` = ${shortened(JSON.stringify(operation.body))}` : ''
  const { client, atMicros } = operation
  return `${describeTime(atMicros)}  ${client}  ${describeAsked(operation)}${body}`
}

function shortened(text: string): string {
  if (text.length <= bodyCharactersTold) return text
  return `${text.slice(0, bodyCharactersTold - 1)}…`
}

/** The facts that a checker gives beside its sentence: a line a fact, a line an element of a list. */
export function describeFact(name: string, value: unknown): readonly string[] {
  const ballot = asBallot(value)
  if (ballot !== undefined) return [`${name}: ${describeBallot(ballot)}`]
  if (!Array.isArray(value)) return [`${name}: ${plain(value)}`]
  if (value.every((one) => typeof one === 'string' && !one.includes(' '))) {
    return [`${name}: ${value.length === 0 ? 'none' : value.join(', ')}`]
  }
  return [`${name}:`, ...value.map((one) => `  ${plain(one)}`)]
}

function plain(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // Where the sources lie on this machine explains nothing.
  return text.replaceAll(/file:\/\/\S*?\/(?=(dist\/)?(src|sim)\/)/g, '')
}

export interface Telling {
  readonly letters: Letters
  /** The one position that all lines are about, when there is only one. */
  readonly position: number | undefined
}

/** One line a state change. */
export function describeLine(line: StoryLine, telling: Telling): string {
  return timed(line.timeMicros, line.who, buildSentence(line, telling))
}

/** The words of the world or of a checker, between the lines of the story. */
export function describeAside(timeMicros: number, words: string): string {
  return timed(timeMicros, '***', words)
}

function timed(timeMicros: number, who: string, words: string): string {
  return `${describeTime(timeMicros).padStart(timeWidth)}  ${who.padEnd(nameWidth)} ${words}`
}

function buildSentence({ verb, kind, peer, fields }: StoryLine, telling: Telling): string {
  const words = explainFields(fields, telling)
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

/** Fields that say nothing to a person. */
const fieldsLeftOut: readonly string[] = [
  ...['previous', 'transaction', 'reads', 'request', 'forwardId', 'timestamp'],
]

function explainFields(fields: StoryLine['fields'], { letters, position: only }: Telling): string {
  const { group, position, ballot, value, accepted, entries, verdict, ...others } = fields
  const isPlaced = group !== undefined && typeof position === 'number' && position !== only
  const rest = Object.entries(others).filter(([name]) => !fieldsLeftOut.includes(name))
  const parts = [
    value instanceof Uint8Array ? letters.of(value) : undefined,
    asBallot(ballot) === undefined ? undefined : `at ${ballotText(ballot)}`,
    describeAccepted(accepted, letters),
    describeEntries(entries, letters),
    describeVerdict(verdict),
    isPlaced ? `#${position}` : undefined,
    describeFields(Object.fromEntries(rest)),
  ]
  const words = parts.filter((part) => part !== undefined && part !== '').join(' ')
  return words === '' ? '' : ` ${words}`
}

function ballotText(value: unknown): string {
  const ballot = asBallot(value)
  return ballot === undefined ? '' : describeBallot(ballot)
}

/** The entry that an acceptor says it had accepted, in its promise. */
function describeAccepted(accepted: unknown, letters: Letters): string | undefined {
  if (typeof accepted !== 'object' || accepted === null) return undefined
  if (!('value' in accepted) || !(accepted.value instanceof Uint8Array)) return undefined
  const ballot = 'ballot' in accepted ? ballotText(accepted.ballot) : ''
  return `(had accepted ${letters.of(accepted.value)} at ${ballot})`
}

/** Positions that a peer passes on as committed. */
function describeEntries(entries: unknown, letters: Letters): string | undefined {
  if (!Array.isArray(entries)) return undefined
  const words = entries.flatMap((entry: unknown): readonly string[] => {
    if (typeof entry !== 'object' || entry === null) return []
    if (!('position' in entry && 'value' in entry && 'ballot' in entry)) return []
    const { position, value, ballot } = entry
    if (!(value instanceof Uint8Array)) return []
    return [`${letters.of(value)} at ${ballotText(ballot)} #${String(position)}`]
  })
  return words.length === 0 ? 'none' : words.join(', ')
}

/** The outcome of a write. */
function describeVerdict(verdict: unknown): string | undefined {
  if (typeof verdict !== 'object' || verdict === null || !('kind' in verdict)) return undefined
  const place = 'position' in verdict ? ` at #${String(verdict.position)}` : ''
  return `${String(verdict.kind)}${place}`
}
