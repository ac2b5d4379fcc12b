/** Reads of shards, each at one moment, with what they tell of how far the shard had come. */
import { present } from '../base/assert.ts'
import type { Position } from '../base/ids.ts'
import type { Clock } from '../ports/clock.ts'
import type { Pace } from '../ports/pace.ts'
import type { GroupTables } from '../tables/tables.ts'
import type { ReadFrom } from './operation.ts'
import { readShard, type ShardReadResult, type ShardView } from './shard-read.ts'
import type { ByShard } from './shard.ts'
import type { ObservedPositions } from './observed-positions.ts'

/** One call under way. */
export interface Call {
  readonly deadlineMs: number
  readonly seen: ObservedPositions
  readonly pace?: Pace | undefined
}

interface Asked {
  readonly datastore: string
  readonly read: ReadFrom
}

export class ShardReader {
  readonly #shards: ByShard<GroupTables>
  readonly #clock: Clock

  constructor(shards: ByShard<GroupTables>, clock: Clock) {
    this.#shards = shards
    this.#clock = clock
  }

  /** Reads a shard at one moment, and notes how far it had come. */
  async read<Value>(
    asked: Asked,
    shard: number,
    call: Call,
    work: (view: ShardView) => Promise<Value>,
  ): Promise<Value> {
    return (await this.#read(asked, shard, call, work)).value
  }

  /** Of what reads something in any case. */
  async readAt<Value>(
    asked: Asked,
    shard: number,
    call: Call,
    work: (view: ShardView) => Promise<Value>,
  ): Promise<{ readonly value: Value; readonly position: Position }> {
    const { value, view } = await this.#read(asked, shard, call, work)
    return { value, position: present(view, 'CELL-5: a shard is read at a view').position }
  }

  async #read<Value>(
    { datastore, read }: Asked,
    shard: number,
    call: Call,
    work: (view: ShardView) => Promise<Value>,
  ): Promise<ShardReadResult<Value>> {
    const ports = { tables: this.#shards.get(datastore, shard), clock: this.#clock }
    const of = { datastore, shard }
    const done = await readShard(ports, of, read, call.deadlineMs, work)
    if (done.view !== undefined) call.seen.see(shard, done.view.position)
    return done
  }
}
