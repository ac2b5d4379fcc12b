/**
 * The end of a build of an index that every writer kept when it began.
 *
 * IDX-6  The build puts all rows into the index: when it compares the index with its rows, it finds no fault.
 */
import { StoreError } from '../../src/base/errors.ts'
import type { Referee } from './referee.ts'

/**
 * Runs the build. A client takes its refusal to make the index ready for one to try again, and another build
 * may mend what this one left. So the refusal counts here. Rejects as `build` does.
 */
export async function judgeBuild(
  referee: Referee,
  index: string,
  build: () => Promise<void>,
): Promise<void> {
  const sentence = 'A build left an index unlike its rows, though every writer kept the index.'
  try {
    await build()
    referee.judged('IDX-6')
  } catch (error) {
    const said = error instanceof StoreError && hasFaults(error) ? error.message : undefined
    if (said !== undefined) referee.check(false, 'IDX-6', sentence, () => ({ index, said }))
    throw error
  }
}

/** Whether the build compared the index with its rows and did not make it ready. */
function hasFaults({ code, detail }: StoreError): boolean {
  return code === 'unavailable' && detail.index === 'building'
}
