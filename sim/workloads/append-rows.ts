/**
 * Lists as rows of a group, in the ways in which applications keep them. Lists `a` and `b` are one
 * row each, which every append rewrites; the rows read must still stand. Lists `e` and `f` have one
 * row per element, whose key ends with a number drawn at apply. Every append to `e` also writes a
 * head row. A reader of `e` names the head in its reads, so a later append is a conflict. A reader
 * of `f` names its range of keys. The short lists are one row each, absent for a long time. A
 * reader of some of them names their keys; a reader of all of them scans, and names the range.
 */
import { equalBytes } from '../../src/base/bytes.ts'
import { groupOfBytes, type GroupId, type Position } from '../../src/base/ids.ts'
import { encodeTuple } from '../../src/base/tuple.ts'
import type {
  LocalReplica,
  ReplicaReadLevel,
  Row,
  Submission,
} from '../../src/group/replica-port.ts'
import type { KeyRange } from '../../src/group/outcome.ts'
import type { Mutation } from '../../src/group/transaction.ts'
import type { ListGroup, ListMicro, ListName } from '../scenarios/scenario-operation.ts'

export const wholeLists: readonly ListName[] = ['a', 'b']
export const rowLists: readonly ListName[] = ['e', 'f']
export const shortLists: readonly ListName[] = ['s1', 's2', 's3', 's4', 's5', 's6']
export const allLists: readonly ListName[] = [...wholeLists, ...rowLists, ...shortLists]

const counter = 4
const slotBytes = 8
const headKey = Buffer.from('h/e')
const elementRows = rangeUnder('e')
const shortRows = rangeUnder('s')

/** Where lists are kept. */
export function groupOfLists(group: ListGroup): GroupId {
  return groups[group]
}

const groups: Readonly<Record<ListGroup, GroupId>> = {
  p: groupOfBytes(encodeTuple(['lists', 'p'])),
  q: groupOfBytes(encodeTuple(['lists', 'q'])),
}

/** Some lists of a group as a replica showed them. */
export interface ListState {
  /** Nothing older than this was shown: what a transaction is validated from. */
  readonly readPosition: Position
  /** Nothing newer than this was shown: what the session may ask for again. */
  readonly seenPosition: Position
  readonly elements: ReadonlyMap<ListName, readonly string[]>
}

export interface ReadRequest {
  readonly group: ListGroup
  readonly lists: readonly ListName[]
  readonly level: ReplicaReadLevel
  readonly timeoutMs: number
  readonly atLeast: Position
}

/** Lists of one kind are shown as of one position. Rejects with a StoreError as `read` does. */
export async function readLists(replica: LocalReplica, request: ReadRequest): Promise<ListState> {
  const { level, timeoutMs, atLeast, lists } = request
  const group = groups[request.group]
  const point = await replica.read(group, level, timeoutMs, atLeast)
  const elements = new Map<ListName, readonly string[]>()
  const scanned = pickScanned(lists)
  // No `await` among these: they are of one position.
  const got = lists.filter((list) => isOneRow(list) && !scanned.includes(list))
  const rows = got.map((list) => replica.get(group, rowKey(list)))
  for (const [index, list] of got.entries()) elements.set(list, decodeElements(rows[index]))
  const byElement = lists.filter((list) => !isOneRow(list))
  const elementsFound = byElement.length > 0 ? await replica.scan(group, elementRows) : []
  for (const list of byElement) {
    const own = elementsFound.filter((row) => decodeName(row.key) === list)
    elements.set(
      list,
      own.map((row) => Buffer.from(row.value).toString()),
    )
  }
  const shortFound = scanned.length > 0 ? await replica.scan(group, shortRows) : []
  for (const list of scanned) {
    elements.set(list, decodeElements(shortFound.find((row) => equalBytes(row.key, rowKey(list)))))
  }
  const shown = [...rows, ...elementsFound, ...shortFound]
  const newest = Math.max(point.timestamp, ...shown.map((row) => row?.timestamp ?? 0))
  if (newest === point.timestamp) {
    return { readPosition: point.position, seenPosition: point.position, elements }
  }
  // Something was applied meanwhile, and shown.
  const later = await replica.read(group, 'snapshot', timeoutMs)
  return { readPosition: point.position, seenPosition: later.position, elements }
}

