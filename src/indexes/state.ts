/**
 * The life of an index, of tables and over cells: its states, and which state follows which.
 *
 *   declared → known → building → ready → dropping
 *
 * - `declared`  The registry has it. A writer that has not looked at the registry since ignores it.
 * - `known`     Its declaration has certainly taken effect. From a grace later on all writers keep it.
 * - `building`  The grace is over, and entries of earlier rows are being filled in.
 * - `ready`     It was compared with the rows after that. Queries are answered.
 * - `dropping`  Queries are refused. When no program asks it any more, writers stop keeping it; when
 *               none keeps it, its entries are cleared.
 *
 * An index can be dropped in any state. An index that comes together with its table begins `ready`.
 */
import { assert } from '../base/assert.ts'
import { StoreError, type UnreadyIndex } from '../base/errors.ts'

export type IndexState = UnreadyIndex | 'ready'

export const nextStates: Readonly<Record<IndexState, readonly IndexState[]>> = {
  declared: ['known', 'dropping'],
  known: ['building', 'dropping'],
  building: ['ready', 'dropping'],
  ready: ['dropping'],
  dropping: [],
}

/** Asserts that the move is one of the life cycle; to stay in a state is none. */
export function checkMove(from: IndexState, to: IndexState): void {
  assert(nextStates[from].includes(to), `IDX-12: an index that is ${from} does not become ${to}`)
}

/** Whether queries are answered. */
export function isAsked(state: IndexState): state is 'ready' {
  return state === 'ready'
}

/** An index's name, and the flags by which the command line finds it: `--schema Fleet`. */
export interface IndexPlace {
  readonly name: string
  readonly flags: string
}

/** Why a query of the index is refused in this state. */
export function notAsked({ name, flags }: IndexPlace, state: UnreadyIndex): StoreError {
  if (state === 'dropping') {
    const message = `index ${name} is being dropped; leave it out of what this program declares`
    return new StoreError('not-found', message, { index: state })
  }
  const why = {
    declared: 'is declared: earlier rows are not in it yet',
    known: 'is known to writers: earlier rows are not in it yet',
    building: 'is being built: not all rows are in it yet',
  }
  const what = `trilithon index build ${flags} ${name} makes it ready, and index status shows its state`
  return new StoreError('unavailable', `index ${name} ${why[state]}; ${what}`, { index: state })
}

export function droppedMeanwhile(index: string): StoreError {
  return new StoreError('not-found', `index ${index} was dropped meanwhile`)
}
