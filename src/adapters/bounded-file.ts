/** Files read up to a bound and no further: devices have no end, and a wrong name leads to anything. */
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'

/** All bytes of the file, or undefined when there are more than `bytesMax`. Rejects with the error of the system. */
export async function readBounded(path: string, bytesMax: number): Promise<Buffer | undefined> {
  const file = await open(path)
  try {
    const chunks: Buffer[] = []
    for (let left = bytesMax + 1; left > 0;) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(left, 65_536)))
      if (bytesRead === 0) return Buffer.concat(chunks)
      chunks.push(buffer.subarray(0, bytesRead))
      left -= bytesRead
    }
    return undefined
  } finally {
    await file.close()
  }
}

/** The same of a stream. */
export async function readBoundedStream(
  stream: Readable,
  bytesMax: number,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    if (!Buffer.isBuffer(chunk)) continue
    bytes += chunk.length
    if (bytes > bytesMax) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
