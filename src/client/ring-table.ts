/**
 * Things under rising numbers, from when they are added until they are taken: a ring, and not a Map. A Map
 * that is written and emptied all the time is laid out anew every few hundred numbers, and what it leaves
 * behind points to what comes after it: once V8 takes the first of these for old, all stay, with
 * what was in them, until it looks through the old ones. That was a fifth of what a read cost a client.
 */
import { assert } from '../base/assert.ts'

interface Slot<Thing> {
  readonly number: number
  readonly thing: Thing
}

/** Places of a new ring: most clients have few calls under way. */
const placesMin = 64

export class RingTable<Thing> {
  readonly #max: number
  #slots: (Slot<Thing> | undefined)[] = Array.from({ length: placesMin })
  #drawn = 0
  #count = 0

  /** Holds at most `max` at a time. */
  constructor(max: number) {
    this.#max = max
  }

  /** Its number, 1 or more: higher than all before. Numbers whose place is still taken are left out. */
  add(thing: Thing): number {
    assert(this.#count < this.#max, 'client: more is under way than there may be')
    // Half of them are free, so that a free place is found soon.
    if (2 * this.#count >= this.#slots.length) this.#grow()
    const slots = this.#slots
    do this.#drawn += 1
    while (slots[this.#drawn % slots.length] !== undefined)
    this.#count += 1
    slots[this.#drawn % slots.length] = { number: this.#drawn, thing }
    return this.#drawn
  }

  /** A number under which nothing is kept. */
  draw(): number {
    return (this.#drawn += 1)
  }

  /** Those that had places of their own have them in a ring of twice the size, too. */
  #grow(): void {
    const slots: (Slot<Thing> | undefined)[] = Array.from({ length: 2 * this.#slots.length })
    for (const slot of this.#slots) if (slot !== undefined) slots[slot.number % slots.length] = slot
    this.#slots = slots
  }

  get(number: number): Thing | undefined {
    const slot = this.#slots[number % this.#slots.length]
    return slot?.number === number ? slot.thing : undefined
  }

  /** Undefined when there is nothing under this number, any more or yet. */
  take(number: number): Thing | undefined {
    const thing = this.get(number)
    if (thing === undefined) return undefined
    this.#slots[number % this.#slots.length] = undefined
    this.#count -= 1
    return thing
  }

  /** The numbers of those for which it holds, the lowest first. */
  where(holds: (thing: Thing) => boolean): readonly number[] {
    const found: number[] = []
    for (const slot of this.#slots) {
      if (slot !== undefined && holds(slot.thing)) found.push(slot.number)
    }
    return found.sort((a, b) => a - b)
  }
}
