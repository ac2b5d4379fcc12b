/** Cells as their suite uses them: a service, another way to the same cells, and a datastore of its own. */
import { toStoreError, type Outcome } from '../../src/base/problem.ts'
import { unpackBody, type Json } from '../../src/cells/body.ts'
import type { CellName, StoredCell, Written } from '../../src/cells/cell.ts'
import type {
  Answered,
  CallOptions,
  CellOperation,
  CellService,
  GetItem,
  ReadFrom,
} from '../../src/cells/operation.ts'
import { shardGroup, shardOf } from '../../src/cells/shard.ts'
import type { Intents } from '../../src/txn/intents.ts'
import { current, first, packed, rowKey } from '../cells/kit.ts'
import { firstOf, newName, type Footing } from './footings.ts'
import { timeoutMs } from './submissions.ts'

/** Where a service lives. */
export interface CellPlace {
  readonly footing: Footing
  readonly service: CellService
  /** The same cells by another way. */
  readonly other: CellService
  /** Ends `service`. */
  close(): Promise<void>
}

let rows = 1_000

/** A row that no other test has. */
export function newRowKey(): string {
  return rowKey((rows += 1))
}

/** `column/refKey=body`, or `none`, or the code of what went wrong. */
export function asText(outcome: Outcome<StoredCell | undefined>): string {
  if (outcome.kind === 'problem') return outcome.problem.code
  return outcome.value === undefined ? 'none' : textOfCell(outcome.value)
}

export function textOfCell({ column, refKey, body }: StoredCell): string {
  return `${column}/${refKey}=${JSON.stringify(unpackBody(body))}`
}

export function codeOf(outcome: Outcome<unknown>): string {
  return outcome.kind === 'ok' ? 'ok' : outcome.problem.code
}

/** The cells of a page, and where to go on. */
export function textOfPage({ answer }: Answered): string {
  if (answer.kind !== 'row' && answer.kind !== 'versions') return answer.kind
  const { cells, next } = answer.page
  const texts = cells.map(textOfCell)
  return [...texts, ...(next === undefined ? [] : [`→ ${next}`])].join(' ')
}

type Options = Partial<CallOptions>

export class CellStory {
  readonly place: CellPlace
  readonly service: CellService
  readonly other: CellService
  readonly datastore: string

  /** `form`: of its datastore, as the name ends: `.8`. */
  constructor(place: CellPlace, form = '') {
    this.datastore = `${newName('store')}${form}`
    this.place = place
    this.service = place.service
    this.other = place.other
  }

  ask(
    operation: CellOperation,
    service: CellService = this.service,
    options: Options = {},
  ): Promise<Answered> {
    return this.place.footing.settled(service.execute(operation, { timeoutMs, ...options }))
  }

  shardOf(row: string): number {
    return shardOf(this.datastore, row)
  }

  /** A row of a shard that the first node itself holds. */
  ownRowKey(): string {
    const { replica } = firstOf(this.place.footing)
    for (;;) {
      const key = newRowKey()
      if (replica.holds(shardGroup(this.datastore, this.shardOf(key)))) return key
    }
  }

  /** Without waiting for it. */
  async send(
    name: CellName,
    body: Json,
    service: CellService = this.service,
    options: Options = {},
  ): Promise<Written> {
    const { datastore } = this
    const items = [{ ...name, body: packed(body) }]
    const operation = { kind: 'put', datastore, items } as const
    const { answer } = await service.execute(operation, { timeoutMs, ...options })
    if (answer.kind === 'problem') throw toStoreError(answer.problem)
    if (answer.kind !== 'put') throw new Error(answer.kind)
    return first(answer.items)
  }

  put(...sent: Parameters<CellStory['send']>): Promise<Written> {
    return this.place.footing.settled(this.send(...sent))
  }

  /** The code of the error that a put meets. */
  async refused(...sent: Parameters<CellStory['send']>): Promise<unknown> {
    return this.put(...sent).then(
      ({ addedId }) => `put as ${addedId}`,
      (error: { code?: unknown }) => error.code,
    )
  }

  async get(
    item: GetItem,
    read: ReadFrom = current,
    service: CellService = this.service,
    options: Options = {},
  ): Promise<string> {
    const { datastore } = this
    const asked = { kind: 'get', datastore, read, items: [item] } as const
    const { answer } = await this.ask(asked, service, options)
    if (answer.kind === 'problem') return answer.problem.code
    return answer.kind === 'get' ? answer.items.map(asText).join(' ') : answer.kind
  }

  async page(operation: CellOperation, service: CellService = this.other): Promise<string> {
    return textOfPage(await this.ask(operation, service))
  }

  intents(sequence: number): Intents {
    const expiresAt = this.place.footing.clock.wallMicros() + 600_000_000
    return { session: newName('session-'), sequences: [sequence], floor: 1, expiresAt }
  }

  passMs(ms: number): Promise<void> {
    const { clock, settled } = this.place.footing
    return settled(new Promise((resolve) => void clock.setTimer(ms, resolve)))
  }
}
