/** The content of a stopped node's stores in figures: one pass over the log, one over the rows. */
import type { RememberedStore } from '../base/remembered.ts'
import type { FlushMark } from '../log/settled.ts'
import { decodeDamages, damagesName } from '../log/log-mending.ts'
import { metaName, tryDecodeMeta, type LogMeta } from '../log/log-meta.ts'
import { decodeMemory, memoryName } from '../log/peer-memory.ts'
import { DataLooks } from './data-looks.ts'
import { decodeDataRow, rowKinds, type DataRow, type RowKind, type Unreadable } from './data-row.ts'
import { formatGroupHex, type NameGroup, type StoreName } from './finding.ts'
import { readFlushes } from './flush-pass.ts'
import type { StoppedNode } from './stopped-node.ts'

export interface KindFigures {
  rows: number
  keyBytes: number
  valueBytes: number
}

/** A group by what its rows and their history take. */
export interface GroupFigures {
  readonly group: string
  readonly name: string
  readonly rows: number
  readonly history: number
  readonly bytes: number
}

export interface LogFigures {
  readonly fileBytes: number
  /** Flush numbers; 0 and 0 of an empty log. */
  readonly first: number
  readonly last: number
  readonly flushes: number
  readonly flushBytes: number
  readonly damagedFlushes: number
  readonly records: number
  readonly recordsMax: number
  /** Records by kind. */
  readonly promises: number
  readonly acceptances: number
  readonly choices: number
  /** Acceptances of open positions, written again. */
  readonly copies: number
  /** Of each incarnation the first and the last flush. */
  readonly incarnations: readonly {
    readonly incarnation: number
    readonly first: number
    readonly last: number
  }[]
}

export interface DataFigures {
  readonly fileBytes: number
  readonly kinds: Readonly<Record<RowKind, Readonly<KindFigures>>>
  readonly groups: number
  /** Rows that cannot be read as what their keys say. */
  readonly unreadable: number
  /** The next start folds the flushes after this one; absent: the whole log. */
  readonly mark?: FlushMark
  readonly flushesAfterMark: number
  /** Open positions that an earlier build kept in rows; the next run writes them into the log. */
  readonly openPositions: number
  /** The largest first. */
  readonly largest: readonly GroupFigures[]
}

export interface Stats {
  readonly identity: LogMeta | undefined
  /** The log's memory of each peer; absent: nothing that can be read. */
  readonly peers?: readonly RememberedStore[]
  /** Damage of the log that starts or scrubs found, and that it keeps in mind. */
  readonly earlierDamages: readonly string[]
  readonly log: LogFigures
  /** Absent: there is no `data/`. */
  readonly data?: DataFigures
}

export interface StatsOptions {
  readonly nameGroup: NameGroup
  readonly onBytes: (store: StoreName, bytes: number) => void
}

const largestMax = 10

export async function collectStats(node: StoppedNode, options: StatsOptions): Promise<Stats> {
  const { log: journal } = node
  const [meta, memory, damages] = [metaName, memoryName, damagesName].map((name) =>
    journal.record(name),
  )
  const identity = meta && tryDecodeMeta(meta)
  const peers = memory && decodeMemory(memory)
  const log = await logFigures(node, identity?.firstFlush ?? 0, options)
  const data = await dataFigures(node, log, options)
  return {
    identity,
    ...(peers !== undefined && { peers }),
    earlierDamages: ((damages && decodeDamages(damages)) ?? []).map(({ what }) => what),
    log,
    ...(data !== undefined && { data }),
  }
}

async function logFigures(
  { log, fileBytes }: StoppedNode,
  from: number,
  { onBytes }: StatsOptions,
): Promise<LogFigures> {
  let [first, last, flushes, flushBytes, damagedFlushes, recordsMax] = [0, 0, 0, 0, 0, 0]
  const counts = { promise: 0, accept: 0, chosen: 0, copied: 0 }
  const incarnations: { incarnation: number; first: number; last: number }[] = []
  for await (const { number, bytes, header } of readFlushes(log, from)) {
    onBytes('log', bytes.length)
    first ||= number
    last = number
    flushes += 1
    flushBytes += bytes.length
    if (header === undefined) damagedFlushes += 1
    const { incarnation, records = [] } = header ?? {}
    for (const { kind } of records) counts[kind] += 1
    recordsMax = Math.max(recordsMax, records.length)
    const latest = incarnations.at(-1)
    if (incarnation === undefined) continue
    if (latest?.incarnation === incarnation) latest.last = number
    else incarnations.push({ incarnation, first: number, last: number })
  }
  const { promise: promises, accept: acceptances, chosen: choices, copied: copies } = counts
  const records = promises + acceptances + choices + copies
  return {
    fileBytes: fileBytes.log,
    ...{ first, last, flushes, flushBytes, damagedFlushes, records, recordsMax },
    ...{ promises, acceptances, choices, copies, incarnations },
  }
}

