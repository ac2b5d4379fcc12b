/** Ways to store the bytes of a body: what a newly stored one could be packed with. */
import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  deflateRawSync,
  inflateRawSync,
} from 'node:zlib'

export interface Codec {
  readonly name: string
  pack(bytes: Uint8Array): Uint8Array
  unpack(bytes: Uint8Array): Uint8Array
}

function deflate(level: number): Codec {
  return {
    name: `deflate ${level}`,
    pack: (bytes) => deflateRawSync(bytes, { level }),
    unpack: (bytes) => inflateRawSync(bytes),
  }
}

/** A small window and little memory: a stream costs less to begin. */
function smallDeflate(level: number): Codec {
  const options = { level, windowBits: 12, memLevel: 5 }
  return {
    name: `deflate ${level}, 4 KiB window`,
    pack: (bytes) => deflateRawSync(bytes, options),
    unpack: (bytes) => inflateRawSync(bytes, { windowBits: 12 }),
  }
}

function brotli(quality: number): Codec {
  return {
    name: `brotli ${quality}`,
    pack: (bytes) => {
      const params = {
        [constants.BROTLI_PARAM_QUALITY]: quality,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      }
      return brotliCompressSync(bytes, { params })
    },
    unpack: (bytes) => brotliDecompressSync(bytes),
  }
}

const none: Codec = { name: 'none', pack: (bytes) => bytes, unpack: (bytes) => bytes }

export const codecs: readonly Codec[] = [
  none,
  ...[1, 3, 6, 9].map(deflate),
  ...[1, 6].map(smallDeflate),
  ...[1, 4, 5, 9].map(brotli),
]
