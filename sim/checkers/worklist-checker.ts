/**
 * QUE-5 on every data disk: a group with a row under a topic is listed under it there. Whether it
 *       is listed in vain is not looked at: that only costs a look.
 */
import { findTopicText } from '../../src/group/worklist-key.ts'
import { latin1 } from '../../src/base/bytes.ts'
import type { Put } from '../../src/ports/storage.ts'
import { groupIn, rowIn } from './data-disks.ts'
import type { Referee } from './referee.ts'

interface WorklistOnDisk {
  /** Keys of rows, by the key of the listing that they ask for. */
  readonly rows: Map<string, Set<string>>
  readonly listed: Set<string>
}

const listingText = 'l'
const listingByte = listingText.charCodeAt(0)

export class WorklistChecker {
  readonly #referee: Referee
  readonly #disks = new Map<string, WorklistOnDisk>()

  constructor(referee: Referee) {
    this.#referee = referee
  }

  /** The node's disk is replaced: only the new disk's records count. */
  replace(node: string, puts: readonly Put[]): void {
    this.#disks.delete(node)
    this.onDurable(node, puts)
  }

  /** One batch, whole. */
  onDurable(node: string, puts: readonly Put[]): void {
    const disk = this.#disks.get(node) ?? {
      rows: new Map<string, Set<string>>(),
      listed: new Set(),
    }
    this.#disks.set(node, disk)
    const touched = new Set<string>()
    for (const { key, value } of puts) {
      if (key[0] === listingByte) {
        const text = latin1(key)
        if (value === undefined) disk.listed.delete(text)
        else disk.listed.add(text)
        touched.add(text)
      } else {
        const listing = noteRow(disk, key, value)
        if (listing !== undefined) touched.add(listing)
      }
    }
    for (const listing of touched) this.#check(node, disk, listing)
  }

  #check(node: string, { rows, listed }: WorklistOnDisk, listing: string): void {
    const count = rows.get(listing)?.size ?? 0
    this.#referee.check(
      count === 0 || listed.has(listing),
      'QUE-5',
      'A group has something on its worklist, and is not listed for it.',
      () => ({ node, listing, rows: count }),
    )
  }
}

/** The listing that a group's row asks for, when it is on a worklist. */
function noteRow({ rows }: WorklistOnDisk, key: Uint8Array, value: unknown): string | undefined {
  const found = rowIn(key)
  const topic = found && findTopicText(found.row)
  if (found === undefined || topic === undefined) return undefined
  const { row } = found
  const listing = `${listingText}${topic}${groupIn(key, found.end)}`
  const under = rows.get(listing) ?? new Set()
  if (value === undefined) under.delete(row)
  else under.add(row)
  if (under.size === 0) rows.delete(listing)
  else rows.set(listing, under)
  return listing
}
