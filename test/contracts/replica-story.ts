/** Replicas as their suite uses them: the first and the last one of a footing, and a session. */
import type {
  LocalReplica,
  ReplicaReadLevel,
  ReadPoint,
  Submission,
} from '../../src/group/replica-port.ts'
import { firstOf, lastOf, type Footing } from './footings.ts'
import { committedOf, Session, timeoutMs, type Committed } from './submissions.ts'

export class ReplicaStory extends Session {
  readonly footing: Footing
  readonly replica: LocalReplica
  /** The same one where there is one node. */
  readonly other: LocalReplica

  constructor(footing: Footing) {
    super(footing.clock)
    this.footing = footing
    this.replica = firstOf(footing).replica
    this.other = lastOf(footing).replica
  }

  async commit(
    texts: readonly string[],
    change: Partial<Submission> = {},
    replica: LocalReplica = this.replica,
  ): Promise<Committed> {
    const sent = replica.submit(this.submission(texts, change), timeoutMs)
    return committedOf(await this.footing.settled(sent))
  }

  read(
    level: ReplicaReadLevel,
    replica: LocalReplica = this.replica,
    atLeast?: number,
  ): Promise<ReadPoint> {
    return this.footing.settled(replica.read(this.group, level, timeoutMs, atLeast))
  }

  /** A node says what it has applied a moment after it has acknowledged: later on a busy machine. */
  async until(isSo: () => boolean): Promise<void> {
    const triesMax = 2_000
    for (let tries = 0; !isSo() && tries < triesMax; tries += 1) await this.passMs(5)
  }

  passMs(ms: number): Promise<void> {
    const { clock } = this.footing
    return this.footing.settled(new Promise((resolve) => void clock.setTimer(ms, resolve)))
  }
}
