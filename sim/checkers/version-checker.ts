/**
 * Cluster versions, as nodes of earlier builds meet them.
 *
 * UPG-2  The version of a set never goes back.
 * UPG-3  No build of an earlier version receives a message of a later one, or stores a format of it.
 */
import { equalBytes, latin1 } from '../../src/base/bytes.ts'
import { bytesOfGroup } from '../../src/base/ids.ts'
import { versionOf } from '../../src/members/change.ts'
import { decodeRow } from '../../src/members/row-codec.ts'
import { setGroupOf, setRowKey } from '../../src/members/set-group.ts'
import type { Placement } from '../../src/placement/placement.ts'
import { decodeEntry } from '../../src/replication/entry.ts'
import type { Message } from '../../src/replication/message.ts'
import type { FlushRecord } from '../../src/log/flush.ts'
import type { Referee } from './referee.ts'

/** The first version whose builds know the message; absent: all do. */
const messageVersions: Partial<Record<Message['kind'], number>> = { version: 2 }

export class VersionChecker {
  /** The last cluster version that the build knows which the node runs. */
  actsAs: (node: string) => number = () => Infinity
  readonly #referee: Referee
  /** The sets' own groups. */
  readonly #groups: ReadonlySet<string>
  /** The version of the last row that a replica has applied, by the node and its group. */
  readonly #applied = new Map<string, { readonly position: number; readonly version: number }>()

  constructor(referee: Referee, placement: Placement) {
    this.#referee = referee
    const sets = Array.from({ length: placement.setCount }, (_, set) => set)
    this.#groups = new Set(sets.map((set) => latin1(bytesOfGroup(setGroupOf(placement, set)))))
  }

  onDelivered(from: string, to: string, { kind }: Message): void {
    const version = messageVersions[kind] ?? 1
    // Counted where a build could tell the difference.
    if (version === 1 && kind !== 'standing') return
    this.#check(to, version, () => ({ from, to, message: kind }))
  }

  onLogDurable(node: string, record: FlushRecord & { readonly group: string }): void {
    if (record.kind !== 'accept' || !this.#groups.has(record.group)) return
    const version = versionIn(record.value)
    if (version === undefined) return
    this.#check(node, version, () => ({ node, position: record.position, stored: 'an entry' }))
  }

  onApplied(node: string, group: string, position: number, value: Uint8Array): void {
    if (!this.#groups.has(group)) return
    const version = versionIn(value)
    if (version === undefined) return
    this.#check(node, version, () => ({ node, position, stored: 'a row' }))
    const before = this.#applied.get(`${node}/${group}`)
    // It applies entries anew after it has lost its data disk.
    const isLater = before !== undefined && before.position < position
    this.#referee.check(
      !isLater || version >= before.version,
      'UPG-2',
      'The cluster version of a replica set went back.',
      () => ({ node, position, version, before }),
    )
    this.#applied.set(`${node}/${group}`, { position, version })
  }

  #check(node: string, version: number, detail: () => Readonly<Record<string, unknown>>): void {
    this.#referee.check(
      this.actsAs(node) >= version,
      'UPG-3',
      'A build of an earlier version got a format that it does not know.',
      () => ({ ...detail(), version, build: this.actsAs(node) }),
    )
  }
}

/** The version of the row that the entry writes; undefined: it writes none. */
function versionIn(value: Uint8Array): number | undefined {
  let version: number | undefined
  for (const { mutations } of decodeEntry(value)?.transactions ?? []) {
    for (const { key, value: bytes } of mutations) {
      const row = bytes === undefined || !equalBytes(key, setRowKey) ? undefined : decodeRow(bytes)
      if (row !== undefined) version = versionOf(row)
    }
  }
  return version
}
