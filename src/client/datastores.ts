/** Declared datastores, as programs declare and find them. */
import { checkArgument, checkOptions, type Rule, type Rules } from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { isPlaceName, type Place } from '../base/placed-group.ts'
import { isPlain } from '../base/words.ts'
import { toStoreError } from '../base/problem.ts'
import { datastoreProblem } from '../cells/cell.ts'
import { isBaseName, isShardCount, nameDatastore, shardCountMax } from '../cells/datastore-form.ts'
import {
  declareDatastore,
  findDeclared,
  formWords,
  listDeclared,
  type DeclaredDatastore,
} from '../cells/declared-datastores.ts'
import { openCellTables, shardsPrefix } from '../cells/cell-table.ts'
import type { CellService } from '../cells/operation.ts'
import type { Clock } from '../ports/clock.ts'
import type { Tables } from '../tables/tables.ts'
import type { Random } from '../ports/random.ts'
import type { GroupAnswer, GroupOperation } from '../txn/group-operation.ts'
import { Groups, type AskGroup } from './groups.ts'
import { SeenPositions } from './seen-positions.ts'
import type { WriteOptions } from './options.ts'
import { writeRules } from './rules.ts'

export type { DeclaredDatastore } from '../cells/declared-datastores.ts'

/** The sets of a region, or one set. Names are 1 to 32 of `a-z 0-9 -`. */
export type DatastorePlacement = { readonly region: string } | { readonly set: string }

export interface DatastoreOptions extends WriteOptions {
  /** A power of two from 1 to 4096; default 4096. */
  readonly shards?: number
  /** Default: all sets. */
  readonly placement?: DatastorePlacement
}

const name: Rule = {
  accepts: isBaseName,
  words: '1 to 64 of a-z, 0-9 and _, starting with a letter',
}
const datastoreRules: Rules<DatastoreOptions> = {
  ...writeRules,
  shards: { accepts: isShardCount, words: `a power of two from 1 to ${shardCountMax}` },
  placement: {
    accepts: (value) => readPlace(value) !== undefined,
    words: "{ region: 'eu' } or { set: 'west' }",
  },
}

function readPlace(given: unknown): Place | undefined {
  if (typeof given !== 'object' || given === null || !isPlain(given)) return undefined
  const [entry, ...others] = Object.entries(given)
  const [kind, of]: readonly unknown[] = entry ?? []
  if (others.length > 0 || typeof of !== 'string' || !isPlaceName(of)) return undefined
  return kind === 'set' || kind === 'region' ? { kind, name: of } : undefined
}

export interface DatastoresParts {
  readonly service: CellService
  readonly tables: Tables
  readonly groups: Pick<Groups, 'list'>
  readonly clock: Clock
  readonly timeoutMs: number
}

export class Datastores {
  readonly #parts: DatastoresParts

  constructor(parts: DatastoresParts) {
    this.#parts = parts
  }

  /**
   * Declares a datastore, once and for good: `create('trips', { shards: 64 })` gives `trips.64`, by which its cells are put and
   * read. Sent again it is the same. Rejects with `already-exists` where it is declared with another form, or has cells under the
   * name without a form; with `invalid` for a place that no replica set has.
   */
  async create(
    base: string,
    options: DatastoreOptions = {},
  ): Promise<{ readonly kind: 'new' | 'same'; readonly declared: DeclaredDatastore }> {
    checkArgument('client.datastores.create', 'the name', base, name)
    checkOptions('client.datastores.create', options, datastoreRules)
    const { shards = shardCountMax, placement, timeoutMs = this.#parts.timeoutMs } = options
    const { signal } = options
    const place = readPlace(placement)
    const form = place === undefined ? { base, shards } : { base, shards, place }
    const datastore = nameDatastore(form)
    const wrong = datastoreProblem(datastore)
    if (wrong !== undefined) throw toStoreError(wrong)
    const call = { timeoutMs, ...(signal && { signal }) }
    const { tables, clock } = this.#parts
    const before = await findDeclared(tables, base, call)
    if (before === undefined) await this.#checkNew(base, datastore, call)
    return declareDatastore(tables, form, clock, call)
  }

  /** All that were declared, in the order of their names. Others are there by being used. */
  async list(options: WriteOptions = {}): Promise<readonly DeclaredDatastore[]> {
    checkOptions('client.datastores.list', options, writeRules)
    return listDeclared(this.#parts.tables, options)
  }

  /** By the name under which it was declared; undefined: none was. */
  async find(base: string, options: WriteOptions = {}): Promise<DeclaredDatastore | undefined> {
    checkArgument('client.datastores.find', 'the name', base, name)
    checkOptions('client.datastores.find', options, writeRules)
    return findDeclared(this.#parts.tables, base, options)
  }

  /** A node knows the places; and a slip is found while nothing depends on it. */
  async #checkNew(
    base: string,
    datastore: string,
    call: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<void> {
    const { service, groups } = this.#parts
    const first = { kind: 'after', shard: 0, addedId: 0 } as const
    const read = { level: 'snapshot', atLeast: [] } as const
    const look = { kind: 'log', datastore, read, items: [first], limit: 1, waitMs: 0 } as const
    const { answer } = await service.execute(look, call)
    if (answer.kind === 'problem') throw toStoreError(answer.problem)
    if (datastore === base) return
    const { timeoutMs, ...signalled } = call
    const used = await groups.list(shardsPrefix(base), undefined, 1, timeoutMs, signalled)
    if (used.length === 0) return
    const message = `datastore ${base} has cells already, in ${formWords(base)}, which stay there; give another name for another form`
    throw new StoreError('already-exists', message)
  }
}

export interface DatastoresThrough {
  readonly cells: CellService
  readonly groups: { execute(operation: GroupOperation, timeoutMs: number): Promise<GroupAnswer> }
  readonly clock: Clock
  readonly random: Random
  /** For calls that name no time-out of their own, in milliseconds. */
  readonly timeoutMs: number
}

/** For a server, through what carries out its operations. */
export function datastoresThrough(through: DatastoresThrough): Datastores {
  const { cells: service, clock, random, timeoutMs } = through
  const ask: AskGroup = (operation, ms) => through.groups.execute(operation, ms)
  const groups = new Groups(ask, new SeenPositions())
  const tables = openCellTables(groups, { clock, random, timeoutMs })
  return new Datastores({ service, tables, groups, clock, timeoutMs })
}
