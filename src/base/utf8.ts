/** Bytes of a file as text: malformed UTF-8 is reported with its place, never replaced. */

/** Both count from 1; a column is a character. */
export interface TextPlace {
  readonly line: number
  readonly column: number
}

export type Utf8 =
  { readonly ok: true; readonly text: string } | { readonly ok: false; readonly at: TextPlace }

/** The text without a byte order mark, or where the first byte is that is no part of a character. */
export function textOfUtf8(bytes: Uint8Array): Utf8 {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    return { ok: true, text: decoder.decode(bytes) }
  } catch {
    return { ok: false, at: firstMalformed(bytes) }
  }
}

/** The first byte with which no character begins, or that of one which is cut short. */
function firstMalformed(bytes: Uint8Array): TextPlace {
  let line = 1
  let lineStart = 0
  for (let at = 0; at < bytes.length;) {
    const length = characterBytes(bytes, at)
    if (length === 0) {
      const before = new TextDecoder().decode(bytes.subarray(lineStart, at))
      return { line, column: Array.from(before).length + 1 }
    }
    if (bytes[at] === 0x0a) {
      line += 1
      lineStart = at + 1
    }
    at += length
  }
  return { line, column: 1 }
}

/** Bytes of the character that begins there; 0: none does. */
function characterBytes(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0
  if (first < 0x80) return 1
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(at, at + length))
    return at + length <= bytes.length ? length : 0
  } catch {
    return 0
  }
}
