/**
 * Histories from JSON lines (`lines.ts` says how they look). Input from outside may be anything:
 * each line that is no operation gets a reason, and the error lists all reasons.
 */
import type {
  Element,
  History,
  HistoryOperation,
  Level,
  MicroOperation,
  Outcome,
  SeenVersion,
} from './operation.ts'

export interface LineProblem {
  /** From 1. */
  readonly line: number
  readonly reason: string
}

export type ParsedHistory =
  | { readonly ok: true; readonly history: History }
  | { readonly ok: false; readonly problems: readonly LineProblem[] }

/** All operations, or the problem of each line that is none. Empty lines are left out. */
export function parseHistory(text: string): ParsedHistory {
  const history: HistoryOperation[] = []
  const problems: LineProblem[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const parsed = parseLine(line)
    if (typeof parsed === 'string') problems.push({ line: index + 1, reason: parsed })
    else history.push(parsed)
  }
  return problems.length === 0 ? { ok: true, history } : { ok: false, problems }
}

type Fields = Readonly<Record<string, unknown>>

/** The operation, or the reason why the line is none. */
function parseLine(line: string): HistoryOperation | string {
  let json: unknown
  try {
    json = JSON.parse(line)
  } catch {
    return 'this is no JSON'
  }
  if (!isFields(json)) return 'expected one object a line'
  const micro = parseMicros(json)
  if (typeof micro === 'string') return micro
  const times = parseTimes(json)
  if (typeof times === 'string') return times
  const { client, level = 'current', group, node } = json
  if (typeof client !== 'string' || client === '') return '"client" must be a name'
  if (!isLevel(level)) return '"level" must be "current" or "any"'
  if (!isOptionalText(group)) return '"group" must be a name'
  if (!isOptionalText(node)) return '"node" must be a name'
  return {
    client,
    micro,
    level,
    ...times,
    ...(group === undefined ? {} : { group }),
    ...(node === undefined ? {} : { node }),
  }
}

function parseTimes(fields: Fields): Pick<HistoryOperation, 'start' | 'end' | 'outcome'> | string {
  const { start, outcome } = fields
  const end = fields['end'] ?? undefined
  if (!isOutcome(outcome)) return '"outcome" must be "ok", "fail" or "unknown"'
  if (!isTime(start)) return '"start" must be a number'
  if (end === undefined) {
    return outcome === 'ok' ? 'an operation that is "ok" needs an "end"' : { start, outcome }
  }
  if (!isTime(end)) return '"end" must be a number'
  if (end < start) return '"end" is before "start"'
  return outcome === 'unknown' ? { start, outcome } : { start, end, outcome }
}

function parseMicros(fields: Fields): readonly MicroOperation[] | string {
  const { op, key, value } = fields
  switch (op) {
    case 'append':
      return oneMicro(parseMicro(['append', key, value]))
    case 'read':
      return oneMicro(parseMicro(['r', key, value ?? null]))
    case 'txn': {
      if (!Array.isArray(value)) return '"value" of a "txn" must be a list of micro-operations'
      const list: readonly unknown[] = value
      const micro: MicroOperation[] = []
      for (const [index, one] of list.entries()) {
        const parsed = parseMicro(one)
        if (typeof parsed === 'string') return `micro-operation ${index + 1}: ${parsed}`
        micro.push(parsed)
      }
      return micro
    }
    default:
      return '"op" must be "append", "read" or "txn"'
  }
}

function oneMicro(parsed: MicroOperation | string): readonly MicroOperation[] | string {
  return typeof parsed === 'string' ? parsed : [parsed]
}

function parseMicro(tuple: unknown): MicroOperation | string {
  if (!Array.isArray(tuple)) return 'expected a list such as ["append", "x", 5]'
  const [name, key, ...rest]: readonly unknown[] = tuple
  if (!isKey(key)) return 'the key must be a text or a number'
  switch (name) {
    case 'append':
      return parseAppend(String(key), rest)
    case 'r':
      return parseRead(String(key), rest)
    case 'w':
    case 'latest':
    case 'get':
      return parseRegister(name, String(key), rest)
    case 'range':
      return parseRange(String(key), rest)
    default:
      return 'it must begin with "append", "r", "w", "latest", "get" or "range"'
  }
}

function parseAppend(key: string, [element, index]: readonly unknown[]): MicroOperation | string {
  if (!isElement(element)) return 'an element must be a text or a number'
  if (index === undefined) return { kind: 'append', key, element }
  if (!isCount(index)) return 'an index must be a whole number from 0'
  return { kind: 'append', key, element, index }
}

function parseRegister(
  name: 'w' | 'latest' | 'get',
  key: string,
  [version, third, fourth]: readonly unknown[],
): MicroOperation | string {
  if (name === 'latest' && version === null) return { kind: 'latest', key }
  if (!isCount(version)) return 'a version must be a whole number from 0'
  if (name === 'w') return { kind: 'write', key, version, ...optionalValue(third) }
  if (name === 'latest') return { kind: 'latest', key, version, ...optionalValue(third) }
  if (typeof third !== 'boolean') return 'whether a version is there must be true or false'
  return { kind: 'get', key, version, isPresent: third, ...optionalValue(fourth) }
}

function parseRead(key: string, [elements, range]: readonly unknown[]): MicroOperation | string {
  const { after, more } = isFields(range) ? range : { after: 0, more: false }
  if (!isCount(after)) return '"after" must be a whole number from 0'
  const common = { kind: 'read', key, after, isEnd: more !== true } as const
  if (elements === null || elements === undefined) return common
  if (!Array.isArray(elements) || !elements.every(isElement)) {
    return 'what was read must be a list of texts and numbers, or null'
  }
  return { ...common, elements }
}

function parseRange(key: string, [from, to, seen]: readonly unknown[]): MicroOperation | string {
  if (!isCount(from)) return 'a range must begin with a whole number from 0'
  if (to !== null && !isCount(to)) return 'a range must end with a whole number from 0, or null'
  const common = { kind: 'range', key, from, ...(to !== null && { to }) } as const
  if (seen === null || seen === undefined) return common
  if (!Array.isArray(seen)) return 'versions must be a list such as [[3, "c"]], or null'
  const list: readonly unknown[] = seen
  const versions = list.flatMap((one): SeenVersion[] => {
    const [version, value]: readonly unknown[] = Array.isArray(one) ? one : []
    return isCount(version) ? [{ version, ...optionalValue(value) }] : []
  })
  if (versions.length < list.length) return 'a version must be a list such as [3, "c"]'
  const isOutside = versions.some(({ version }) => version < from || version > (to ?? Infinity))
  return isOutside ? 'a version is outside its range' : { ...common, versions }
}

function optionalValue(value: unknown): { readonly value?: Element } {
  return isElement(value) ? { value } : {}
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isKey(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}

function isElement(value: unknown): value is Element {
  return typeof value === 'string' || typeof value === 'number'
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isOutcome(value: unknown): value is Outcome {
  return value === 'ok' || value === 'fail' || value === 'unknown'
}

function isLevel(value: unknown): value is Level {
  return value === 'current' || value === 'snapshot'
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string'
}
