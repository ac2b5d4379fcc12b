/** What is put back of lost writes, as frames of a bounded size. */
import type { JournalWrite } from '../ports/journal.ts'
import { entryBytes, tableBytesMax, type NewPart } from './segment-format.ts'

/** The frames of one putting back need not be durable together: until all of them are, the damage is told again. */
export function framesOf(
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
