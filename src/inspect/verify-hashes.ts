/**
 * Whether the rows of each group are those that its state record counts (HASH-1): a row that is missing, or an older one in
 * its place, has a sound checksum of its own or none at all.
 *
 * The rows of a group lie together, and all rows lie before all state records.
 */
import type { GroupId } from '../base/ids.ts'
import { hashOfNothing, RowsSum } from '../store/group-hash.ts'
import type { DataLooks } from './data-looks.ts'
import type { Findings, NameGroup } from './finding.ts'

export class HashCheck {
  readonly #findings: Findings
  readonly #nameGroup: NameGroup
  readonly #looks: Pick<DataLooks, 'hash' | 'isTakenOver'>
  /** Groups that have a row, or had one that cannot be read. */
  readonly #met = new Set<GroupId>()
  #group: GroupId | undefined
  #sum = new RowsSum()
  /** A row cannot be read: that is a finding of its own. */
  #isPart = false

  constructor(
    findings: Findings,
    nameGroup: NameGroup,
    looks: Pick<DataLooks, 'hash' | 'isTakenOver'>,
  ) {
    this.#findings = findings
    this.#nameGroup = nameGroup
    this.#looks = looks
  }

  /** The newest version of a row. */
  take(group: GroupId, key: Uint8Array, timestamp: number, value: Uint8Array): void {
    this.#turnTo(group)
    this.#sum.add(key, timestamp, value)
  }

  /** A row of the group that cannot be read. */
  passOver(group: GroupId): void {
    this.#turnTo(group)
    this.#isPart = true
  }

  #turnTo(group: GroupId): void {
    if (group === this.#group) return
    this.endRows()
    this.#group = group
    this.#met.add(group)
  }

  /** After the last row of the last group. */
  endRows(): void {
    const group = this.#group
    const counted = this.#sum.hash
    const isWhole = !this.#isPart
    this.#group = undefined
    this.#sum = new RowsSum()
    this.#isPart = false
    if (group !== undefined && isWhole) this.#compare(group, counted)
  }

  /** The state record of a group, after all rows. */
  takeState(group: GroupId): void {
    if (!this.#met.has(group)) this.#compare(group, hashOfNothing)
  }

  #compare(group: GroupId, counted: string): void {
    const told = this.#looks.hash(group)
    // The next start puts a snapshot in the place of all that the group has here.
    if (told === undefined || told === counted || this.#looks.isTakenOver(group)) return
    const text = `the rows of ${this.#nameGroup(group)} in data/ are not those that its state record counts: a row is missing, or another one stands in its place`
    this.#findings.add('data', text, { group })
  }
}
