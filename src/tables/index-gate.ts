/**
 * Whether a local or inline index may be asked at what is read (IDX-6). One that came when there were
 * rows lacks entries at the moments before it was filled, and reads of the past go back there.
 *
 * A build leaves a mark in each group that it has filled, and is said to be ready since a moment at
 * which all of them are. So an index may be asked as of that moment or later, and before that in a
 * group as of which its mark is there. A group that came meanwhile has no mark, and needs none later.
 */
import { StoreError } from '../base/errors.ts'
import type { ReadFrom } from '../group/group-port.ts'
import type { Reads } from '../txn/reads.ts'
import type { CompiledIndex } from './compiled.ts'
import { filledKey } from './row-key.ts'
import type { SchemaWatch } from './schema-watch.ts'

/** Rejects when the index may not be asked; undefined, or resolves, when it may be. */
export type IndexGate = (index: CompiledIndex, reads: Reads) => Promise<void> | undefined

/** Of what is read `from` there. */
export function makeGate(watch: SchemaWatch, from: ReadFrom['kind']): IndexGate {
  return (index, reads) => {
    const looking = watch.asked(index.name)
    if (looking === undefined && isAtAnyMoment(watch, index, from)) return undefined
    return pass(watch, index, { from, reads, looking })
  }
}

interface Passing {
  readonly from: ReadFrom['kind']
  readonly reads: Reads
  readonly looking: Promise<void> | undefined
}

async function pass(
  watch: SchemaWatch,
  index: CompiledIndex,
  { from, reads, looking }: Passing,
): Promise<void> {
  await looking
  if (isAtAnyMoment(watch, index, from)) return
  const { asOf } = await reads.view()
  if (asOf === undefined || asOf >= watch.findLife(index.name).since) return
  if ((await reads.get(filledKey(index))) === undefined) throw notReadyThen(index)
}

/** A current read shows all that a build had filled when it was said to be ready. */
function isAtAnyMoment(
  watch: SchemaWatch,
  { name }: CompiledIndex,
  from: ReadFrom['kind'],
): boolean {
  return from === 'current' || watch.findLife(name).since === 0
}

function notReadyThen({ name }: CompiledIndex): StoreError {
  const message = `index ${name} was not ready yet at the moment that is read; read as of a later one, or at 'current'`
  return new StoreError('unavailable', message, { index: 'building' })
}
