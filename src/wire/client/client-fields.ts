/** Parts that client requests and answers have in common, as positional arrays, checked when read. */
import { unreadyIndexes, type StoreErrorDetail } from '../../base/errors.ts'
import type { Packable } from '../../base/pack.ts'
import { packedBodyBytesMax } from '../../cells/body.ts'
import type { ShardLeader, ShardPosition, StoredCell } from '../../cells/cell.ts'
import { codeOfWord, markOfCode, wordOfCode } from '../../base/problem.ts'
import type { Outcome, Problem } from '../../base/problem.ts'
import { shardCountMax } from '../../cells/datastore-form.ts'
import * as field from '../fields.ts'

/** Names come in unchecked; they are only kept from being books. */
const nameCharsMax = 256
export const lockNameCharsMax: number = nameCharsMax
const messageCharsMax = 4096

export function text(value: unknown, what: string, charsMax: number = nameCharsMax): string {
  if (typeof value === 'string' && value.length <= charsMax) return value
  throw new field.MalformedError(`${what} is no text of at most ${charsMax} characters`)
}

export function optional<Value>(
  value: unknown,
  read: (value: unknown) => Value,
): Value | undefined {
  return field.isAbsent(value) ? undefined : read(value)
}

export function some(value: unknown, what: string, countMax: number): readonly unknown[] {
  const values = field.list(value, what)
  if (values.length <= countMax) return values
  throw new field.MalformedError(`${what} has too many items`)
}

export function body(value: unknown): Uint8Array {
  return field.bytes(value, 'body', packedBodyBytesMax)
}

export function positions(value: unknown): ShardPosition[] {
  return some(value, 'positions', shardCountMax).map((pair): ShardPosition => {
    const [shard, position] = field.list(pair, 'position', 2)
    return [field.count(shard, 'shard'), field.count(position, 'position')]
  })
}

export function leaders(value: unknown): ShardLeader[] {
  return some(value, 'leaders', shardCountMax).map((pair): ShardLeader => {
    const [shard, leader] = field.list(pair, 'leader', 2)
    return [field.count(shard, 'shard'), field.node(leader)]
  })
}

export function packCell(cell: StoredCell): Packable {
  const { rowKey, column, refKey, addedId, createdAt, body: bytes } = cell
  return [rowKey, column, refKey, addedId, createdAt, bytes]
}

export function cell(value: unknown): StoredCell {
  const [rowKey, column, refKey, addedId, createdAt, bytes] = field.list(value, 'cell', 6)
  return {
    rowKey: text(rowKey, 'row key'),
    column: text(column, 'column'),
    refKey: field.count(refKey, 'ref key'),
    addedId: field.count(addedId, 'added id', 1),
    createdAt: field.count(createdAt, 'created at'),
    body: body(bytes),
  }
}

export function packProblem(problem: Problem): Packable {
  const { group, limit, limitValue, actual, store, index, attempts } = problem.detail
  const { retryAfterMs } = problem.detail
  // It may quote what a client sent: a text too long to be read would end the link.
  const message = problem.message.slice(0, messageCharsMax)
  // A problem has at most one of these. A reader that does not know the word, or the number, passes
  // over it.
  const state = store ?? index ?? markOfCode(problem.code) ?? retryAfterMs
  return [wordOfCode(problem.code), message, group, limit, limitValue, actual, state, attempts]
}

export function problem(value: unknown): Problem {
  const [word, message, ...details] = field.list(value, 'problem', 8)
  const [group, limit, limitValue, actual, state, attempts] = details
  const code = codeOfWord(word, state)
  if (code === undefined) throw new field.MalformedError('problem has no known code')
  const unready = unreadyIndexes.find((one) => one === state)
  const detail: StoreErrorDetail = {
    ...(!field.isAbsent(group) && { group: field.group(group) }),
    ...(!field.isAbsent(limit) && { limit: text(limit, 'limit') }),
    ...(!field.isAbsent(limitValue) && { limitValue: number(limitValue, 'limit value') }),
    ...(!field.isAbsent(actual) && { actual: number(actual, 'actual') }),
    ...((state === 'log' || state === 'data') && { store: state }),
    ...(unready !== undefined && { index: unready }),
    ...(typeof state === 'number' && { retryAfterMs: field.count(state, 'retry after') }),
    ...(!field.isAbsent(attempts) && { attempts: field.count(attempts, 'attempts') }),
  }
  return { code, message: text(message, 'message', messageCharsMax), detail }
}

function number(value: unknown, what: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new field.MalformedError(`${what} is no number`)
}

export function packOutcome<Value>(
  outcome: Outcome<Value>,
  packValue: (value: Value) => Packable,
): Packable {
  if (outcome.kind === 'ok') return [0, packValue(outcome.value)]
  return [1, packProblem(outcome.problem)]
}

export function outcome<Value>(
  value: unknown,
  readValue: (value: unknown) => Value,
): Outcome<Value> {
  const [kind, content] = field.list(value, 'outcome', 2)
  if (kind === 0) return { kind: 'ok', value: readValue(content) }
  if (kind === 1) return { kind: 'problem', problem: problem(content) }
  throw new field.MalformedError('outcome is of no known kind')
}
