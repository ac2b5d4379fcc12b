/** A binary heap of events, ordered by time and then by the order in which they were scheduled. */

export interface WorldEvent {
  readonly timeMicros: number
  readonly sequence: number
  readonly label: string
  /** Absent once cancelled. */
  run: (() => void) | undefined
}

export class EventHeap {
  readonly #events: WorldEvent[] = []

  get size(): number {
    return this.#events.length
  }

  push(event: WorldEvent): void {
    const events = this.#events
    let at = events.length
    events.push(event)
    while (at > 0) {
      const parentAt = (at - 1) >> 1
      const parent = events[parentAt]
      if (parent === undefined || !isBefore(event, parent)) break
      events[at] = parent
      at = parentAt
    }
    events[at] = event
  }

  /** The earliest event, taken out; undefined when there is none. */
  pop(): WorldEvent | undefined {
    const events = this.#events
    const first = events[0]
    const last = events.pop()
    if (first === undefined || last === undefined || events.length === 0) return first
    let at = 0
    for (;;) {
      const childAt = this.#earlierChild(at)
      const child = events[childAt]
      if (child === undefined || !isBefore(child, last)) break
      events[at] = child
      at = childAt
    }
    events[at] = last
    return first
  }

  #earlierChild(at: number): number {
    const leftAt = 2 * at + 1
    const left = this.#events[leftAt]
    const right = this.#events[leftAt + 1]
    const isRight = left !== undefined && right !== undefined && isBefore(right, left)
    return isRight ? leftAt + 1 : leftAt
  }
}

function isBefore(a: WorldEvent, b: WorldEvent): boolean {
  return a.timeMicros < b.timeMicros || (a.timeMicros === b.timeMicros && a.sequence < b.sequence)
}