async function dataFigures(
  { data, fileBytes }: StoppedNode,
  log: LogFigures,
  { nameGroup, onBytes }: StatsOptions,
): Promise<DataFigures | undefined> {
  if (data === undefined) return undefined
  const looks = new DataLooks(data)
  const count = new RowCount(nameGroup)
  for await (const chunk of data.scan({})) {
    let bytes = 0
    for (const row of chunk) {
      const size = row.key.length + row.value.length
      count.take(decodeDataRow(row), row.key.length, row.value.length)
      bytes += size
    }
    onBytes('data', bytes)
  }
  const mark = looks.mark()
  const carried = looks.carried()
  const known = typeof mark === 'object' ? mark : undefined
  return {
    fileBytes: fileBytes.data,
    ...count.end(),
    ...(known !== undefined && { mark: known }),
    flushesAfterMark: Math.max(0, log.last - (known?.number ?? log.first - 1)),
    openPositions: carried === 'damaged' ? 0 : carried.length,
  }
}

class RowCount {
  readonly #nameGroup: NameGroup
  readonly #kinds = new Map<RowKind, KindFigures>()
  #unreadable = 0
  /** The largest first. */
  #largest: GroupFigures[] = []
  /** Of the group that the pass is at: its rows and their history lie together. */
  #group: { readonly group: string; name: string; rows: number; history: number; bytes: number } =
    empty('', '')

  constructor(nameGroup: NameGroup) {
    this.#nameGroup = nameGroup
    for (const kind of rowKinds) this.#kinds.set(kind, { rows: 0, keyBytes: 0, valueBytes: 0 })
  }

  take(row: DataRow | Unreadable, keyBytes: number, valueBytes: number): void {
    const figures = this.#kinds.get(row.kind)
    if (figures !== undefined) {
      figures.rows += 1
      figures.keyBytes += keyBytes
      figures.valueBytes += valueBytes
    }
    if ('problem' in row) {
      this.#unreadable += 1
      return
    }
    if (row.kind !== 'row' && row.kind !== 'history') return
    const group = formatGroupHex(row.group)
    if (group !== this.#group.group) {
      this.#keepLargest()
      this.#group = empty(group, this.#nameGroup(row.group))
    }
    if (row.kind === 'row') this.#group.rows += 1
    else this.#group.history += 1
    this.#group.bytes += keyBytes + valueBytes
  }

  #keepLargest(): void {
    const found = this.#group
    const least = this.#largest.at(-1)
    if (found.group === '') return
    if (this.#largest.length >= largestMax && least !== undefined && found.bytes <= least.bytes)
      return
    this.#largest = [...this.#largest, found]
      .sort((one, other) => other.bytes - one.bytes)
      .slice(0, largestMax)
  }

  end(): Pick<DataFigures, 'kinds' | 'groups' | 'unreadable' | 'largest'> {
    this.#keepLargest()
    const of = (kind: RowKind): KindFigures =>
      this.#kinds.get(kind) ?? { rows: 0, keyBytes: 0, valueBytes: 0 }
    const [row, history, state, position] = [of('row'), of('history'), of('state'), of('position')]
    const [staged, staging, worklist] = [of('staged'), of('staging'), of('worklist')]
    const [marker, name, unknown] = [of('marker'), of('name'), of('unknown')]
    const stored = { row, history, state, staged, staging, position }
    const kinds = { ...stored, worklist, marker, name, unknown }
    return {
      kinds,
      groups: state.rows,
      unreadable: this.#unreadable,
      largest: this.#largest,
    }
  }
}

function empty(
  group: string,
  name: string,
): { readonly group: string; name: string; rows: number; history: number; bytes: number } {
  return { group, name, rows: 0, history: 0, bytes: 0 }
}
