/**
 * One trigger in one shard, for as long as this worker has it: cells in the order of the log, one at a
 * time; each until it is handled, or marked; the offset saved behind them.
 *
 * TRIG-1  An offset is saved only up to where every cell was handled successfully, or is marked.
 * TRIG-3  Cells come one by one, none left out: one that fails is tried again, then marked, with a row.
 *
 * The worker claims the row just before it handles the first cell of the shard: a shard in which nothing
 * happens costs no write. The offset that it peeked at may be behind, and the claim tells.
 */
import { assert } from '../base/assert.ts'
import type { Cell } from '../cells/cell.ts'
import type { MarkedCell, Offset } from './offset-rows.ts'
import type { LogPlace } from '../cells/operation.ts'
import type { Cells } from '../client/cells.ts'
import type { LogPage } from '../client/options.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import { pause } from '../time/moments.ts'
import { attempt, untilDone, type Failure } from './attempt.ts'
import type { TriggerLimits } from './limits.ts'
import type { Trigger } from './definition.ts'
import type { TriggerEvent } from './event.ts'
import type { Changed, Claim, OffsetStore } from './offset-store.ts'
import type { Slots } from '../base/concurrency.ts'

export interface ShardRunParts {
  readonly trigger: Trigger
  readonly claim: Claim
  readonly offsets: OffsetStore
  readonly cells: Cells
  readonly clock: Clock
  readonly random: Random
  readonly limits: TriggerLimits
  readonly slots: Slots
  /** For each look at where to go on. */
  readonly opens: Slots
  /** Whether the trigger runs: it is not paused, nor stopped. */
  mayRun(): boolean
  /** `marked` cells of the shard are marked. Resolves when the service knows, or cannot be reached now. */
  report(shard: number, marked: number): Promise<void>
  /** None of its cells is marked, as it is opened: the service may count some that its last worker died over. */
  onNoneMarked(shard: number): void
  /** It can take more cells. */
  onReady(run: ShardRun): void
  /** A cell is done with, of the answer that it came in. */
  onEvent(event: TriggerEvent): void
  /** Another worker has the shard. */
  onDisplaced(run: ShardRun): void
  onFailed(error: unknown): void
}

/** Instead of a failure: the trigger was stopped before it came to that. */
const notCalled = 'it was not called'

/** A cell that waits for its turn, and how to say that it does no more. */
interface Waiting {
  readonly cell: Cell
  readonly release: () => void
}

export class ShardRun {
  readonly claim: Claim
  /** Whether a tail call is under way that asks for its cells. */
  isAsked = false
  isStopped = false
  readonly #parts: ShardRunParts
  /** Where to ask for cells; undefined until that is known. */
  #place: LogPlace | undefined
  /** Counts the times that the offset was looked up anew: work that began before is of no use then. */
  #epoch = 0
  /** The same for requests of the tail: it also rises when the run no longer wants some of the cells. */
  #asked = 0
  #queue: Waiting[] = []
  #again: MarkedCell[] = []
  #peeked: Offset | undefined
  /** The service counts cells that are not marked. */
  #isMiscounted = false
  #offset: Offset | undefined
  /** The last cell that is done with, and the offset that is saved; undefined before the first page. */
  #done: number | undefined
  #saved = 0
  #attempts = 0
  #isBackingOff = false
  #wake: () => void = () => undefined
  #work: Promise<void> | undefined
  #saving: Promise<void> | undefined

  constructor(parts: ShardRunParts) {
    this.#parts = parts
    this.claim = parts.claim
  }

