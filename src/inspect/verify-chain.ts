/**
 * Whether flushes lead to one another (LOG-15), and whether the data store has taken in what the log holds through the
 * mark (LOG-7). Of each group, a flush names the one before that names it; the group's state record names the last one
 * that a start does not fold. An older state record in the place of the newest would be believed otherwise.
 */
import type { GroupId } from '../base/ids.ts'
import type { FlushHeader } from '../log/flush.ts'
import type { DataLooks } from './data-looks.ts'
import type { Findings, NameGroup } from './finding.ts'

export class ChainCheck {
  readonly #findings: Findings
  readonly #nameGroup: NameGroup
  /** Of each group, the last flush so far that names it. */
  readonly #last = new Map<GroupId, number>()
  /** The groups whose last flush is of an earlier build, which the next one need not know of. */
  readonly #old = new Set<GroupId>()
  /** Flushes whose groups are not known: they are damaged, or missing. */
  readonly #unread = new Set<number>()
  #next: number | undefined

  constructor(findings: Findings, nameGroup: NameGroup) {
    this.#findings = findings
    this.#nameGroup = nameGroup
  }

  /** The next flush, ascending. */
  take({ number: flush, groups }: FlushHeader): void {
    for (let gap = this.#next ?? flush; gap < flush; gap++) this.#unread.add(gap)
    this.#next = flush + 1
    for (const { group, previous } of groups) {
      const last = this.#last.get(group)
      const isAfterOld = this.#old.has(group)
      this.#last.set(group, flush)
      if (previous === undefined) this.#old.add(group)
      else if (isAfterOld) this.#old.delete(group)
      if (previous === undefined || last === undefined || last === previous) continue
      if (this.#unread.has(previous) || (previous === 0 && isAfterOld)) continue
      const text = `flush ${flush} names flush ${previous} as the one before it of ${this.#nameGroup(group)}, and flush ${last} is`
      this.#findings.add('log', text, { flush, group })
    }
  }

  /** Compares with the state records: `through` is the mark's flush. */
  compare(looks: Pick<DataLooks, 'lastFlush'>, through: number): void {
    for (const [group, last] of this.#last) {
      // A start folds that flush, and knows so which one is the last.
      if (last > through) continue
      const flush = looks.lastFlush(group)
      if (flush === last || flush === 'untold') continue
      if (flush !== undefined && this.#unread.has(flush)) continue
      const name = this.#nameGroup(group)
      const text =
        flush === undefined
          ? `data/ has taken in flush ${last}, which names ${name}, and has no state record of it that can be read`
          : `the state record of ${name} names flush ${flush} as the last one, and flush ${last} names it: an older record stands in its place`
      this.#findings.add('data', text, { flush: last, group })
    }
  }
}
