/**
 * A large frame of requests that came in, divided but not unpacked: a frame of 16 MiB may hold millions of
 * parts, and a thousand requests each of which takes a node's turn. Each is unpacked when it is taken up.
 *
 * Whether the frame is whole, what each request is called, and how many parts there are is known at once:
 * looking at a part takes some nanoseconds.
 */
import { asBuffer } from '../../base/bytes.ts'
import { unpack } from '../../base/pack.ts'
import { PackScan } from '../../base/pack-scan.ts'
import type { MalformedRequest, Request, RequestSource } from './client-message.ts'
import { readRequest } from './client-requests.ts'
import * as field from '../fields.ts'

/** Smaller frames are unpacked whole: they hold no more parts than bytes. */
export const unpackedFrameBytesMax: number = 16 * 1024
/** Parts of one frame, lists and what is in them: more than 4 MiB of requests ever have. */
export const framePartsMax = 1_000_000

const requestFields = 4

export class PackedRequests implements RequestSource {
  readonly bytes: number
  readonly #frame: Buffer
  /** Where each request begins, and where the last one ends. */
  readonly #places: readonly number[]
  #taken = 0

  private constructor(frame: Buffer, places: readonly number[]) {
    this.#frame = frame
    this.#places = places
    this.bytes = frame.length
  }

  /** Of the list that begins at `start`; a reason when it is none of requests. */
  static open(frame: Uint8Array, start: number): PackedRequests | string {
    const bytes = asBuffer(frame)
    const scan = new PackScan(bytes, start, framePartsMax)
    const count = scan.list()
    if (count === undefined || count > bytes.length) return 'messages is no list'
    const places = [scan.at]
    for (let left = count; left > 0; left--) {
      const { at } = scan
      if (!scan.skip()) return 'the frame is cut, or has too many parts'
      if (findName(bytes, at) === undefined) return 'request id is no number from 0'
      places.push(scan.at)
    }
    return scan.at === bytes.length ? new PackedRequests(bytes, places) : 'more follows the frame'
  }

  get count(): number {
    return this.#places.length - 1 - this.#taken
  }

  next(): Request | MalformedRequest | undefined {
    const from = this.#places[this.#taken]
    const to = this.#places[this.#taken + 1]
    if (from === undefined || to === undefined) return undefined
    this.#taken += 1
    const value = unpack(this.#frame, from, to)
    if (Array.isArray(value)) return readRequest(value)
    return { id: findName(this.#frame, from) ?? 0, reason: 'it is not packed as requests are' }
  }
}

/** The number of the request that begins there; undefined when it has none, and so cannot be answered. */
function findName(bytes: Buffer, from: number): number | undefined {
  const scan = new PackScan(bytes, from, requestFields)
  if (scan.list() !== requestFields) return undefined
  const { at } = scan
  const id = scan.skip() ? unpack(bytes, at, scan.at) : undefined
  return field.isCount(id) ? id : undefined
}
