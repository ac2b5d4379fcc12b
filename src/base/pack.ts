/**
 * MessagePack for everything stored or sent: positional arrays, no records, no extensions.
 * `unpack` answers undefined for bytes that are not exactly one value.
 */
// Without its native part: strings here are short, and calling it costs more than reading them.
import { Packr } from 'msgpackr/pack'

const options = {
  useRecords: false,
  int64AsType: 'number',
  encodeUndefinedAsNil: true,
  // A member named `toJSON` is data and not called; bytes from outside make no cyclic values.
  useToJSON: false,
  structuredClone: false,
} as const

/** Writes the number of an object's members as two bytes, whatever it is, and throws when it is more. */
const packr = new Packr(options)
/** Counts the members first, and writes their number as it has room. */
const widePackr = new Packr({ ...options, variableMapSize: true })

/** Values that can be packed: MessagePack's own kinds; `undefined` becomes nil. */
export type Packable =
  | undefined
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly Packable[]
  | { readonly [key: string]: Packable }

/** The value's bytes, in memory of their own. */
export function pack(value: Packable): Buffer {
  try {
    return packr.pack(value)
  } catch {
    // Some object has more than 65,535 members. The other way gives small ones other bytes than are stored.
    return widePackr.pack(value)
  }
}

/**
 * The value packed in all bytes from `start` to before `end`, or undefined when they are malformed. Byte
 * strings are views of `bytes`.
 */
export function unpack(bytes: Uint8Array, start = 0, end: number = bytes.length): unknown {
  try {
    const isWhole = start === 0 && end === bytes.length
    const value: unknown = isWhole ? packr.unpack(bytes) : packr.unpack(bytes, { start, end })
    return value
  } catch {
    // Damage and garbage are values here: the caller says what they mean.
    return undefined
  }
}
