/** Checked reading of positional MessagePack arrays that came from outside. */
import { isPlaceName } from '../base/placed-group.ts'
import { MalformedError } from '../base/byte-reader.ts'
import { isNodeId, type GroupId, type NodeId } from '../base/ids.ts'
import { keyBytesMax, rangeEndBytesMax } from '../base/limits.ts'
import type { KeyRange } from '../group/outcome.ts'

export { MalformedError }

function refuse(what: string): never {
  throw new MalformedError(what)
}

export function list(value: unknown, what: string, length?: number): readonly unknown[] {
  if (!Array.isArray(value)) return refuse(`${what} is no list`)
  if (length !== undefined && value.length !== length) return refuse(`${what} has another length`)
  return value
}

/** A safe integer, `min` at least. */
export function count(value: unknown, what: string, min = 0): number {
  return isCount(value, min) ? value : refuse(`${what} is no number from ${min}`)
}

export function isCount(value: unknown, min = 0): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min
}

export function position(value: unknown): number {
  return count(value, 'position', 1)
}

export function bytes(value: unknown, what: string, bytesMax: number): Uint8Array {
  if (!(value instanceof Uint8Array)) return refuse(`${what} is not bytes`)
  return value.length <= bytesMax ? value : refuse(`${what} is too long`)
}

export function text(value: unknown, what: string, charsMax: number): string {
  if (typeof value !== 'string') return refuse(`${what} is no text`)
  return value.length <= charsMax ? value : refuse(`${what} is too long`)
}

export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined
}

function isGroupId(value: unknown): value is GroupId {
  if (typeof value !== 'string' || value.length === 0 || value.length > keyBytesMax) return false
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 0xff) return false
  return true
}

export function group(value: unknown): GroupId {
  return isGroupId(value) ? value : refuse('group is no group id')
}

export function node(value: unknown): NodeId {
  return typeof value === 'string' && isNodeId(value) ? value : refuse('node is no node id')
}

/** The name of a replica set. */
export function setName(value: unknown): string {
  if (typeof value === 'string' && isPlaceName(value)) return value
  throw new MalformedError('a set has no such name')
}

export function keyRange(value: unknown): KeyRange {
  const [gte, lt] = list(value, 'range', 2)
  return {
    gte: bytes(gte, 'start of a range', rangeEndBytesMax),
    lt: bytes(lt, 'end of a range', rangeEndBytesMax),
  }
}

export function flag(value: unknown, what: string): boolean {
  if (typeof value === 'boolean') return value
  return refuse(`${what} is neither true nor false`)
}
