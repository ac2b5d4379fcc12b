/** A node's answers ⇄ positional arrays: `[id, positions, [kind, …], leaders]`. */
import { assert } from '../../base/assert.ts'
import { batchItemsMax, pageItemsMax } from '../../base/limits.ts'
import type { Packable } from '../../base/pack.ts'
import type { StoredCell, Written } from '../../cells/cell.ts'
import type { CellPage, StoredLogPage } from '../../cells/operation.ts'
import { shardCountMax } from '../../cells/datastore-form.ts'
import { worklistAnswerKinds, packWorklistAnswer, readWorklistAnswer } from './worklist-codec.ts'
import * as part from './client-fields.ts'
import type { Reply, Response } from './client-message.ts'
import { groupAnswerKinds, packGroupAnswer, readGroupAnswer } from './group-codec.ts'
import {
  indexChangeKinds,
  packDropped,
  packIndexAnswer,
  readDropped,
  readIndexAnswer,
} from './index-codec.ts'
import * as field from '../fields.ts'

const statusBytesMax: number = 1024 * 1024

/** Numbers on the wire: never reused, never renumbered. */
const kinds = {
  put: 1,
  get: 2,
  row: 3,
  versions: 4,
  log: 5,
  status: 6,
  problem: 7,
  purge: 20,
  ...groupAnswerKinds,
  ...worklistAnswerKinds,
  index: 21,
  ...indexChangeKinds,
} as const satisfies Record<Reply['kind'], number>

assert(
  new Set(Object.values(kinds)).size === Object.keys(kinds).length,
  'wire: each kind of answer has a number of its own',
)

export function packResponse(response: Response): Packable {
  const { id, positions, answer, leaders } = response
  return [id, positions, [kinds[answer.kind], ...packAnswer(answer)], leaders]
}

export function readResponse(value: unknown): Response {
  const [id, positions, answer, leaders] = field.list(value, 'response', 4)
  return {
    id: field.count(id, 'request id'),
    positions: part.positions(positions),
    answer: readAnswer(answer),
    ...(!field.isAbsent(leaders) && { leaders: part.leaders(leaders) }),
  }
}

function packAnswer(answer: Reply): Packable[] {
  switch (answer.kind) {
    case 'put':
      return [answer.items.map((item) => part.packOutcome(item, packWritten))]
    case 'get':
      return [answer.items.map((item) => part.packOutcome(item, packFound))]
    case 'row':
    case 'versions':
      return [answer.page.cells.map(part.packCell), answer.page.next]
    case 'log':
      return [answer.items.map((item) => part.packOutcome(item, packLogPage))]
    case 'status':
      return [answer.status]
    case 'index':
      return packIndexAnswer(answer)
    case 'spread-indexes':
      return []
    case 'drop-index':
      return packDropped(answer)
    case 'problem':
      return [part.packProblem(answer.problem)]
    case 'purge':
      return [answer.purged, answer.next]
    case 'list-worklist':
    case 'watch-worklist':
    case 'sum-worklist':
      return packWorklistAnswer(answer)
    default:
      return packGroupAnswer(answer)
  }
}

function readAnswer(value: unknown): Reply {
  const [kind, ...rest] = field.list(value, 'answer')
  const [content, next] = rest
  switch (kind) {
    case kinds.put:
      return { kind: 'put', items: items(content).map((item) => part.outcome(item, readWritten)) }
    case kinds.get:
      return { kind: 'get', items: items(content).map((item) => part.outcome(item, readFound)) }
    case kinds.row:
      return { kind: 'row', page: readPage(content, next, (one) => part.text(one, 'next')) }
    case kinds.versions:
      return { kind: 'versions', page: readPage(content, next, (one) => field.count(one, 'next')) }
    case kinds.log: {
      const pages = part.some(content, 'pages', shardCountMax)
      return { kind: 'log', items: pages.map((page) => part.outcome(page, readLogPage)) }
    }
    case kinds.status:
      return { kind: 'status', status: field.bytes(content, 'status', statusBytesMax) }
    case kinds.index:
      return readIndexAnswer(rest)
    case kinds['spread-indexes']:
      return { kind: 'spread-indexes' }
    case kinds['drop-index']:
      return readDropped(rest)
    case kinds.problem:
      return { kind: 'problem', problem: part.problem(content) }
    case kinds.purge: {
      const purged = field.count(content, 'purged')
      const more = part.optional(next, (one) => field.count(one, 'next'))
      return more === undefined ? { kind: 'purge', purged } : { kind: 'purge', purged, next: more }
    }
    default: {
      const answer = readGroupAnswer(kind, rest) ?? readWorklistAnswer(kind, rest)
      if (answer !== undefined) return answer
      throw new field.MalformedError('answer is of no known kind')
    }
  }
}

function items(value: unknown): readonly unknown[] {
  return part.some(value, 'items', batchItemsMax)
}

function packWritten(written: Written): Packable {
  if (written.buffered) return [written.shard]
  return [written.shard, written.addedId, written.createdAt, written.created]
}

function readWritten(value: unknown): Written {
  if (Array.isArray(value) && value.length === 1) {
    return { shard: field.count(value[0], 'shard'), buffered: true }
  }
  const [shard, addedId, createdAt, created] = field.list(value, 'written', 4)
  return {
    shard: field.count(shard, 'shard'),
    addedId: field.count(addedId, 'added id', 1),
    createdAt: field.count(createdAt, 'created at'),
    created: field.flag(created, 'created'),
  }
}

function packFound(found: StoredCell | undefined): Packable {
  return found && part.packCell(found)
}

function readFound(value: unknown): StoredCell | undefined {
  return part.optional(value, part.cell)
}

function readPage<Next>(
  content: unknown,
  next: unknown,
  readNext: (value: unknown) => Next,
): CellPage<Next> {
  const cells = part.some(content, 'cells', pageItemsMax).map(part.cell)
  return field.isAbsent(next) ? { cells } : { cells, next: readNext(next) }
}

function packLogPage(page: StoredLogPage): Packable {
  return [page.shard, page.cells.map(part.packCell), page.next, page.asOf]
}

function readLogPage(value: unknown): StoredLogPage {
  const [shard, cells, next, asOf] = field.list(value, 'page', 4)
  return {
    shard: field.count(shard, 'shard'),
    cells: part.some(cells, 'cells', pageItemsMax).map(part.cell),
    next: field.count(next, 'next'),
    ...(field.isAbsent(asOf) ? {} : { asOf: field.count(asOf, 'as of') }),
  }
}
