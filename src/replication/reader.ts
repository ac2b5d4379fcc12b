/**
 * A read-only member of a replica set (*reader*): it has a replica of each group, learns of the log as other nodes do, and
 * serves reads. It has no vote, so that its death delays no write, and proposes nothing.
 *
 * RDR-1  A reader gives nothing in an epoch: no promise, no acceptance, no answer to a read round, and no lease. It counts
 *        itself in no majority.
 * RDR-2  A reader proposes nothing: it forwards transactions to voters, and closes no position.
 */
import { assert, present } from '../base/assert.ts'
import type { NodeId, Position } from '../base/ids.ts'
import type { Context } from './effect.ts'
import type { GroupLog, Pending } from './log.ts'

const microsPerMs = 1_000

/** The voter that gets a transaction of a reader whose leader does not answer: another one each time, first those that are alive. */
export function voterInTurn({ set }: GroupLog, context: Context, forwards: number): NodeId {
  const alive = set.voters.filter((voter) => !context.isSuspected(voter))
  const among = alive.length > 0 ? alive : set.voters
  const voter = present(among[forwards % among.length], 'MOVE-6: an epoch without voters')
  assert(voter !== context.node, 'RDR-2: a reader forwards to itself')
  return voter
}

/**
 * Whether a reader forwards the transaction no more: no proposer takes it any more, as far as clocks may differ. Its caller
 * hears nothing, since a copy may have taken effect.
 */
export function isOverAtReader(
  { standing }: GroupLog,
  { stamp, limits }: Context,
  { transaction }: Pending,
): boolean {
  const lastMicros = transaction.expiresAt + limits.clockLeadMsMax * microsPerMs
  return standing === 'reading' && stamp > lastMicros
}

/**
 * A majority of the voters has accepted nothing above `highest`, so nothing was chosen there when its round began. All reads
 * here that have a target began before that. Other nodes close a position that one voter has accepted, or that they have
 * accepted in an earlier epoch themselves; a reader would wait for it without end.
 */
export function lowerTargets(log: GroupLog, highest: Position): void {
  log.readsTargeted = log.readsTargeted.map((one) => ({
    read: one.read,
    position: Math.min(one.position, highest),
  }))
  const { catchUp } = log
  if (catchUp === undefined) return
  // Committed meanwhile, as a notice said.
  const through = Math.max(highest, ...log.decisions.keys())
  catchUp.known = Math.min(catchUp.known, through)
  catchUp.through = Math.min(catchUp.through, through)
}
