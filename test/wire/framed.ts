/** Peer frames made by hand, of messages that no encoder would make. */
import { pack, type Packable } from '../../src/base/pack.ts'
import { decodePeerFrame } from '../../src/wire/peer/peer-codec.ts'

/** 7 bits a byte, the lowest first; no bound. */
function varOf(number: number | bigint): Buffer {
  const [rest, low] = [BigInt(number) / 128n, Number(BigInt(number) % 128n)]
  return rest === 0n ? Buffer.of(low) : Buffer.concat([Buffer.of(low + 128), varOf(rest)])
}

export interface FrameParts {
  /** The durable flush that the frame tells of. */
  readonly flush?: number
  /** How many messages the frame says that it has. */
  readonly count?: number
  /** The bytes behind the messages. */
  readonly tail?: Buffer
}

/** A frame by hand: messages as they are packed, or bytes that stand for one. */
export function framed(
  parts: readonly (Packable[] | Buffer)[],
  { flush = 7, count = parts.length, tail = Buffer.of() }: FrameParts = {},
): Buffer {
  const head = Buffer.concat([Buffer.of(2), varOf(flush), varOf(count)])
  const bodies = parts.map((part) => {
    if (part instanceof Uint8Array) return part
    const packed = pack(part)
    return Buffer.concat([Buffer.of(0), varOf(packed.length), packed])
  })
  return Buffer.concat([head, ...bodies, tail])
}

/** The reason of a refusal; fails when the bytes were taken for a frame. */
export function reasonOf(input: Uint8Array): string {
  const decoded = decodePeerFrame(input)
  if (decoded.ok) throw new Error(`taken for a frame: ${JSON.stringify(decoded.frame)}`)
  return decoded.reason
}
