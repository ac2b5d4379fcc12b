/**
 * The rows of the data store, each against its own checksum, and against the rows that it must agree with: the state
 * record of its group, the worklist, the markers of batches, and what the log says of positions.
 */
import { latin1 } from '../base/bytes.ts'
import type { GroupId } from '../base/ids.ts'
import type { OrderedStore } from '../ports/storage.ts'
import { findTopicText } from '../group/worklist-key.ts'
import { batchMarkersMax } from '../store/batch-marker.ts'
import type { DataLooks } from './data-looks.ts'
import { decodeDataRow, type DataRow, type RowKind, type Unreadable } from './data-row.ts'
import type { Findings, NameGroup } from './finding.ts'

/** The last flush of the log, and the one after which a start folds. */
export interface LogEnds {
  readonly last: number
  readonly mark: number
}

export interface DataCheckParts {
  readonly data: Pick<OrderedStore, 'scan'>
  readonly looks: DataLooks
  readonly findings: Findings
  readonly nameGroup: NameGroup
  readonly log: LogEnds
  readonly onBytes: (bytes: number) => void
}

const namesOfKinds: Readonly<Record<RowKind, string>> = {
  row: 'a row',
  history: 'a superseded row',
  state: 'the state record',
  staged: 'a row of a snapshot',
  staging: 'the record of a snapshot that is taken in',
  position: "the log's row of positions",
  worklist: 'an entry of the worklist',
  marker: 'a marker of a batch',
  name: 'a record of the node',
  unknown: 'a row',
}

/** Reads all rows. Gives how many there are. */
export async function checkRows(parts: DataCheckParts): Promise<number> {
  const check = new RowCheck(parts)
  let rows = 0
  for await (const chunk of parts.data.scan({})) {
    let bytes = 0
    for (const row of chunk) {
      bytes += row.key.length + row.value.length
      check.take(decodeDataRow(row))
    }
    rows += chunk.length
    parts.onBytes(bytes)
  }
  check.end()
  return rows
}

type Of<Kind extends RowKind> = Extract<DataRow, { readonly kind: Kind }>

class RowCheck {
  readonly #parts: DataCheckParts
  readonly #batches: number[] = []
  readonly #carried: ReadonlySet<string>
  /** The worklist topic and group that were looked up last: rows under a topic lie together. */
  #listed = ''

  constructor(parts: DataCheckParts) {
    this.#parts = parts
    const carried = parts.looks.carried()
    if (carried === 'damaged') {
      parts.findings.add('data', 'the list of open positions in data/ cannot be understood')
    }
    const list = carried === 'damaged' ? [] : carried
    this.#carried = new Set(list.map(([group, position]) => `${position}/${group}`))
    for (const [group, position] of list) this.#checkCarried(group, position)
  }

