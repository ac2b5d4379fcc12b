/** Counts a group's rows against the hash in its state record (HASH-1): damage that came after the write shows so. */
import { DamagedGroup } from './damage.ts'
import type { ReadPart } from './group-snapshot.ts'

/** As much of a snapshot of the group as is needed here. */
export interface CountedSnapshot {
  next(bytesMax: number): Promise<ReadPart>
  close(): Promise<void>
}

/** `rest` is awaited between two parts of about `bytesMax`. Undefined: there is no snapshot of the group now. */
export async function recount(
  snapshot: CountedSnapshot | undefined,
  bytesMax: number,
  rest: (bytes: number) => Promise<void>,
): Promise<'sound' | 'damaged' | 'unknown'> {
  if (snapshot === undefined) return 'unknown'
  try {
    for (;;) {
      const { rows, crc, isDamaged } = await snapshot.next(bytesMax)
      if (crc !== undefined) return isDamaged === true ? 'damaged' : 'sound'
      let bytes = 0
      for (const { key, payload } of rows) bytes += key.length + payload.length
      await rest(bytes)
    }
  } catch (error) {
    if (error instanceof DamagedGroup) return 'damaged'
    throw error
  } finally {
    await snapshot.close()
  }
}
