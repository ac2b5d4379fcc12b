/**
 * A digest of the versions of a group that were superseded and may still be read: those that end
 * after the horizon. Of what ended before, some may be there and some gone already.
 */
import { RowSum } from './row-sum.ts'

interface PastVersion {
  readonly name: string
  readonly value: Uint8Array
  readonly end: number
}

export class PastSum {
  readonly #sum = new RowSum()
  readonly #counted = new Map<string, PastVersion>()
  /** In the order of their ends, but for those added since the horizon was raised last. */
  #queue: PastVersion[] = []
  #horizon = 0

  /** A version, named by its row and its start. */
  add(name: string, value: Uint8Array, end: number): void {
    this.remove(name)
    if (end <= this.#horizon) return
    const version = { name, value, end }
    this.#counted.set(name, version)
    this.#queue.push(version)
    this.#toggle(version, true)
  }

  remove(name: string): void {
    const version = this.#counted.get(name)
    if (version === undefined) return
    this.#counted.delete(name)
    this.#toggle(version, false)
  }

  #toggle({ name, value, end }: PastVersion, isAdded: boolean): void {
    this.#sum.toggle(Buffer.from(name, 'latin1'), value, end, isAdded)
  }

  /** Versions that end at the horizon or before count no more. */
  raise(horizon: number): void {
    this.#horizon = Math.max(this.#horizon, horizon)
    this.#queue.sort((a, b) => a.end - b.end)
    const kept = this.#queue.findIndex(({ end }) => end > this.#horizon)
    const passed = this.#queue.splice(0, kept < 0 ? this.#queue.length : kept)
    for (const version of passed) {
      if (this.#counted.get(version.name) === version) this.remove(version.name)
    }
  }

  digest(): string {
    return this.#sum.digest()
  }
}

/** Names a version among those of its group. */
export function versionName(row: string, start: number): string {
  return `${row}@${start}`
}
