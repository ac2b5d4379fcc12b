/**
 * The cells that expire, as the log of their shards has them: when each is to be gone, how far the log's time has
 * come, and which cells were removed. And the cells that a caller purges one by one. Purges of whole shards are not
 * known here: a run has these or the others.
 */
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { groupOfBytes } from '../../src/base/ids.ts'
import { cellOfRow, cellRowKey, shardOfGroup } from '../../src/cells/cell-table.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { datastore } from '../workloads/datastore.ts'
import type { ModelMoment, RowWrite } from './log-model.ts'

interface NamedCell {
  readonly shard: number
  readonly row: string
  readonly column: string
  readonly refKey: number
}

/** The keys of all cells have in common what those of these rows have. */
const rowKeys = [
  '00000000-0000-4000-8000-000000000000',
  'ffffffff-ffff-4fff-bfff-ffffffffffff',
] as const
const microsPerSecond = 1_000_000

export class ExpiryBook {
  /** By shard and key: when the cell expires. */
  readonly #moments = new Map<string, number>()
  /** By shard and key: those that a caller purges. */
  readonly #asked = new Set<string>()
  readonly #nowByGroup = new Map<string, number>()
  /** Whether a group is a shard of the clients' cells. */
  readonly #ours = new Map<string, boolean>()
  readonly #cellTable: string

  constructor() {
    const keyIn = (rowKey: string): string =>
      latin1(cellRowKey({ datastore, shard: 0 }, { rowKey, column: 'A', refKey: 0 }))
    const [first, last] = [keyIn(rowKeys[0]), keyIn(rowKeys[1])]
    let length = 0
    while (first.charAt(length) === last.charAt(length)) length += 1
    this.#cellTable = first.slice(0, length)
  }

  /** Whether the shard may have lost a cell. */
  hasAny(shard: number): boolean {
    const mayHave = this.#moments.size + this.#asked.size > 0
    return this.#nowByGroup.has(shardGroup(datastore, shard)) && mayHave
  }

  /** From now on the cell may go at any time. */
  ask(name: NamedCell): void {
    this.#asked.add(keyOf(name))
  }

  /** Undefined: the cell stays, as far as the log says. */
  momentOf(name: NamedCell): number | undefined {
    return this.#moments.get(keyOf(name))
  }

  /** Whether a read of what the log holds now may leave the cell out. */
  mayBeGone(name: NamedCell): boolean {
    const moment = this.momentOf(name)
    if (this.#asked.has(keyOf(name))) return true
    return (
      moment !== undefined &&
      moment <= (this.#nowByGroup.get(shardGroup(datastore, name.shard)) ?? 0)
    )
  }

  /** An entry without transactions moves the time of a log on, too. */
  onMoment({ group, timestamp }: ModelMoment): void {
    if (this.#isOurs(group)) this.#nowByGroup.set(group, timestamp)
  }

  /** False: a cell is removed that had not expired, and that no caller purges. */
  onWrite({ group, key, value, timestamp }: RowWrite): boolean {
    if (!key.startsWith(this.#cellTable) || !this.#isOurs(group)) return true
    const name = `${group} ${key}`
    if (value === undefined) {
      const moment = this.#asked.has(name) ? 0 : this.#moments.get(name)
      return moment !== undefined && moment <= timestamp
    }
    const row = { value: fromLatin1(latin1(value)), timestamp }
    const { ttl } = cellOfRow({ rowKey: '', column: '', refKey: 0 }, row)
    if (ttl !== undefined) this.#moments.set(name, timestamp + ttl * microsPerSecond)
    return true
  }

  #isOurs(group: string): boolean {
    const known = this.#ours.get(group)
    if (known !== undefined) return known
    const isOurs = shardOfGroup(groupOfBytes(fromLatin1(group)))?.datastore === datastore
    this.#ours.set(group, isOurs)
    return isOurs
  }
}

function keyOf({ shard, row, column, refKey }: NamedCell): string {
  const key = cellRowKey({ datastore, shard }, { rowKey: row, column, refKey })
  return `${shardGroup(datastore, shard)} ${latin1(key)}`
}
