/** Submissions of one session to one group, and rows as texts. */
import { latin1 } from '../../src/base/bytes.ts'
import type { GroupId } from '../../src/base/ids.ts'
import type { GroupPort, View } from '../../src/group/group-port.ts'
import type { KeyRange } from '../../src/group/outcome.ts'
import type { Outcome, Row, Submission } from '../../src/group/replica-port.ts'
import type { Mutation } from '../../src/group/transaction.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { newGroup, newName } from './footings.ts'

/** The time that an answer may take; nothing in a calm world takes that long. */
export const timeoutMs = 5_000
const lifeMicros = 300_000_000

export function bytesOf(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

export function rangeOf(gte: string, lt: string): KeyRange {
  return { gte: bytesOf(gte), lt: bytesOf(lt) }
}

/** `key=value` of a row; `none` where there is none. */
export function textOf(row: Row | undefined): string {
  return row === undefined ? 'none' : `${latin1(row.key)}=${latin1(row.value)}`
}

export function textsOf(rows: readonly (Row | undefined)[]): string {
  return rows.map(textOf).join(' ')
}

/** Texts such as `a=1`, a row written, and `a`, a row deleted. */
export function mutationsOf(texts: readonly string[]): Mutation[] {
  return texts.map((text) => {
    const [key = '', value] = text.split('=')
    return value === undefined
      ? { key: bytesOf(key) }
      : { key: bytesOf(key), value: bytesOf(value) }
  })
}

export type Committed = Outcome & { readonly kind: 'committed' }

export function committedOf(outcome: Outcome): Committed {
  if (outcome.kind !== 'committed') throw new Error(`not committed: ${JSON.stringify(outcome)}`)
  return outcome
}

/** One caller's transactions in a group of its own. */
export class Session {
  readonly group: GroupId
  readonly name: string = newName('session-')
  #sequence = 0
  readonly #clock: Clock

  constructor(clock: Clock, group: GroupId = newGroup()) {
    this.group = group
    this.#clock = clock
  }

  /** The next one of the session: it reads nothing, unless `change` says what. */
  submission(texts: readonly string[], change: Partial<Submission> = {}): Submission {
    const sequence = (this.#sequence += 1)
    return {
      group: this.group,
      intent: this.intent(sequence),
      ...{ attempt: 1, readPosition: 0, reads: [], ranges: [], allocations: [] },
      mutations: mutationsOf(texts),
      ...change,
    }
  }

  intent(sequence: number, change: Partial<Submission['intent']> = {}): Submission['intent'] {
    const expiresAt = this.#clock.wallMicros() + lifeMicros
    return { session: this.name, sequence, floor: 1, expiresAt, ...change }
  }
}

/** Every row of a group at a view, page by page. */
export async function allRows(port: GroupPort, group: GroupId, view: View): Promise<Row[]> {
  const rows: Row[] = []
  for (let gt: Uint8Array | undefined; ;) {
    const page = await port.scan(group, view, gt === undefined ? {} : { gt }, timeoutMs)
    rows.push(...page.rows)
    gt = page.rows.at(-1)?.key
    if (page.isWhole || gt === undefined) return rows
  }
}
