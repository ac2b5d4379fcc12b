/**
 * Whether the data store has taken in what the log holds through the mark (LOG-7): each record of these flushes is in a
 * row of its position, and the row is not older than the record. A row that damage hides, or an older one in its place,
 * would be believed otherwise: votes rest on it.
 */
import type { GroupId, Position } from '../base/ids.ts'
import { compareBytes } from '../base/bytes.ts'
import type { FlushHeader, RecordHeader } from '../log/flush.ts'
import { positionKey } from '../store/row-format.ts'
import type { DataLooks } from './data-looks.ts'
import type { Findings, NameGroup } from './finding.ts'

/** Records that are looked up in one go, in the order of their rows: neighbours share a block. */
const recordsAtOnce = 50_000

interface Told {
  readonly key: Uint8Array
  readonly group: GroupId
  readonly position: Position
  readonly flush: number
  readonly index: number
  /** Of the same flush. */
  readonly records: readonly RecordHeader[]
}

export class PositionCheck {
  readonly #looks: DataLooks
  readonly #findings: Findings
  readonly #nameGroup: NameGroup
  readonly #through: number
  #told: Told[] = []

  /** `through`: the mark's flush. */
  constructor(looks: DataLooks, findings: Findings, nameGroup: NameGroup, through: number) {
    this.#looks = looks
    this.#findings = findings
    this.#nameGroup = nameGroup
    this.#through = through
  }

  take({ number: flush, records }: FlushHeader): void {
    if (flush > this.#through) return
    for (const [index, { group, position }] of records.entries()) {
      const key = positionKey(group, position)
      this.#told.push({ key, group, position, flush, index, records })
    }
    if (this.#told.length >= recordsAtOnce) this.end()
  }

  /** Looks up what was taken and not looked up yet. */
  end(): void {
    const told = this.#told.sort((one, other) => compareBytes(one.key, other.key))
    this.#told = []
    for (const one of told) this.#check(one)
  }

  #check({ group, position, flush, index, records }: Told): void {
    const row = this.#looks.position(group, position)
    // The pass over the rows tells that one cannot be read.
    if (row === 'damaged') return
    const where = `position ${position} of ${this.#nameGroup(group)}`
    const place = { flush, group, position }
    if (row === undefined) {
      const text = `data/ has no row of ${where}, which flush ${flush} speaks of`
      return this.#findings.add('data', text, place)
    }
    if (row.lastFlush < flush) {
      const text = `the row of ${where} knows flushes through ${row.lastFlush}, and flush ${flush} speaks of it: an older row stands in its place`
      return this.#findings.add('data', text, place)
    }
    const value = typeof row.place === 'object' ? row.place : undefined
    if (value?.flush !== flush || value.index === index) return
    const named = records[value.index]
    if (named?.group === group && named.position === position) return
    const text = `the row of ${where} says that its value is record ${value.index} of flush ${flush}, which is of another position`
    this.#findings.add('data', text, place)
  }
}
