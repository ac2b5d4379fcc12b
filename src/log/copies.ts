/**
 * The records that tell of open positions what older flushes tell of them. A position that stays open
 * (promised or accepted, and not decided) would need its flush for as long as no client writes to its group.
 */
import type { GroupId, Position } from '../base/ids.ts'
import { compareBallots } from '../paxos/ballot.ts'
import type { FlushRecord } from './flush.ts'
import { sizeInBytes } from './pending-flush.ts'
import type { PositionHeader } from './log-index.ts'

/** Undefined: they would take up more than `bytesMax`. */
export function copiesOf(
  group: GroupId,
  open: Iterable<PositionHeader>,
  valueAt: (position: Position) => Uint8Array | 'faulty' | undefined,
  bytesMax: number,
): readonly FlushRecord[] | undefined {
  const copies: FlushRecord[] = []
  let bytes = 0
  for (const header of open) {
    for (const record of copiesOfPosition(group, header, valueAt(header.position))) {
      copies.push(record)
      bytes += sizeInBytes(record)
    }
    if (bytes > bytesMax) return undefined
  }
  return copies
}

/** PAX-2: the acceptance first, which may be below the promise. A damaged value stays damaged, and never "none". */
function copiesOfPosition(
  group: GroupId,
  { position, promised, accepted, chosen }: PositionHeader,
  value: Uint8Array | 'faulty' | undefined,
): readonly FlushRecord[] {
  const records: FlushRecord[] = []
  // A decided value counts as accepted, and no other one counts any more.
  const ballot = chosen ?? accepted
  if (ballot !== undefined) {
    const copied = { kind: 'copied', group, position, ballot } as const
    records.push(value instanceof Uint8Array ? { ...copied, value } : copied)
  }
  if (chosen !== undefined) records.push({ kind: 'chosen', group, position, ballot: chosen })
  // An acceptance is a promise of its ballot, too, and so is a value that was learnt as chosen.
  const isHigher = ballot === undefined || (promised && compareBallots(promised, ballot) > 0)
  if (promised !== undefined && isHigher === true) {
    records.push({ kind: 'promise', group, position, ballot: promised })
  }
  return records
}
