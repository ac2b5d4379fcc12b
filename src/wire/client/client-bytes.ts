/**
 * About what requests and replies weigh in a frame: of what may be large more than it takes rather than
 * less, so that a frame of many stays far below its bound. One that is above is not sent.
 */
import type { Problem } from '../../base/problem.ts'
import type { IndexedCells } from '../../cells/operation.ts'
import type { WorklistAnswer } from '../../worklist/worklist-operation.ts'
import type { IntentOutcome, Outcome, RowRange } from '../../group/replica-port.ts'
import type { GroupAnswer } from '../../txn/group-operation.ts'
import { writtenBytes, type Operation, type Replied, type Reply } from './client-message.ts'

/** A name of a cell, or what there is of one beside its body. */
const cellBytes = 160
/** A row's times and lengths; the place of a log, a position; the result of a write. */
const smallBytes = 32
const numberBytes = 9

export function requestBytes(operation: Operation): number {
  switch (operation.kind) {
    case 'put':
      return writtenBytes(operation) + operation.items.length * cellBytes
    case 'get':
      return operation.items.length * cellBytes + operation.read.atLeast.length * smallBytes
    case 'log':
      return (operation.items.length + operation.read.atLeast.length) * smallBytes
    case 'pass-group':
      return requestBytes(operation.operation)
    case 'read-group':
      return keysBytes(operation.keys) + (operation.range ? endsBytes(operation.range) : 0)
    case 'commit-group': {
      const { reads, ranges, mutations } = operation.submission
      const read = ranges.reduce((sum, range) => sum + endsBytes(range), keysBytes(reads))
      return writtenBytes(operation) + mutations.length * smallBytes + read
    }
    default:
      return 0
  }
}

export function replyBytes({ answer, positions, leaders = [] }: Replied): number {
  return answerBytes(answer) + (positions.length + leaders.length) * smallBytes
}

function answerBytes(answer: Reply): number {
  switch (answer.kind) {
    case 'put':
      return sumBy(answer.items, (item) => problemBytes(item) + smallBytes)
    case 'get':
      return sumBy(answer.items, (item) => {
        return item.kind === 'ok' ? storedBytes(item.value) : problemBytes(item)
      })
    case 'row':
    case 'versions':
      return cellsBytes(answer.page.cells)
    case 'log':
      return sumBy(answer.items, (item) => {
        return smallBytes + (item.kind === 'ok' ? cellsBytes(item.value.cells) : problemBytes(item))
      })
    case 'index':
      return textsBytes(answer.fields) + sumBy(answer.entries, entryBytes)
    case 'status':
      return answer.status.length
    case 'problem':
      return problemBytes(answer)
    case 'purge':
    case 'spread-indexes':
    case 'drop-index':
      return smallBytes
    case 'list-worklist':
    case 'watch-worklist':
    case 'sum-worklist':
      return worklistBytes(answer)
    default:
      return groupBytes(answer)
  }
}

function worklistBytes(answer: Exclude<WorklistAnswer, { kind: 'problem' }>): number {
  if (answer.kind === 'sum-worklist') return sumBy(answer.topics, ({ topic }) => textBytes(topic))
  const members = answer.kind === 'watch-worklist' ? answer.members : []
  return textsBytes(members) + sumBy(answer.groups, ({ group }) => textBytes(group))
}

function groupBytes(answer: Exclude<GroupAnswer, { kind: 'problem' }>): number {
  switch (answer.kind) {
    case 'read-group':
      return rowsBytes(answer.rows) + rowsBytes(answer.page?.rows ?? [])
    case 'commit-group':
    case 'outcome-group':
      return outcomeBytes(answer.outcome)
    case 'list-groups':
      return textsBytes(answer.groups)
    case 'export-group':
      return sumBy(answer.page.rows, ({ key, payload }) => smallBytes + key.length + payload.length)
    case 'move-group':
    case 'admit-group':
    case 'open-buckets':
    case 'locate-group':
    case 'lock-group':
    case 'unlock-group':
      return smallBytes
  }
}

/**
 * A client that draws many numbers gets all of them; one in conflict learns the key and the other
 * transaction.
 */
function outcomeBytes(outcome: Outcome | IntentOutcome): number {
  switch (outcome.kind) {
    case 'committed':
      return smallBytes + outcome.sequences.length * numberBytes
    case 'conflict':
      return smallBytes + (outcome.key?.length ?? 0) + textBytes(outcome.by?.session)
    default:
      return smallBytes
  }
}

function entryBytes({ values, cells = [] }: IndexedCells): number {
  const valuesBytes = sumBy(values, (value) =>
    typeof value === 'string' ? textBytes(value) : numberBytes,
  )
  return cellBytes + valuesBytes + cellsBytes(cells)
}

function textsBytes(texts: readonly string[]): number {
  return sumBy(texts, (text) => textBytes(text))
}

/** A character takes up to three bytes. */
function textBytes(text = ''): number {
  return 3 * text.length + smallBytes
}

function sumBy<Item>(items: readonly Item[], sizeInBytes: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + sizeInBytes(item), 0)
}

function keysBytes(keys: readonly Uint8Array[]): number {
  return sumBy(keys, ({ length }) => length + smallBytes)
}

function endsBytes({ gte, gt, lt }: RowRange): number {
  return (gte?.length ?? 0) + (gt?.length ?? 0) + (lt?.length ?? 0) + smallBytes
}

function problemBytes(item: { readonly kind: 'ok' } | { readonly problem: Problem }): number {
  if (!('problem' in item)) return 0
  const { message, detail } = item.problem
  return smallBytes + textBytes(message) + textBytes(detail.group)
}

function cellsBytes(cells: readonly { readonly body: Uint8Array }[]): number {
  return sumBy(cells, storedBytes)
}

function storedBytes(cell: { readonly body: Uint8Array } | undefined): number {
  return cell === undefined ? 1 : cellBytes + cell.body.length
}

type MaybeRow = { readonly key: Uint8Array; readonly value: Uint8Array } | undefined

function rowsBytes(rows: readonly MaybeRow[]): number {
  return sumBy(rows, (row) => (row ? row.key.length + row.value.length + smallBytes : 1))
}
