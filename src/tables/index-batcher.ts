/**
 * The way into one group of a global index: changes of many groups as one transaction. While one is
 * under way, others gather; so a caller that finds the batcher free does not wait.
 *
 * IDX-4  What an older change made of an entry never follows what a newer one made: the place in the
 *        index's group is fixed first, and the changes are read after that (SPEC.md "Global indexes"). They may be
 *        read over several turns: of an entry whose newer change another relay has brought meanwhile, the index
 *        has another row than was seen, which is a conflict.
 */
import { assert } from '../base/assert.ts'
import { asBuffer, writeCount } from '../base/bytes.ts'
import { StoreError } from '../base/errors.ts'
import type { GroupId, Position, Timestamp } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { LocalReplica, Outcome } from '../group/replica-port.ts'
import type { Mutation } from '../group/transaction.ts'
import type { GroupPort } from '../group/group-port.ts'
import type { Sessions } from '../txn/session.ts'
import { relayBounds, relayBytesAtOnceMax } from './limits.ts'
import { decodeEntryState, type EntryState } from './index-worklist.ts'
import { inTurns } from '../ports/turns.ts'

export interface BatcherParts {
  readonly replica: Pick<LocalReplica, 'read' | 'get'>
  /** Where the index is. */
  readonly groups: Pick<GroupPort, 'view' | 'commit'>
  readonly clock: Clock
  readonly random: Random
  readonly sessions: Sessions
}

/** A change that the index has now. */
export interface Relayed {
  /** Of the row on the worklist, and when that was written. */
  readonly worklistKey: Uint8Array
  readonly madeAt: Timestamp
}

/** Rows on one group's worklist that go this way. */
interface Member {
  readonly source: GroupId
  readonly worklistKeys: readonly Uint8Array[]
  readonly resolve: (relayed: readonly Relayed[]) => void
  readonly reject: (reason: unknown) => void
}

interface Change extends Relayed {
  readonly member: Member
  readonly state: EntryState
}

export const stampBytes = 8

/** An entry as stored in the index's group: its time and its content. */
export function stampedEntry(madeAt: Timestamp, value: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(stampBytes + value.length)
  writeCount(bytes, madeAt, 0)
  bytes.set(value, stampBytes)
  return bytes
}

export class IndexBatcher {
  readonly #target: GroupId
  readonly #parts: BatcherParts
  readonly #onIdle: () => void
  #waiting: Member[] = []
  #isBusy = false

  constructor(target: GroupId, parts: BatcherParts, onIdle: () => void) {
    this.#target = target
    this.#parts = parts
    this.#onIdle = onIdle
  }

  /** Resolves with the changes that the index has now: those under these keys of the worklist, as they were then. */
  relay(source: GroupId, worklistKeys: readonly Uint8Array[]): Promise<readonly Relayed[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ source, worklistKeys, resolve, reject })
      if (this.#isBusy) return
      this.#isBusy = true
      // Those who come in the same turn go together.
      this.#parts.clock.defer(() => void this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#runBatch(this.#takeBatch())
    this.#isBusy = false
    this.#onIdle()
  }

  #takeBatch(): readonly Member[] {
    let changes = 0
    const over = this.#waiting.findIndex(({ worklistKeys }) => {
      changes += worklistKeys.length
      return changes > relayBounds.changesAtOnceMax
    })
    return this.#waiting.splice(0, over < 0 ? this.#waiting.length : Math.max(1, over))
  }

  async #runBatch(batch: readonly Member[]): Promise<void> {
    try {
      const changes = await this.#written(batch)
      for (const member of batch) {
        member.resolve(changes.filter((change) => change.member === member))
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  /** Again after each conflict: another batcher has written one of the entries. */
  async #written(batch: readonly Member[]): Promise<readonly Change[]> {
    const { groups } = this.#parts
    const from = { kind: 'snapshot' } as const
    let atLeast: Position = 0
    for (let tries = 1; ; tries++) {
      const seen = await groups.view(this.#target, from, relayBounds.callMs, atLeast)
      const changes = withinBytes(await this.#read(batch))
      if (changes.length === 0) return changes
      const outcome = await this.#commit(seen.position, changes)
      if (outcome.kind === 'committed') return changes
      if (outcome.kind !== 'conflict' || tries > relayBounds.rerunsMax) throw failure(outcome)
      atLeast = outcome.position
    }
  }

  /** The changes on the worklists now, and nothing older: an earlier writer to the index saw no more. */
  async #read(batch: readonly Member[]): Promise<readonly Change[]> {
    const areReadable = await Promise.all(batch.map((member) => this.#isReadable(member)))
    const asked = batch
      .filter((_, at) => areReadable[at])
      .flatMap((member) => member.worklistKeys.map((worklistKey) => ({ member, worklistKey })))
    const changes: Change[] = []
    for await (const some of inTurns(asked, this.#parts.clock)) {
      for (const one of some) {
        const change = this.#findChange(one)
        if (change !== undefined) changes.push(change)
      }
    }
    return changes
  }

  async #isReadable({ source, reject }: Member): Promise<boolean> {
    try {
      await this.#parts.replica.read(source, 'current', relayBounds.sourceMs)
      return true
    } catch (error) {
      // A group that cannot be read does not hold up those that it would have gone with.
      reject(error)
      return false
    }
  }

  #findChange(asked: Pick<Change, 'member' | 'worklistKey'>): Change | undefined {
    const row = this.#parts.replica.get(asked.member.source, asked.worklistKey)
    if (row === undefined) return undefined
    const state = decodeEntryState(row)
    assert(state.target === this.#target, 'IDX-4: an entry has one place')
    return { ...asked, madeAt: row.timestamp, state }
  }

  async #commit(readPosition: Position, changes: readonly Change[]): Promise<Outcome> {
    const { groups, sessions, random } = this.#parts
    const { intent, settle } = sessions.open()
    let outcome: Outcome = { kind: 'unknown' }
    try {
      const submission = {
        group: this.#target,
        intent,
        attempt: random.int(1, Number.MAX_SAFE_INTEGER),
        readPosition,
        reads: changes.map(({ state }) => state.key),
        ranges: [],
        allocations: [],
        mutations: changes.map(toMutation),
      }
      outcome = await groups.commit(submission, relayBounds.callMs)
      return outcome
    } finally {
      settle(outcome.kind !== 'unknown')
    }
  }
}

/** The first ones, as many as one transaction may hold; a source with more on its worklist comes again. */
function withinBytes(changes: readonly Change[]): readonly Change[] {
  let bytes = 0
  const over = changes.findIndex(({ state: { key, value } }) => {
    bytes += key.length + stampBytes + (value?.length ?? 0)
    return bytes > relayBytesAtOnceMax
  })
  return over < 0 ? changes : changes.slice(0, Math.max(1, over))
}

function toMutation({ state, madeAt }: Change): Mutation {
  const { key, value } = state
  return { key, value: value && stampedEntry(madeAt, asBuffer(value)) }
}

function failure(outcome: Outcome): StoreError {
  const message = `changes could not be written to an index now (${outcome.kind}); they are tried again`
  return new StoreError('unavailable', message)
}
