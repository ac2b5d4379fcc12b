/**
 * ERASE-1: where a node says that nothing is left to be erased, its disks have nothing of what it deleted: neither its
 * group's history, nor the bytes that the data disk keeps of rows which are gone, nor a flush of before the deletion.
 *
 * It goes by what is on the disks, write by write. Left out: files of segments that are no segments any more.
 */
import { numberOfKey } from '../../src/journal/ordered-journal.ts'
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import type { Put } from '../../src/ports/storage.ts'
import { historySubspace, rowSubspace } from '../../src/store/row-format.ts'
import { parseGroupKey } from './data-disks.ts'
import type { Referee } from './referee.ts'

/** The bytes on the node's disks that the checker does not follow itself. */
export interface LeftOnDisks {
  /** The oldest flush in the log; undefined: there is none. */
  readonly oldestFlush: number | undefined
  /** Rows that are gone, by their keys as text, and when they went, in microseconds of the world. */
  readonly remains: readonly { readonly name: string; readonly goneAtMicros: number }[]
}

interface Deletion {
  readonly atMicros: number
  /** The last flush in the node's log by then. */
  readonly flush: number
}

interface NodeBook {
  /** By group, the last one. */
  readonly deletions: Map<string, Deletion>
  /** Versions in history, by group and key, and when they came there. */
  readonly history: Map<string, Map<string, number>>
}

export class EraseChecker {
  readonly #referee: Referee
  readonly #lastFlush = new Map<string, number>()
  readonly #books = new Map<string, NodeBook>()

  constructor(referee: Referee) {
    this.#referee = referee
  }

  onLogDurable(node: string, { key, value }: Put): void {
    const number = numberOfKey(key)
    if (number !== undefined && value !== undefined) this.#lastFlush.set(node, number)
  }

  onDataDurable(node: string, puts: readonly Put[], nowMicros: number): void {
    for (const { key, value } of puts) {
      const parsed = key[0] === groupByte ? parseGroupKey(key) : undefined
      if (parsed === undefined) continue
      const { group, subspace } = parsed
      const book = this.#of(node)
      if (subspace === rowSubspace && value === undefined) {
        const flush = this.#lastFlush.get(node) ?? 0
        book.deletions.set(group, { atMicros: nowMicros, flush })
      }
      if (subspace === historySubspace) noteVersion(book, group, latin1(key), value && nowMicros)
    }
  }

  /** The node has another data disk: it deleted nothing there. */
  onReplaced(node: string): void {
    this.#books.delete(node)
  }

  #of(node: string): NodeBook {
    const book = this.#books.get(node) ?? { deletions: new Map(), history: new Map() }
    this.#books.set(node, book)
    return book
  }

  /** The node says that nothing is left to be erased. */
  check(node: string, { oldestFlush = Infinity, remains }: LeftOnDisks): void {
    const { deletions, history } = this.#of(node)
    for (const [group, deletion] of deletions) {
      this.#referee.check(
        oldestFlush > deletion.flush,
        'ERASE-1',
        'A flush of before a deletion is in the log, and the node says that nothing is left.',
        () => ({ node, group, oldestFlush, deletion }),
      )
      const versions = [...(history.get(group)?.values() ?? [])]
      this.#referee.check(
        versions.every((atMicros) => atMicros > deletion.atMicros),
        'ERASE-1',
        'A version of before a deletion is in history, and the node says that nothing is left.',
        () => ({ node, group, deletion, versions }),
      )
    }
    for (const { name, goneAtMicros } of remains) {
      const { group = '', subspace } = parseGroupKey(fromLatin1(name)) ?? {}
      // A state record has nothing of a row.
      if (subspace !== rowSubspace && subspace !== historySubspace) continue
      const deletion = deletions.get(group)
      this.#referee.check(
        deletion === undefined || goneAtMicros > deletion.atMicros,
        'ERASE-1',
        'The data disk has bytes of a row that is gone, and the node says that nothing is left.',
        () => ({ node, group, goneAtMicros, deletion }),
      )
    }
  }
}

const groupByte = 'g'.charCodeAt(0)

function noteVersion(
  { history }: NodeBook,
  group: string,
  name: string,
  atMicros: number | undefined,
): void {
  const versions = history.get(group) ?? new Map<string, number>()
  history.set(group, versions)
  if (atMicros === undefined) versions.delete(name)
  else versions.set(name, atMicros)
}
