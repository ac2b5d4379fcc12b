/**
 * One table of LevelDB, read in place and block by block: for a reader that must not open the store. Blocks that
 * do not match their checksums are left out, and `onDamage` hears of each.
 *
 * Reads are synchronous: a look at one key has to answer at once, and the process does nothing else meanwhile.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { compareBytes } from '../base/bytes.ts'
import { crc32c, masked } from './crc32c.ts'
import { isValueKind, readSequence } from './level-batch.ts'
import {
  blockTrailerBytes,
  compressions,
  decodeEntries,
  decodeFooter,
  decodeIndex,
  decompress,
  footerBytes,
  type BlockEntry,
  type Handle,
  type IndexEntry,
} from './level-format.ts'
import { userKey } from './level-spans.ts'

/** A key as one write left it. */
export interface KeyVersion {
  readonly key: Uint8Array
  /** Of two versions of a key the one with the higher number counts. */
  readonly sequence: number
  /** Undefined: the write deleted the key. */
  readonly value: Uint8Array | undefined
}

export type OnDamage = (what: string) => void

/** Behind each key: the kind of the write, and its number in seven bytes. */
const ownBytes = 8
const blocksKept = 8

export class TableView {
  readonly #path: string
  readonly #name: string
  readonly #onDamage: OnDamage
  readonly #index: readonly IndexEntry[]
  #fd: number | undefined
  /** Blocks that were read lately, the oldest first: looks at keys that are near one another share them. */
  readonly #blocks = new Map<number, readonly KeyVersion[]>()

  constructor(path: string, name: string, onDamage: OnDamage) {
    this.#path = path
    this.#name = name
    this.#onDamage = onDamage
    this.#index = this.#readIndex()
  }

  /** Gives the file back. A later read opens it again. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  /** All versions from `gte` on, in order; backwards, those before `lt`. */
  *versions({ gte, lt, reverse }: ViewRange): Generator<KeyVersion, undefined> {
    const blocks = this.#index.length
    if (reverse !== true) {
      for (let at = this.#firstBlock(gte); at < blocks; at++) yield* from(this.#block(at), gte)
      return undefined
    }
    const last = lt === undefined ? blocks - 1 : Math.min(this.#firstBlock(lt), blocks - 1)
    for (let at = last; at >= 0; at--) {
      const versions = this.#block(at)
      for (let place = versions.length - 1; place >= 0; place--) {
        const version = versions[place]
        if (version === undefined || isFrom(version.key, lt)) continue
        yield version
      }
    }
    return undefined
  }

  /** The first block with keys that may be `key` or behind it. */
  #firstBlock(key: Uint8Array | undefined): number {
    if (key === undefined) return 0
    let [low, high] = [0, this.#index.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const last = this.#index[middle]
      if (last !== undefined && compareBytes(userKey(last.key), key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #block(at: number): readonly KeyVersion[] {
    const kept = this.#blocks.get(at)
    if (kept !== undefined) return kept
    const handle = this.#index[at]?.handle
    const block = handle && this.#readBlock(handle)
    const entries = block && decodeEntries(block)
    if (block !== undefined && entries === undefined) {
      this.#complain(handle?.offset ?? 0, 'a block cannot be understood')
    }
    const versions = (entries ?? []).map(versionIn)
    this.#blocks.set(at, versions)
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= blocksKept) break
      this.#blocks.delete(oldest)
    }
    return versions
  }

  #readIndex(): readonly IndexEntry[] {
    const size = this.#size()
    if (size === undefined) return []
    const bytes = this.#read(size - footerBytes, footerBytes)
    const footer = bytes && decodeFooter(bytes)
    if (footer === undefined) {
      this.#complain(Math.max(0, size - footerBytes), 'its footer is damaged')
      return []
    }
    const block = this.#readBlock(footer.index)
    const index = block && decodeIndex(block)
    if (block !== undefined && index === undefined) {
      this.#complain(footer.index.offset, 'its index is damaged')
    }
    return index ?? []
  }

  #size(): number | undefined {
    try {
      return fstatSync(this.#open()).size
    } catch (error) {
      this.#complain(0, `it cannot be read (${readErrorCode(error)})`)
      return undefined
    }
  }

  #readBlock({ offset, size }: Handle): Uint8Array | undefined {
    const stored = this.#read(offset, size + blockTrailerBytes)
    if (stored === undefined) {
      this.#complain(offset, 'a block ends beyond the file')
      return undefined
    }
    const crc = new DataView(stored.buffer, stored.byteOffset).getUint32(size + 1, true)
    if (masked(crc32c(stored.subarray(0, size + 1))) !== crc) {
      this.#complain(offset, 'a block does not match its checksum')
      return undefined
    }
    const contents = stored.subarray(0, size)
    const block = stored[size] === compressions.snappy ? decompress(contents) : contents
    if (block === undefined) this.#complain(offset, 'a block cannot be understood')
    return block
  }

  /** Undefined where the file has no such bytes, or the system does not give them. */
  #read(offset: number, length: number): Uint8Array | undefined {
    if (offset < 0) return undefined
    try {
      const bytes = Buffer.allocUnsafeSlow(length)
      for (let filled = 0; filled < length;) {
        const read = readSync(this.#open(), bytes, filled, length - filled, offset + filled)
        if (read === 0) return undefined
        filled += read
      }
      return bytes
    } catch (error) {
      this.#complain(offset, `it cannot be read (${readErrorCode(error)})`)
      return undefined
    }
  }

  #open(): number {
    this.#fd ??= openSync(this.#path, 'r')
    return this.#fd
  }

  #complain(offset: number, what: string): void {
    this.#onDamage(`${this.#name} at byte ${offset}: ${what}`)
  }
}

function versionIn({ key, value }: BlockEntry): KeyVersion {
  const own = key.length - ownBytes
  const isValue = isValueKind(key[own])
  return {
    key: userKey(key),
    sequence: readSequence(key, own + 1),
    value: isValue ? value : undefined,
  }
}

/** Keys from `gte` on, before `lt`, and from which end. */
export interface ViewRange {
  readonly gte?: Uint8Array | undefined
  readonly lt?: Uint8Array | undefined
  readonly reverse?: boolean | undefined
}

function* from(
  versions: readonly KeyVersion[],
  gte: Uint8Array | undefined,
): Generator<KeyVersion, undefined> {
  for (const version of versions) {
    if (gte === undefined || isFrom(version.key, gte)) yield version
  }
  return undefined
}

/** Whether `key` is `bound` or behind it; nothing is behind no bound. */
function isFrom(key: Uint8Array, bound: Uint8Array | undefined): boolean {
  return bound !== undefined && compareBytes(key, bound) >= 0
}

function readErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
