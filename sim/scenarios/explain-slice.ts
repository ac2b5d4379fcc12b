/**
 * The causal slice of a failure: of a run's whole story, the lines that led to it. The search
 * starts at the end. It takes a node's actions and received messages about the position, then the
 * senders' lines, back to the beginning.
 */
import { decodeEntry } from '../../src/replication/entry.ts'
import type { StoryLine } from '../cluster/narrator.ts'

/** Where a failure is: a group (latin1), and the positions concerned, when they are known. */
export interface Place {
  readonly group: string
  readonly positions: readonly number[]
}

/** Lines of reads and of writes on their way, which concern a group and no one position. */
const callKinds: readonly string[] = [
  ...['query', 'highest', 'serve', 'forward', 'forward-reply', 'settled'],
]

export interface SliceOptions {
  readonly place: Place
  /** Whether what clients' calls led to belongs to it. */
  readonly withCalls: boolean
}

export function sliceStory(
  lines: readonly StoryLine[],
  { place, withCalls }: SliceOptions,
): readonly StoryLine[] {
  const about = lines.map((line) => isAbout(line, place))
  const concerned = nodesConcerned(lines, about)
  const awaited = new Map<string, number>()
  const kept = new Set<number>()
  const lastMicros = lines.at(-1)?.timeMicros ?? 0
  for (let index = lines.length - 1; index >= 0; index--) {
    const line = lines[index]
    if (line === undefined) continue
    if (line.verb === 'note') {
      if (line.timeMicros > 0) kept.add(index)
    } else if (withCalls && isCall(line, place) && line.verb !== 'sends') {
      kept.add(index)
    } else if (about[index] === true && belongs(line, concerned, awaited, lastMicros)) {
      if (!isEcho(lines, about, index)) kept.add(index)
    }
  }
  return lines.filter((_, index) => kept.has(index))
}

/** Every node that proposed or accepted something at the place has a part in it. */
function nodesConcerned(lines: readonly StoryLine[], about: readonly boolean[]): Set<string> {
  const concerned = new Set<string>()
  for (const [index, { verb, kind, who }] of lines.entries()) {
    const isPart = kind === 'propose' || (verb === 'disk' && kind !== 'promise') || kind === 'apply'
    if (about[index] === true && isPart) concerned.add(who)
  }
  return concerned
}

/** Going backwards: what a concerned node hears makes its sender concerned from there on. */
function belongs(
  line: StoryLine,
  concerned: Set<string>,
  awaited: Map<string, number>,
  lastMicros: number,
): boolean {
  const { verb, who, timeMicros } = line
  if (verb === 'sends') {
    const key = messageKey(line)
    const count = awaited.get(key) ?? 0
    // A message appears once, where it arrives; a message that leaves as the run fails may be the
    // fault.
    if (count === 0) return timeMicros === lastMicros && concerned.has(who)
    awaited.set(key, count - 1)
    concerned.add(who)
    return false
  }
  if (!concerned.has(who)) return false
  if (verb === 'gets') awaited.set(messageKey(line), (awaited.get(messageKey(line)) ?? 0) + 1)
  return true
}

function messageKey({ verb, who, peer = '', kind, fields }: StoryLine): string {
  const ends = verb === 'sends' ? `${who}>${peer}` : `${peer}>${who}`
  return `${ends} ${kind} ${String(fields['position'])} ${JSON.stringify(fields['ballot'])}`
}

function isAbout({ fields }: StoryLine, { group, positions }: Place): boolean {
  if (fields['group'] !== group) return false
  return positions.length === 0 || positions.some((position) => isOf(position, fields))
}

function isCall({ kind, fields }: StoryLine, { group }: Place): boolean {
  return fields['group'] === group && callKinds.includes(kind)
}

/**
 * Whether a line is of this position: by name, by an entry it carries, or in a range it asks for.
 */
function isOf(wanted: number, fields: StoryLine['fields']): boolean {
  const { position, entries, from, through } = fields
  if (typeof position === 'number') return position === wanted
  if (Array.isArray(entries)) {
    return entries.some(
      (entry: unknown) =>
        typeof entry === 'object' &&
        entry !== null &&
        'position' in entry &&
        entry.position === wanted,
    )
  }
  if (typeof from !== 'number' || typeof through !== 'number') return false
  return from <= wanted && wanted <= through
}

/** Answers that make a quorum appear even where nothing follows at once. */
const answerKinds: readonly string[] = [
  ...['promised', 'accepted', 'highest', 'refused', 'forward-reply'],
]
/** Lines that one message can lead to at once, at most. */
const consequencesMax = 30

/** A message that changed nothing is no part of the story: it came again, or too late. */
function isEcho(lines: readonly StoryLine[], about: readonly boolean[], index: number): boolean {
  const line = lines[index]
  if (line?.verb !== 'gets' || answerKinds.includes(line.kind)) return false
  for (let next = index + 1; next <= index + consequencesMax; next++) {
    const after = lines[next]
    // The last line is the failure.
    if (after === undefined) return false
    if (after.timeMicros > line.timeMicros) return true
    if (after.who === line.who && after.verb !== 'gets' && about[next] === true) return false
  }
  return true
}

/** Positions of a group whose applied entry has this in it, as a row's key has the row's bytes. */
export function positionsWith(
  lines: readonly StoryLine[],
  group: string,
  bytes: Uint8Array,
): readonly number[] {
  const positions = new Set<number>()
  for (const { kind, fields } of lines) {
    const { position, value } = fields
    if (kind !== 'apply' || fields['group'] !== group || typeof position !== 'number') continue
    if (value instanceof Uint8Array && isWritten(value, bytes)) positions.add(position)
  }
  return [...positions]
}

function isWritten(value: Uint8Array, bytes: Uint8Array): boolean {
  const mutations = decodeEntry(value)?.transactions.flatMap((one) => one.mutations) ?? []
  return mutations.some(({ key }) => Buffer.from(key).includes(Buffer.from(bytes)))
}
