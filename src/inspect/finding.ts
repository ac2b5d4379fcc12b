/** The damage that a check of a stopped node's stores finds: a sentence each, and the place. */
import { bytesOfGroup, type GroupId, type Position } from '../base/ids.ts'

export type StoreName = 'log' | 'data'

export interface Finding {
  readonly store: StoreName
  /** One sentence, with the place in it. */
  readonly text: string
  readonly flush?: number
  /** Its bytes in hexadecimal digits. */
  readonly group?: string
  readonly position?: number
}

export interface Place {
  readonly flush?: number
  readonly group?: GroupId
  readonly position?: Position
}

/** How a group is called in a sentence. */
export type NameGroup = (group: GroupId) => string

/** Findings that are kept in words; the others are counted. */
export const findingsKept = 1_000

export class Findings {
  readonly list: Finding[] = []
  readonly #texts = new Set<string>()
  #count = 0

  /** All, those that are not kept included. */
  get count(): number {
    return this.#count
  }

  /** The same sentence counts once. */
  add(store: StoreName, text: string, { flush, group, position }: Place = {}): void {
    if (this.#texts.has(text)) return
    this.#count += 1
    if (this.list.length >= findingsKept) return
    this.#texts.add(text)
    this.list.push({
      store,
      text,
      ...(flush !== undefined && { flush }),
      ...(group !== undefined && { group: formatGroupHex(group) }),
      ...(position !== undefined && { position }),
    })
  }
}

/** Damage of a file, as a check or a read of its store tells it. */
export function tellDamage(findings: Findings, store: StoreName, what: string): void {
  findings.add(store, `${store}/${what}`)
}

export function formatGroupHex(group: GroupId): string {
  return Buffer.from(bytesOfGroup(group)).toString('hex')
}
