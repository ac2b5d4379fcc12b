/** Running a function that only reads: at one view, without locks, so that nothing is in conflict with it. */
import type { GroupId, Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import { transactionTimeoutMs } from './limits.ts'
import type { GroupPort, ReadFrom, View } from '../group/group-port.ts'
import { PortReads, type Reads, type ScanPage, type ScanRange, type StoredRow } from './reads.ts'
import { signalled } from './signalled.ts'
import { inTurn, inTurnUntil, Turn } from './turn.ts'

export interface ReadOptions {
  readonly clock: Clock
  readonly timeoutMs?: number | undefined
  /** A position that the session has seen already. */
  readonly atLeast?: Position | undefined
  /** The function is an application's, and may never end: it is given up when the time is over. */
  readonly isBounded?: boolean | undefined
  /** Gives the call up (`signalled.ts`). */
  readonly signal?: AbortSignal | undefined
}

export interface ReadResult<Value> {
  readonly value: Value
  /** The view that was read; undefined when nothing was read. */
  readonly view: View | undefined
}

/** Reads without locks, which nothing can be in conflict with. */
export async function runRead<Value>(
  port: GroupPort,
  group: GroupId,
  from: ReadFrom,
  options: ReadOptions,
  run: (reads: ReadHandle) => Promise<Value>,
): Promise<ReadResult<Value>> {
  port.checkOpen?.()
  const { signal } = options
  if (signal === undefined) return readAt(port, group, from, options, run)
  const own = port.until?.(signal) ?? port
  return signalled(signal, () => readAt(own, group, from, options, run))
}

async function readAt<Value>(
  port: GroupPort,
  group: GroupId,
  from: ReadFrom,
  options: ReadOptions,
  run: (reads: ReadHandle) => Promise<Value>,
): Promise<ReadResult<Value>> {
  const { clock, timeoutMs = transactionTimeoutMs, atLeast, signal } = options
  const deadlineMs = clock.monotonicMs() + timeoutMs
  const rows = new PortReads(port, group, from, { clock, deadlineMs, atLeast })
  const turn = new Turn('read')
  const work = (): Promise<Value> => run(new ReadHandle(rows, turn))
  const until = { clock, deadlineMs, timeoutMs, signal }
  const value = await (options.isBounded === true
    ? inTurnUntil(turn, work, until)
    : inTurn(turn, work))
  const view = rows.openedView()
  return { value, view: view instanceof Promise ? await view : view }
}

/** Rows to read, as long as the turn lasts. */
export class ReadHandle implements Reads {
  readonly group: GroupId
  readonly turn: Turn
  /** The same for who asks the turn himself. */
  readonly rows: Reads

  constructor(rows: Reads, turn: Turn) {
    this.group = rows.group
    this.turn = turn
    this.rows = rows
  }

  view(): Promise<View> {
    return this.turn.take(() => this.rows.view())
  }

  get(key: Uint8Array): Promise<StoredRow | undefined> {
    return this.turn.take(() => this.rows.get(key))
  }

  getMany(keys: readonly Uint8Array[]): Promise<readonly (StoredRow | undefined)[]> {
    return this.turn.take(() => this.rows.getMany(keys))
  }

  scan(range: ScanRange): Promise<ScanPage> {
    return this.turn.take(() => this.rows.scan(range))
  }
}
