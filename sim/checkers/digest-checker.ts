/**
 * LOG-9: when a node remembers how far it need not ask a peer for digests again, it durably has all
 * that the peer's flushes through there tell of: in its log, or applied.
 */
import { metaName, tryDecodeMeta } from '../../src/log/log-meta.ts'
import { numberOfKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { assert } from '../../src/base/assert.ts'
import { latin1 } from '../../src/base/bytes.ts'
import { unpack } from '../../src/base/pack.ts'
import type { Put } from '../../src/ports/storage.ts'
import { decodeStored, nameKey } from '../../src/store/row-format.ts'
import type { FlushRecord } from '../../src/log/flush.ts'
import type { Referee } from './referee.ts'

interface LogOnDisk {
  /** Of each group, the highest position with a value. */
  readonly highest: Map<string, number>
  /** By flush, the groups with a value in it. */
  readonly flushes: Map<number, ReadonlyMap<string, number>>
}

export interface DigestCheckerParts {
  readonly referee: Referee
  /** How far a node's data disk has applied the group. */
  findPosition(node: string, group: string): number
  /** The node's log is of another time. */
  isForgotten(node: string): boolean
}

const peerText = latin1(nameKey('digest/'))
const metaText = latin1(recordKey(metaName))
const peerByte = peerText.charCodeAt(0)

export class DigestChecker {
  readonly #parts: DigestCheckerParts
  readonly #logs = new Map<string, LogOnDisk>()
  /** The id of the store of each node. */
  readonly #stores = new Map<string, string>()
  /** By node and peer, through which flush it was looked at. */
  readonly #checked = new Map<string, Map<string, number>>()

  constructor(parts: DigestCheckerParts) {
    this.#parts = parts
  }

  /**
   * A write of the node's log became durable, with these records. After a torn write the node knows
   * that a value is missing: the rest of its record stands for it.
   */
  onLogDurable(
    node: string,
    { key, value }: Put,
    records: readonly FlushRecord[],
    isWhole: boolean,
  ): void {
    if (value !== undefined && latin1(key) === metaText) {
      const storeId = tryDecodeMeta(value)?.storeId
      if (storeId !== undefined) this.#stores.set(node, storeId)
    }
    if (records.length === 0) return
    const { highest, flushes } = this.#of(node)
    const positions = new Map<string, number>()
    for (const { kind, group, position } of records) {
      if (kind === 'promise' && !isWhole) raise(highest, group, position)
      if (kind === 'promise') continue
      raise(positions, group, position)
      raise(highest, group, position)
    }
    flushes.set(numberOfKey(key) ?? 0, positions)
  }

  /** The node's data disk is replaced: the checker looks at its memory of peers anew. */
  onReplaced(node: string): void {
    this.#checked.delete(node)
  }

  /** Another store is to have the node's vote: its log begins anew. */
  onStoreLost(node: string): void {
    this.onReplaced(node)
    this.#logs.delete(node)
    this.#stores.delete(node)
    for (const checked of this.#checked.values()) checked.delete(node)
  }

  onDataDurable(node: string, puts: readonly Put[]): void {
    for (const { key, value } of puts) {
      if (value === undefined || key[0] !== peerByte) continue
      const name = latin1(key)
      if (!name.startsWith(peerText)) continue
      const stored = decodeStored(key, value)
      assert(typeof stored === 'object', 'digest-checker: a durable value does not decode')
      const fields = unpack(stored.payload)
      const [, , through, store]: unknown[] = Array.isArray(fields) ? fields : []
      const peer = name.slice(peerText.length)
      // The mark may be of a store that is lost.
      const isOfStore = this.#stores.get(peer) === store
      if (typeof through === 'number' && isOfStore) this.#check(node, peer, through)
    }
  }

  #check(node: string, peer: string, through: number): void {
    const { referee, isForgotten } = this.#parts
    const checked = this.#checked.get(node) ?? new Map<string, number>()
    this.#checked.set(node, checked)
    const from = checked.get(peer) ?? 0
    checked.set(peer, Math.max(from, through))
    if (isForgotten(node) || isForgotten(peer)) return
    for (let flush = from + 1; flush <= through; flush++) {
      const lacking = this.#lacking(node, peer, flush)
      referee.check(
        lacking === undefined,
        'LOG-9',
        'A node will not ask again for what it does not have.',
        () => ({ node, peer, flush, ...lacking }),
      )
    }
  }

  #lacking(
    node: string,
    peer: string,
    flush: number,
  ): { readonly group: string; readonly position: number } | undefined {
    const { flushes } = this.#of(peer)
    const { highest } = this.#of(node)
    for (const [group, position] of flushes.get(flush) ?? []) {
      if ((highest.get(group) ?? 0) >= position) continue
      if (this.#parts.findPosition(node, group) < position) return { group, position }
    }
    return undefined
  }

  #of(node: string): LogOnDisk {
    const known = this.#logs.get(node)
    if (known !== undefined) return known
    const made = { highest: new Map(), flushes: new Map() }
    this.#logs.set(node, made)
    return made
  }
}

function raise(positions: Map<string, number>, group: string, position: number): void {
  if (position > (positions.get(group) ?? 0)) positions.set(group, position)
}