/** The lists that a transaction must have read before it can be made. */
export function listsToRead(micro: readonly ListMicro[]): readonly ListName[] {
  const lists = micro.filter(({ kind, list }) => kind === 'read' || isOneRow(list))
  return [...new Set(lists.map(({ list }) => list))]
}

/** A reader of all short lists scans for the lists that exist. */
function pickScanned(lists: readonly ListName[]): readonly ListName[] {
  return shortLists.every((list) => lists.includes(list)) ? shortLists : []
}

/** The content of a transaction that was made from `state`. */
export function buildSubmission(
  where: Pick<Submission, 'intent' | 'attempt'> & { readonly group: ListGroup },
  micro: readonly ListMicro[],
  state: ListState,
): Submission {
  const { intent, attempt } = where
  const appends = micro.filter((one) => one.kind === 'append')
  const mutations: Mutation[] = []
  let allocationCount = 0
  for (const list of new Set(appends.map((one) => one.list))) {
    const added = appends.filter((one) => one.list === list).map(({ element }) => element)
    if (isOneRow(list)) {
      const elements = [...(state.elements.get(list) ?? []), ...added]
      mutations.push({ key: rowKey(list), value: Buffer.from(JSON.stringify(elements)) })
      continue
    }
    for (const element of added) {
      mutations.push(elementRow(list, element, allocationCount))
      allocationCount += 1
    }
    if (list !== 'f') mutations.push({ key: headKey, value: Buffer.from(added.at(-1) ?? '') })
  }
  return {
    group: groups[where.group],
    intent,
    attempt,
    mutations,
    readPosition: state.readPosition,
    ...buildReads(listsToRead(micro)),
    allocations: Array.from({ length: allocationCount }, () => counter),
  }
}

function buildReads(lists: readonly ListName[]): Pick<Submission, 'reads' | 'ranges'> {
  const scanned = pickScanned(lists)
  const ranges = scanned.length > 0 ? [shortRows] : []
  if (lists.includes('f')) ranges.push(rangeUnder('e/f'))
  const byKey = lists.filter((list) => list !== 'f' && !scanned.includes(list))
  return { reads: byKey.map((list) => (isOneRow(list) ? rowKey(list) : headKey)), ranges }
}

function elementRow(list: ListName, element: string, allocation: number): Mutation {
  const prefix = Buffer.from(`e/${list}/`)
  return {
    key: Buffer.concat([prefix, Buffer.alloc(slotBytes)]),
    value: Buffer.from(element),
    slots: [{ allocation, at: 'key', offset: prefix.length }],
  }
}

function isOneRow(list: ListName): boolean {
  return wholeLists.includes(list) || shortLists.includes(list)
}

function rowKey(list: ListName): Uint8Array {
  return Buffer.from(`${shortLists.includes(list) ? 's' : 'w'}/${list}`)
}

/** All keys that begin with these characters and a slash. */
function rangeUnder(start: string): KeyRange {
  return { gte: Buffer.from(`${start}/`), lt: Buffer.from(`${start}0`) }
}

function decodeName(elementKey: Uint8Array): string {
  return Buffer.from(elementKey.subarray(2, 3)).toString()
}

/** Only this file writes these rows. Any other row is returned as its text. */
function decodeElements(row: Row | undefined): readonly string[] {
  if (row === undefined) return []
  const text = Buffer.from(row.value).toString()
  const json: unknown = JSON.parse(text)
  return Array.isArray(json) ? json.map(String) : [text]
}
