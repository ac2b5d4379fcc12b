/**
 * Lists as rows of a group, in the two ways in which applications keep them. Lists `a` and `b` are a
 * row each, written anew by every append (what was read must still stand). Lists `e` and `f` have a
 * row for every element, whose key ends with a number drawn when it is applied, and a head row that
 * every append writes: who has read the list names the head, so that a later append is a conflict.
 */
import { groupOfBytes, type GroupId, type Position } from '../src/base/ids.ts'
import { encodeTuple } from '../src/base/tuple.ts'
import type { LocalReplica, ReadLevel, Submission } from '../src/replica/local-replica.ts'
import type { Mutation } from '../src/replication/transaction.ts'
import type { ListGroup, ListMicro, ListName } from './scenario-operation.ts'

export const wholeLists: readonly ListName[] = ['a', 'b']
export const rowLists: readonly ListName[] = ['e', 'f']

const counter = 4
const slotBytes = 8
const elementRows = { gte: Buffer.from('e/'), lt: Buffer.from('e0') }

const groups: Readonly<Record<ListGroup, GroupId>> = {
  p: groupOfBytes(encodeTuple(['lists', 'p'])),
  q: groupOfBytes(encodeTuple(['lists', 'q'])),
}

/** What a replica showed of some lists of a group. */
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
  readonly level: ReadLevel
  readonly timeoutMs: number
  readonly atLeast: Position
}

/** Lists of one kind are shown as of one position. Rejects with a StoreError as `read` does. */
export async function readLists(replica: LocalReplica, request: ReadRequest): Promise<ListState> {
  const { level, timeoutMs, atLeast, lists } = request
  const group = groups[request.group]
  const point = await replica.read(group, level, timeoutMs, atLeast)
  const elements = new Map<ListName, readonly string[]>()
  let newest = point.timestamp
  // No `await` among these: they are of one position.
  for (const list of lists.filter(isWhole)) {
    const row = replica.get(group, wholeKey(list))
    newest = Math.max(newest, row?.timestamp ?? 0)
    elements.set(list, row === undefined ? [] : elementsOf(row.value))
  }
  const others = lists.filter((list) => !isWhole(list))
  if (others.length > 0) {
    const rows = await replica.scan(group, elementRows)
    for (const list of others) {
      const own = rows.filter((row) => nameOf(row.key) === list)
      elements.set(
        list,
        own.map((row) => Buffer.from(row.value).toString()),
      )
    }
    newest = Math.max(newest, ...rows.map((row) => row.timestamp))
  }
  if (newest === point.timestamp) {
    return { readPosition: point.position, seenPosition: point.position, elements }
  }
  // Something was applied meanwhile, and shown.
  const later = await replica.read(group, 'any', timeoutMs)
  return { readPosition: point.position, seenPosition: later.position, elements }
}

/** The lists that a transaction must have read before it can be made. */
export function listsToRead(micro: readonly ListMicro[]): readonly ListName[] {
  const lists = micro.filter(({ kind, list }) => kind === 'read' || isWhole(list))
  return [...new Set(lists.map(({ list }) => list))]
}

/** The content of a transaction that was made from `state`. */
export function submissionOf(
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
    if (isWhole(list)) {
      const elements = [...(state.elements.get(list) ?? []), ...added]
      mutations.push({ key: wholeKey(list), value: Buffer.from(JSON.stringify(elements)) })
      continue
    }
    for (const element of added) {
      mutations.push(elementRow(list, element, allocationCount))
      allocationCount += 1
    }
    mutations.push({ key: headKey(list), value: Buffer.from(added.at(-1) ?? '') })
  }
  return {
    ...{ group: groups[where.group], intent, attempt, mutations },
    readPosition: state.readPosition,
    reads: listsToRead(micro).map((list) => (isWhole(list) ? wholeKey(list) : headKey(list))),
    allocations: Array.from({ length: allocationCount }, () => counter),
  }
}

function elementRow(list: ListName, element: string, allocation: number): Mutation {
  const prefix = Buffer.from(`e/${list}/`)
  return {
    key: Buffer.concat([prefix, Buffer.alloc(slotBytes)]),
    value: Buffer.from(element),
    slots: [{ allocation, at: 'key', offset: prefix.length }],
  }
}

function isWhole(list: ListName): boolean {
  return wholeLists.includes(list)
}

function wholeKey(list: ListName): Uint8Array {
  return Buffer.from(`w/${list}`)
}

function headKey(list: ListName): Uint8Array {
  return Buffer.from(`h/${list}`)
}

function nameOf(elementKey: Uint8Array): string {
  return Buffer.from(elementKey.subarray(2, 3)).toString()
}

/** Rows are written by this file alone; one that is none of its own is told as it stands. */
function elementsOf(value: Uint8Array): readonly string[] {
  const text = Buffer.from(value).toString()
  const json: unknown = JSON.parse(text)
  return Array.isArray(json) ? json.map(String) : [text]
}
