/**
 * The world: virtual time and one queue of events. An event runs, then every promise it resolved
 * runs to its end, and only then comes the next event; idle time is skipped.
 *
 * Code in the world may await nothing but what an event of the world resolves.
 */
import { assert } from '../../src/base/assert.ts'
import { EventHeap, type WorldEvent } from './event-heap.ts'
import { SeededRandom } from './random.ts'
import { TraceHash } from './trace-hash.ts'

export interface Scheduled {
  cancel(): void
}

/** Why a stretch of the run ended. `idle`: nothing was left to happen. */
export type Ending = 'done' | 'deadline' | 'idle' | 'events'

/** How often the loop lets the process look at rejected promises and its own timers. */
const eventsPerTurn = 128

/** A line of what happened, for those who watch a run. */
export type Watcher = (timeMicros: number, label: string) => void

export class World {
  readonly random: SeededRandom
  readonly hash: TraceHash = new TraceHash()
  readonly #heap = new EventHeap()
  readonly #eventsMax: number
  #nowMicros = 0
  #sequence = 0
  #eventCount = 0
  #failure: { readonly error: unknown } | undefined
  #watcher: Watcher | undefined
  #label = ''
  #endings: (() => void)[] = []

  /** `eventsMax` bounds a run that would not end: a storm of messages, a loop of timers. */
  constructor(seed: number, eventsMax: number) {
    this.random = new SeededRandom(String(seed))
    this.#eventsMax = eventsMax
  }

  get nowMicros(): number {
    return this.#nowMicros
  }

  get eventCount(): number {
    return this.#eventCount
  }

  /** Of the event that runs, or ran last. */
  get label(): string {
    return this.#label
  }

  /** Calls `act` when this event and every promise that it has resolved have run to their end. */
  atTurnEnd(act: () => void): void {
    this.#endings.push(act)
  }

  watch(watcher: Watcher): void {
    this.#watcher = watcher
  }

  /** Runs `run` after `delayMicros`, behind events already scheduled for that moment. */
  schedule(delayMicros: number, label: string, run: () => void): Scheduled {
    assert(Number.isSafeInteger(delayMicros) && delayMicros >= 0, 'world: a delay is a count')
    const timeMicros = this.#nowMicros + delayMicros
    const event = new ScheduledEvent(timeMicros, this.#sequence++, label, run)
    this.#heap.push(event)
    return event
  }

  /** Resolves after `delayMicros` of the world's time. */
  sleep(delayMicros: number): Promise<void> {
    return new Promise((resolve) => void this.schedule(delayMicros, 'wake', resolve))
  }

  /** Ends the run with this error: the rejection of a promise without a waiter. */
  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** Lets things happen until `isDone`, asked after every event, or until the deadline. */
  async run(isDone: () => boolean, deadlineMicros: number): Promise<Ending> {
    const ending = await this.#runEvents(isDone, deadlineMicros)
    if (ending === 'done') await turn()
    if (this.#failure !== undefined) throw this.#failure.error
    return ending
  }

  /** By calls and not by awaiting: promises of its own would be a tenth of all that a run makes. */
  #runEvents(isDone: () => boolean, deadlineMicros: number): Promise<Ending> {
    return new Promise((resolve, reject) => {
      const goOn = (): void => {
        try {
          const ending = this.#runNext(isDone, deadlineMicros)
          if (ending !== undefined) resolve(ending)
          else if (this.#eventCount % eventsPerTurn === 0) setImmediate(goOn)
          else void settled.then(onSettled)
        } catch (error) {
          reject(error)
        }
      }
      // A tick queued by a microtask comes when no microtask is left.
      const onSettled = (): void => process.nextTick(goOn)
      void settled.then(onSettled)
    })
  }

  /** Runs an event, unless that was it: then it tells why. */
  #runNext(isDone: () => boolean, deadlineMicros: number): Ending | undefined {
    if (this.#endings.length > 0) this.#endTurn()
    if (this.#failure !== undefined) throw this.#failure.error
    if (this.#eventCount >= this.#eventsMax) return 'events'
    if (isDone()) return 'done'
    for (;;) {
      const event = this.#heap.pop()
      if (event === undefined) return 'idle'
      if (event.timeMicros > deadlineMicros) {
        this.#heap.push(event)
        this.#nowMicros = Math.max(this.#nowMicros, deadlineMicros)
        return 'deadline'
      }
      const { run } = event
      if (run === undefined) continue
      this.#begin(event)
      run()
      return undefined
    }
  }

  #endTurn(): void {
    const endings = this.#endings
    this.#endings = []
    for (const act of endings) act()
  }

  #begin(event: WorldEvent): void {
    assert(event.timeMicros >= this.#nowMicros, 'world: time went back')
    this.#nowMicros = event.timeMicros
    this.#eventCount += 1
    this.#label = event.label
    this.hash.number(event.timeMicros)
    this.hash.text(event.label)
    this.#watcher?.(event.timeMicros, event.label)
  }
}

/** One object an event, since few events are ever cancelled. */
class ScheduledEvent implements WorldEvent, Scheduled {
  readonly timeMicros: number
  readonly sequence: number
  readonly label: string
  run: (() => void) | undefined

  constructor(timeMicros: number, sequence: number, label: string, run: () => void) {
    this.timeMicros = timeMicros
    this.sequence = sequence
    this.label = label
    this.run = run
  }

  cancel(): void {
    this.run = undefined
  }
}

const settled = Promise.resolve()

/** A turn of the real loop, in which it reports unhandled rejections. */
function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve))
}