  /** The place to be asked for, and a name for the answer to come back under; undefined: nothing now. */
  get wanted(): { readonly place: LogPlace; readonly asked: number } | undefined {
    const place = this.#place
    const isFull = this.#queue.length >= this.#parts.limits.pageCells || this.#isBackingOff
    return place === undefined || isFull || this.isStopped
      ? undefined
      : { place, asked: this.#asked }
  }

  /** Looks up where to go on. */
  async open(): Promise<void> {
    const epoch = (this.#epoch += 1)
    this.#forget()
    this.#wake()
    const { opens, trigger, claim } = this.#parts
    // A run that waits to try again holds no slot: else shards that cannot be reached would take all slots.
    const peeked = await this.#untilDone(() => opens.during(() => this.#peek(epoch)))
    if (peeked === undefined || epoch !== this.#epoch || this.isStopped) return
    const { row } = peeked
    this.#peeked = row
    const { shard } = claim
    this.#place =
      row === undefined && trigger.since > 0
        ? { kind: 'since', shard, timestamp: trigger.since }
        : { kind: 'after', shard, addedId: row?.after ?? 0 }
    this.#done = this.#place.kind === 'after' ? this.#place.addedId : undefined
    this.#saved = this.#done ?? 0
    this.#parts.onReady(this)
    // Cells that are to be tried again are looked for under a claim.
    if (row !== undefined && row.marked > 0) this.go()
    else if (row !== undefined) this.#parts.onNoneMarked(shard)
  }

  /** The service counts cells of it that are not marked: the run reports again, under a claim (TRIG-7). */
  recount(): void {
    this.#isMiscounted = true
    const { claim, report } = this.#parts
    if (this.#offset === undefined) this.go()
    else void report(claim.shard, this.#offset.marked)
  }

  /** Nothing, when it was stopped or opened anew while it waited. */
  async #peek(epoch: number): Promise<{ readonly row: Offset | undefined } | undefined> {
    if (epoch !== this.#epoch || this.isStopped) return undefined
    const { offsets, claim } = this.#parts
    return { row: await offsets.peek(claim.shard) }
  }

  /** The answer to a request of the tail; `release` is called for each cell when it is done with. */
  take(page: LogPage, asked: number, release: () => void): void {
    if (asked !== this.#asked || this.isStopped) {
      for (const _ of page.items) release()
      return
    }
    this.#done ??= (page.items[0]?.addedId ?? page.cursor + 1) - 1
    const { shard, cursor: next, asOf } = page
    this.#countGone(page)
    const at = asOf === undefined ? {} : { asOf }
    this.#place = { kind: 'after', shard, addedId: next, ...at }
    if (page.items.length === 0) return
    this.#queue.push(...page.items.map((cell) => ({ cell, release })))
    this.go()
  }

  /** Added ids have no gaps but those of cells that are gone. */
  #countGone({ shard, cursor, items }: LogPage): void {
    if (this.#place?.kind !== 'after') return
    const cells = cursor - this.#place.addedId - items.length
    const { trigger, onEvent } = this.#parts
    if (cells > 0) onEvent({ kind: 'passed-over', trigger: trigger.name, shard, cells })
  }

  /** Works, when there is something to be done and it does not already. */
  go(): void {
    this.#work ??= this.#run()
      .catch((error: unknown) => this.#giveUp(error))
      .finally(() => {
        this.#work = undefined
        // Cells that came in the meantime have started no work.
        if (this.#hasWork) this.go()
        else this.#parts.onReady(this)
      })
  }

  /** No handler is called any more; resolves when none is at work, and the offset is saved. */
  async stop(): Promise<void> {
    this.isStopped = true
    this.#wake()
    await this.#work
    this.#save()
    await this.#allSaved()
    this.#forget()
  }

  async #run(): Promise<void> {
    // The caller goes on first.
    await Promise.resolve()
    while (this.#hasWork) {
      if (this.#offset === undefined && !(await this.#claimed())) continue
      const epoch = this.#epoch
      const again = this.#again.shift()
      if (again !== undefined) await this.#tryMarked(again, epoch)
      else await this.#tryNext(epoch)
      this.#parts.onReady(this)
    }
    this.#save()
  }

  get #hasWork(): boolean {
    return this.#mayRun() && (this.#queue.length > 0 || this.#hasRetries)
  }

  get #hasRetries(): boolean {
    if (this.#offset !== undefined) return this.#again.length > 0
    return this.#isMiscounted || (this.#peeked?.marked ?? 0) > 0
  }

  #mayRun(): boolean {
    return !this.isStopped && this.#parts.mayRun()
  }

  /** Claims the shard, unless what waits in it is of other columns alone, and not much. */
  async #claimed(): Promise<boolean> {
    const { offsets, claim, trigger, limits } = this.#parts
    const isLittle = this.#unsaved + this.#queue.length < limits.unsavedMax
    const isOfOthers = this.#queue.every(({ cell }) => cell.column !== trigger.column)
    if (isLittle && isOfOthers && !this.#hasRetries) {
      this.#passOver()
      return false
    }
    const epoch = this.#epoch
    const changed = await this.#untilDone(() => offsets.claim(claim, this.#done ?? 0))
    if (changed === undefined || epoch !== this.#epoch) return false
    return this.#onClaimed(changed)
  }

  async #onClaimed({ kind, offset }: Changed): Promise<boolean> {
    if (kind === 'displaced') return this.#displaced()
    const done = this.#done ?? 0
    const from = this.#peeked?.after ?? done
    // It was changed by hand, or saved further back than it was peeked at.
    if (offset.revision !== (this.#peeked?.revision ?? 0) || offset.after < from) {
      await this.open()
      return false
    }
    this.#offset = offset
    this.#saved = offset.after
    this.#skipTo(offset.after)
    const epoch = this.#epoch
    const again = await this.#lookForMarked(offset)
    // It was looked up anew meanwhile where to go on: that has to be claimed, too.
    if (epoch !== this.#epoch) return false
    this.#again = again
    return true
  }

  /** The shard's worker before this one has come further than this one had seen. */
  #skipTo(after: number): void {
    while (this.#queue[0] !== undefined && this.#queue[0].cell.addedId <= after) this.#shift()
    this.#done = Math.max(this.#done ?? 0, after)
    const place = this.#place
    if (place?.kind !== 'after' || place.addedId >= after) return
    this.#place = { kind: 'after', shard: place.shard, addedId: after }
    this.#asked += 1
  }

  /** Says again how many there are, or that none is left, since who changed that may have died before it did. */
  async #lookForMarked({ marked }: Offset): Promise<MarkedCell[]> {
    const wereNone = (this.#peeked?.marked ?? 0) === 0
    if (marked === 0 && wereNone && !this.#isMiscounted) return []
    this.#isMiscounted = false
    const { offsets, claim, report } = this.#parts
    const found = await this.#untilDone(() => offsets.marked(claim.shard))
    await report(claim.shard, marked)
    return (found ?? []).filter(({ isRetried }) => isRetried)
  }

  /** Cells of other columns are passed without a slot, and saved now and then. */
  #passOver(): void {
    const { trigger } = this.#parts
    while (this.#queue[0] !== undefined && this.#queue[0].cell.column !== trigger.column) {
      this.#pass(this.#queue[0].cell)
    }
  }

  /** A cell is done with. */
  #pass({ addedId }: Cell): void {
    // The cells that lie between were purged: a log has no other gaps (CELL-3).
    assert(addedId > (this.#done ?? 0), 'TRIG-3: a cell comes out of its order')
    this.#done = addedId
    this.#attempts = 0
    this.#shift()
  }

  #shift(): void {
    this.#queue.shift()?.release()
  }

  async #tryNext(epoch: number): Promise<void> {
    const { limits } = this.#parts
    this.#passOver()
    const next = this.#queue[0]?.cell
    if (this.#unsaved >= limits.unsavedMax) {
      this.#save()
      return this.#allSaved()
    }
    if (next === undefined) return
    const attempts = this.#attempts + 1
    const failure = await this.#handle(next, attempts)
    // It was looked up anew meanwhile where to go on.
    if (epoch !== this.#epoch || failure === notCalled) return
    this.#attempts = attempts
    if (failure !== undefined) return this.#onFailure(next, failure, epoch)
    this.#pass(next)
    this.#save()
  }

  get #unsaved(): number {
    return (this.#done ?? 0) - this.#saved
  }

  async #handle(cell: Cell, nth: number): Promise<Failure> {
    const { slots, trigger, clock, cells, claim, onEvent } = this.#parts
    await slots.take()
    try {
      // It was stopped while it waited.
      if (!this.#mayRun()) return notCalled
      const given = { shard: claim.shard, ...cell }
      const context = { cells, attempt: nth }
      onEvent({ kind: 'calls', trigger: trigger.name, cell: given, claim })
      // The handler's own copy: its changes to the body are not there in the next attempt.
      const own = { ...given, body: structuredClone(cell.body) }
      const call = (): Promise<void> | void => trigger.handle(own, context)
      const failure = await attempt(clock, trigger.timeoutMs, call)
      const ended = { trigger: trigger.name, cell: given, claim, attempt: nth }
      if (failure === undefined) onEvent({ kind: 'handled', ...ended })
      else onEvent({ kind: 'failed', ...ended, error: failure })
      return failure
    } finally {
      slots.give()
    }
  }

  async #onFailure(cell: Cell, error: string, epoch: number): Promise<void> {
    if (!this.#mayRun()) return
    const { trigger } = this.#parts
    if (this.#attempts >= trigger.attemptsMax) return this.#mark(cell, error, epoch)
    this.#dropRest()
    this.#isBackingOff = true
    await this.#sleep(this.#delayMs())
    this.#isBackingOff = false
  }

  /** Unless it is stopped, or looks up anew where to go on. */
  async #sleep(delayMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#parts.clock.setTimer(delayMs, resolve)
      this.#wake = () => {
        timer.cancel()
        resolve()
      }
    })
    this.#wake = () => undefined
  }

  /**
   * Drops the cells after one that fails: it may be long until their turn, and the tail asks for them again
   * then.
   */
  #dropRest(): void {
    const [head] = this.#queue
    const place = this.#place
    if (head === undefined || place === undefined) return
    for (const { release } of this.#queue) release()
    this.#queue = [{ cell: head.cell, release: () => undefined }]
    this.#place = { kind: 'after', shard: place.shard, addedId: head.cell.addedId }
    // Answers to earlier requests begin behind a later cell.
    this.#asked += 1
  }

  #delayMs(): number {
    const { random, trigger } = this.#parts
    const { retryMs, retryMaxMs } = trigger
    const longestMs = Math.min(retryMaxMs, retryMs * 2 ** Math.min(this.#attempts - 1, 30))
    return random.int(Math.ceil(longestMs / 2), longestMs)
  }

  /** Puts the cell aside, says so, and goes on behind it. */
  async #mark(cell: Cell, error: string, epoch: number): Promise<void> {
    const { offsets, claim, trigger, onEvent, report } = this.#parts
    await this.#allSaved()
    const held = this.#offset
    if (held === undefined || epoch !== this.#epoch) return
    const attempts = this.#attempts
    const work = (): Promise<Changed> => offsets.mark(claim, held, cell, { attempts, error })
    const changed = await this.#untilDone(work)
    if (changed === undefined || !(await this.#isDone(changed, epoch))) return
    onEvent({ kind: 'marked', trigger: trigger.name, shard: claim.shard, cell, attempts, error })
    this.#pass(cell)
    this.#saved = Math.max(this.#saved, changed.offset.after)
    await report(claim.shard, changed.offset.marked)
  }

  /** A marked cell, out of its turn. */
  async #tryMarked(marked: MarkedCell, epoch: number): Promise<void> {
    const { offsets, claim, cells, trigger, report, onEvent } = this.#parts
    const cell = await this.#untilDone(() => cells.get(marked))
    // It was there when it was marked: since then it was purged, or has expired, and nothing is left to be done.
    const failure = cell === undefined ? undefined : await this.#handle(cell, 1)
    if (failure === notCalled) return void this.#again.unshift(marked)
    await this.#allSaved()
    const held = this.#offset
    if (held === undefined || epoch !== this.#epoch || this.isStopped) return
    const { addedId } = marked
    const again = { ...marked, attempts: marked.attempts + 1, error: failure ?? '' }
    const work = (): Promise<Changed> =>
      failure === undefined
        ? offsets.unmark(claim, held, addedId)
        : offsets.keepMarked(claim, held, again)
    const changed = await this.#untilDone(work)
    if (changed === undefined || !(await this.#isDone(changed, epoch))) return
    const of = { trigger: trigger.name, shard: claim.shard }
    if (failure === undefined) onEvent({ kind: 'unmarked', ...of, addedId })
    await report(claim.shard, changed.offset.marked)
  }

  /** Takes up what became of a change; false when this run cannot go on from there. */
  async #isDone({ kind, offset }: Changed, epoch: number): Promise<boolean> {
    if (epoch !== this.#epoch) return false
    if (kind === 'displaced') return this.#displaced()
    if (kind === 'moved') {
      await this.open()
      return false
    }
    this.#offset = offset
    return true
  }

  /** An error that is no outage would come again at once, and the handler be called for the same cell. */
  #giveUp(error: unknown): void {
    this.isStopped = true
    this.#parts.onFailed(error)
  }

  #displaced(): false {
    this.isStopped = true
    this.#parts.onDisplaced(this)
    return false
  }

  /**
   * Saves what is done, as often as there is more. Cells that are done meanwhile are saved with the next one.
   */
  #save(): void {
    if (this.#offset === undefined || this.#unsaved <= 0) return
    const epoch = this.#epoch
    this.#saving ??= this.#saveAll()
      .catch((error: unknown) => this.#giveUp(error))
      .finally(() => {
        this.#saving = undefined
        // That save does not hold cells that were done as it ended, or since the offset was looked up anew.
        if (!this.isStopped || epoch !== this.#epoch) this.#save()
      })
  }

  async #allSaved(): Promise<void> {
    while (this.#saving !== undefined) await this.#saving
  }

  async #saveAll(): Promise<void> {
    const { offsets, claim, limits, onEvent, trigger } = this.#parts
    while (this.#offset !== undefined && this.#unsaved > 0) {
      const epoch = this.#epoch
      const held = this.#offset
      if (limits.saveMs > 0 && !this.isStopped) await pause(this.#parts, limits.saveMs)
      if (epoch !== this.#epoch) return
      const after = this.#done ?? 0
      const work = (): Promise<Changed> => offsets.save(claim, held, after)
      const changed = await this.#untilDone(work)
      if (changed === undefined || !(await this.#isDone(changed, epoch))) return
      assert(after <= (this.#done ?? 0), 'TRIG-1: an offset is ahead of what was handled')
      this.#saved = Math.max(this.#saved, after)
      onEvent({ kind: 'saved', trigger: trigger.name, claim, after })
    }
  }

  /** Once, when it is stopped: another worker waits for the shard. */
  #untilDone<Value>(work: () => Promise<Value>): Promise<Value | undefined> {
    const { clock, limits } = this.#parts
    return untilDone({ clock, pauseMs: limits.pauseMs, mayGoOn: () => !this.isStopped }, work)
  }

  #forget(): void {
    this.#asked += 1
    for (const { release } of this.#queue) release()
    this.#queue = []
    this.#again = []
    this.#offset = undefined
    this.#peeked = undefined
    this.#place = undefined
    this.#attempts = 0
  }
}
