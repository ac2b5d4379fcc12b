/** A version of a schema from the JSON that it was stored as. The stored text may hold anything. */
import { parseJsonText } from '../src/base/json-text.ts'
import { decodeSchema } from './decode.ts'
import { fingerprintOf } from './fingerprint.ts'
import type { SchemaNumbers, SchemaVersion } from './version.ts'

/** The version that `JSON.stringify` of one gave, or undefined when the text is none. */
export function decodeVersion(text: string): SchemaVersion | undefined {
  const read = parseJsonText(text)
  const fields: unknown = read.ok ? read.value : undefined
  if (!isObject(fields)) return undefined
  const { version, fingerprint, schema, numbers, restricting } = fields
  const result = decodeSchema(schema, 'stored')
  const isCounted = typeof version === 'number' && Number.isSafeInteger(version) && version >= 1
  if (!result.ok || !isCounted || !areNumbers(numbers)) return undefined
  if (fingerprint !== fingerprintOf(result.schema)) return undefined
  if (restricting !== undefined && !areTexts(restricting)) return undefined
  const more = restricting === undefined ? {} : { restricting }
  return { version, fingerprint, schema: result.schema, numbers, ...more }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

function areNumbers(value: unknown): value is SchemaNumbers {
  if (!isObject(value)) return false
  const { stored, properties } = value
  return areCounts(stored) && areCounts(properties)
}

function areCounts(value: unknown): boolean {
  return (
    isObject(value) &&
    Object.values(value).every((one) => typeof one === 'number' && Number.isSafeInteger(one))
  )
}
