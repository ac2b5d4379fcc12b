/** Frames of a bounded size for the lost writes that the owner puts back. */
import type { JournalWrite } from '../ports/journal.ts'
import { entryBytes, tableBytesMax, type NewPart } from './segment-format.ts'

/** The frames need not become durable together: openings tell the damage again until all of them are. */
export function splitIntoFrames(
  { flushes, records }: JournalWrite,
  valueBytesMax: number,
): readonly (readonly NewPart[])[] {
  const parts: NewPart[] = [
    ...flushes.map(({ number, bytes }) => ({ flush: number, value: bytes })),
    ...records.map(({ name, value }) => ({ name, value })),
  ]
  const frames: NewPart[][] = []
  let [tableBytes, valueBytes] = [Infinity, Infinity]
  for (const part of parts) {
    tableBytes += entryBytes(part)
    valueBytes += part.value.length
    if (tableBytes > tableBytesMax || valueBytes > valueBytesMax) {
      frames.push([])
      tableBytes = entryBytes(part)
      valueBytes = part.value.length
    }
    frames.at(-1)?.push(part)
  }
  return frames
}