  /** The promises of these positions stand in their rows alone. */
  #checkCarried(group: GroupId, position: number): void {
    const { looks, nameGroup } = this.#parts
    const isApplied = position <= (looks.state(group)?.position ?? 0)
    if (isApplied || looks.position(group, position) !== undefined) return
    const text = `data/ lists position ${position} of ${nameGroup(group)} as open, and has no row of it`
    this.#add(text, { group, position })
  }

  #add(text: string, place: { readonly group?: GroupId; readonly position?: number } = {}): void {
    this.#parts.findings.add('data', text, place)
  }

  take(row: DataRow | Unreadable): void {
    if ('problem' in row) return this.#tellUnreadable(row)
    switch (row.kind) {
      case 'row':
        return this.#checkRow(row)
      case 'history':
        return this.#checkVersion(row)
      case 'position':
        return this.#checkPosition(row)
      case 'marker':
        return this.#checkMarker(row)
      case 'state':
        return this.#checkFlush(row)
      case 'staged':
      case 'staging':
      case 'worklist':
      case 'name':
        return undefined
    }
  }

  #tellUnreadable({ kind, group, problem }: Unreadable): void {
    const of = group === undefined ? '' : ` of ${this.#parts.nameGroup(group)}`
    this.#add(
      `${namesOfKinds[kind]}${of} in data/ ${problem}`,
      group === undefined ? {} : { group },
    )
  }

  #checkRow({ group, key, stamp }: Of<'row'>): void {
    this.#checkTime(group, stamp, 'a row')
    const topic = findTopicText(latin1(key))
    const listed = topic === undefined ? this.#listed : `${topic}/${group}`
    if (topic === undefined || listed === this.#listed) return
    this.#listed = listed
    if (this.#parts.looks.isListed(topic, group)) return
    const text = `${this.#parts.nameGroup(group)} has rows under a topic of the worklist, and data/ does not list it there`
    this.#add(text, { group })
  }

  #checkVersion({ group, start, stamp: end }: Of<'history'>): void {
    if (start >= end) {
      const text = `a superseded row of ${this.#parts.nameGroup(group)} ends before it begins`
      this.#add(text, { group })
    }
    this.#checkTime(group, end, 'the end of a superseded row')
  }

  /** LOG-6: rows and the state record of their position are in one batch. */
  #checkTime(group: GroupId, time: number, what: string): void {
    const { looks, nameGroup } = this.#parts
    const state = looks.state(group)
    if (state !== undefined && time <= state.timestamp) return
    // The next start puts the snapshot in the place of all that the group has here.
    if (looks.isTakenOver(group)) return
    const name = nameGroup(group)
    const text =
      state === undefined
        ? `${name} has rows in data/, and no state record that can be read`
        : `${what} of ${name} is newer than its state record of position ${state.position}: an older record stands in its place`
    this.#add(text, { group })
  }

  #checkPosition({ group, position, row }: Of<'position'>): void {
    const { looks, nameGroup, log } = this.#parts
    const where = `position ${position} of ${nameGroup(group)}`
    const { place, lastFlush } =
      'searchFrom' in row ? { place: undefined, lastFlush: row.searchFrom } : row
    if (lastFlush > log.last) {
      this.#add(
        `the row of ${where} is of flush ${lastFlush}, and the log ends at flush ${log.last}`,
        {
          group,
          position,
        },
      )
    } else if (typeof place === 'object' && place.flush > lastFlush) {
      const text = `the row of ${where} says that its value is in flush ${place.flush}, and that flush ${lastFlush} is the last one of it`
      this.#add(text, { group, position })
    }
    const applied = looks.state(group)?.position ?? 0
    const isOpen =
      this.#carried.has(`${position}/${group}`) || (lastFlush > log.mark && !('searchFrom' in row))
    if (position <= applied || isOpen) return
    const text =
      applied === 0
        ? `data/ has taken in position ${position} of ${nameGroup(group)}, and has no state record of it that can be read`
        : `the state record of ${nameGroup(group)} is of position ${applied}, and data/ has taken in position ${position}: an older record stands in its place`
    this.#add(text, { group, position })
  }

  #checkFlush({ group, flush = 0 }: Of<'state'>): void {
    const { last } = this.#parts.log
    if (flush <= last) return
    const text = `the state record of ${this.#parts.nameGroup(group)} names flush ${flush}, and the log ends at flush ${last}`
    this.#add(text, { group })
  }

  #checkMarker({ slot, stamp: batch }: Of<'marker'>): void {
    this.#batches.push(batch)
    if (batch % batchMarkersMax === slot) return
    this.#add(`the marker of batch ${batch} in data/ stands in the place of another one`)
  }

  /** As a start sees it: a batch that is not there leaves an older number in its slot, or none. */
  end(): void {
    const known = new Set(this.#batches)
    const last = this.#batches.reduce((highest, batch) => Math.max(highest, batch), 0)
    for (let batch = last; batch > Math.max(0, last - batchMarkersMax); batch--) {
      if (known.has(batch)) continue
      this.#add(`batch ${batch} of ${last} in data/ is missing, or the marker that shows it`)
    }
  }
}
