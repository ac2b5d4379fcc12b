/** Bytes as people read them: the words that a caller has for them, else a tuple, else text, else base64. */
import type { GroupId, Timestamp } from '../base/ids.ts'
import { decodeTuple } from '../base/tuple.ts'
import { textOfUtf8 } from '../base/utf8.ts'

/** How the content of groups is shown; a caller that knows tables and cells shows more than bytes. */
export interface Readable {
  group(group: GroupId): string
  key(group: GroupId, key: Uint8Array): unknown
  value(group: GroupId, key: Uint8Array, value: Uint8Array, timestamp: Timestamp): unknown
}

/** Text, or base64 in an object that says so. */
export function readableBytes(bytes: Uint8Array): string | { readonly base64: string } {
  const text = textOfUtf8(bytes)
  const isShown = text.ok && !/[\p{Cc}\p{Cn}\p{Co}]/u.test(text.text)
  return isShown ? text.text : { base64: Buffer.from(bytes).toString('base64') }
}

/** The elements of a tuple, those that are bytes as `readableBytes` shows them. */
export function readableKey(key: Uint8Array): unknown {
  const elements = key.length === 0 ? undefined : decodeTuple(key)
  if (elements === undefined) return readableBytes(key)
  return elements.map((one) => (one instanceof Uint8Array ? readableBytes(one) : one))
}
