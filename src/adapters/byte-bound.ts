/** Counts what comes in over a connection, and tells when it is more than it may be. */
import type { Socket } from 'node:net'
import { assert } from '../base/assert.ts'

export interface ByteBound {
  /** Bytes that come from now on are not bounded here. */
  release(): void
}

/**
 * Calls `onExcess` once, when more than `bytesMax` have come in since. Its listener runs after the existing
 * reader of the connection. A chunk may prove a sender, and the reader then calls `release`; the same chunk
 * may hold more bytes.
 */
export function boundBytes(raw: Socket, bytesMax: number, onExcess: () => void): ByteBound {
  let bytes = 0
  let isOver = false
  const release = (): void => {
    isOver = true
    raw.off('data', count)
  }
  const count = (chunk: Buffer): void => {
    // An event that is under way still reaches a listener that has just been taken off.
    if (isOver) return
    bytes += chunk.length
    if (bytes <= bytesMax) return
    release()
    onExcess()
    assert(raw.destroyed, 'HELLO-3: a stranger goes on after it has sent too much')
  }
  raw.on('data', count)
  return { release }
}
