/** Deflate without a header, as functions of bytes: the same bytes on every machine of one version. */
import { deflateRawSync, inflateRawSync } from 'node:zlib'

export function deflate(bytes: Uint8Array, level: number): Uint8Array {
  return deflateRawSync(bytes, { level })
}

/** The unpacked bytes; undefined when they are damaged, or more than `bytesMax`. */
export function inflate(bytes: Uint8Array, bytesMax: number): Uint8Array | undefined {
  try {
    return inflateRawSync(bytes, { maxOutputLength: bytesMax })
  } catch {
    // Damage and bombs are values here: the caller says what they mean.
    return undefined
  }
}
