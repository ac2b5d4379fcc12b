/**
 * The steps of an index's life, each a transaction on the registry of its schema
 * (`../indexes/state.ts`). A step that another program has taken already changes nothing. One on an index
 * that was dropped meanwhile, maybe declared anew since, rejects with `not-found`.
 */
import type { GroupId, Timestamp } from '../base/ids.ts'
import { assert } from '../base/assert.ts'
import type { GroupPort } from '../group/group-port.ts'
import { droppedMeanwhile, notAsked, type IndexState } from '../indexes/state.ts'
import { runTransaction, type TransactionOptions } from '../txn/run.ts'
import { withoutIndex, type SchemaVersion } from '../../schema/version.ts'
import {
  lifeKeys,
  findLife,
  livesIn,
  putLives,
  withdrawn,
  withLife,
  type IndexLife,
  type IndexLives,
  type NumberedName,
  type Withdrawn,
} from './index-life.ts'
import { currentKey, putVersion, registryGroup, requireVersion } from './registry-rows.ts'

interface Changed<Value> {
  readonly lives?: IndexLives | undefined
  readonly version?: SchemaVersion
  readonly value: Value
}

async function change<Value>(
  port: GroupPort,
  schema: string,
  options: TransactionOptions,
  work: (lives: IndexLives, current: SchemaVersion) => Changed<Value>,
): Promise<Value> {
  const run = await runTransaction(port, registryGroup(schema), options, async (transaction) => {
    const [row, ...rows] = await transaction.getMany([currentKey, ...lifeKeys])
    assert(row !== undefined, 'TAB-6: a schema that a cluster has stays')
    const [current, lives] = [requireVersion(schema, row.value), livesIn(rows)]
    const { lives: after = lives, version, value } = work(lives, current)
    if (version !== undefined) putVersion(transaction, current, version)
    putLives(transaction, lives, after, current.numbers.stored)
    return value
  })
  return run.value
}

/**
 * A declaration may take effect long after it was made, when its proposer was cut off meanwhile.
 * So an index is known from when a program has found it declared.
 */
export async function noteKnown(
  port: GroupPort,
  schema: string,
  options: TransactionOptions,
): Promise<void> {
  await change(port, schema, options, (lives) => {
    const since = options.clock.wallMicros()
    const declared = [...lives.byName].filter(([, { state }]) => state === 'declared')
    const after = declared.reduce(
      (all, [name]) => withLife(all, name, { state: 'known', since }),
      lives,
    )
    return { lives: after, value: undefined }
  })
}

/** `filled`: so far the build has come; without it, it begins, and goes on where one before it ended. */
export function noteBuilding(
  port: GroupPort,
  schema: string,
  index: NumberedName,
  options: TransactionOptions,
  filled?: { readonly to: GroupId | undefined },
): Promise<IndexLife> {
  return changeLife(port, schema, index, options, (life) => {
    if (life.state !== 'known' && life.state !== 'building') return life
    const { to } = filled ?? { to: life.filledTo }
    return { state: 'building', since: life.since, filledTo: to }
  })
}

/** All rows are in the index: from now on queries are answered (IDX-6). `since`: see `IndexLife`. */
export async function markReady(
  port: GroupPort,
  schema: string,
  index: NumberedName,
  since: Timestamp,
  options: TransactionOptions,
): Promise<void> {
  await changeLife(port, schema, index, options, (life) =>
    life.state === 'ready' ? life : { state: 'ready', since },
  )
}

/**
 * From now on a program that looks asks the index no more. An index that was never ready leaves the
 * schema at once; `withdrawIndex` takes another one out later. Resolves with the state that it had.
 */
export function beginDrop(
  port: GroupPort,
  schema: string,
  index: NumberedName,
  options: TransactionOptions,
): Promise<IndexState> {
  const since = options.clock.wallMicros()
  return change(port, schema, options, (lives, current) => {
    const { state } = lifeIn(lives, current, index)
    if (state === 'dropping') return { value: state }
    if (state !== 'ready') return { ...takenOut(lives, current, index), value: state }
    return { lives: withLife(lives, index.name, { state: 'dropping', since }), value: state }
  })
}

/** A program that looks keeps it no more: the schema has one version more, and the number stays given. */
export async function withdrawIndex(
  port: GroupPort,
  schema: string,
  index: NumberedName,
  options: TransactionOptions,
): Promise<void> {
  await change(port, schema, options, (lives, current) => {
    const { state } = lifeIn(lives, current, index)
    assert(state === 'dropping', 'IDX-13: an index is taken out when no program asks it any more')
    return { ...takenOut(lives, current, index), value: undefined }
  })
}

/** Its entries are gone, and so is what is known of it. */
export async function forgetDropped(
  port: GroupPort,
  schema: string,
  { number }: NumberedName,
  options: TransactionOptions,
): Promise<void> {
  await change(port, schema, options, (lives) => {
    const rest = lives.withdrawn.filter((one) => one.number !== number)
    return { lives: { ...lives, withdrawn: rest }, value: undefined }
  })
}

function takenOut(
  lives: IndexLives,
  current: SchemaVersion,
  { name, number }: NumberedName,
): Omit<Changed<never>, 'value'> {
  const gone: Withdrawn = { name, number, version: current.version }
  return { lives: withdrawn(lives, gone), version: withoutIndex(current, name) }
}

function changeLife(
  port: GroupPort,
  schema: string,
  index: NumberedName,
  options: TransactionOptions,
  next: (life: IndexLife) => IndexLife,
): Promise<IndexLife> {
  return change(port, schema, options, (lives, current) => {
    const life = lifeIn(lives, current, index)
    const flags = `--schema ${schema}`
    if (life.state === 'dropping') throw notAsked({ name: index.name, flags }, life.state)
    const value = next(life)
    return { lives: value === life ? undefined : withLife(lives, index.name, value), value }
  })
}

function lifeIn(lives: IndexLives, { numbers }: SchemaVersion, index: NumberedName): IndexLife {
  if (numbers.stored[index.name] !== index.number) throw droppedMeanwhile(index.name)
  return findLife(lives, index.name)
}
