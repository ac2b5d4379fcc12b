/**
 * Majority reads (Megastore, 4.6.2 step 2b): ask the voters for their highest accepted position,
 * catch up to the maximum, serve. An accepted position that is undecided is never skipped: it is
 * waited for, or finished, before anything is shown.
 *
 * One round per group is on its way at a time; reads that begin meanwhile share the next one,
 * since a round's answers count only for reads that began before it was sent.
 */
import type { NodeId, Position } from '../base/ids.ts'
import { majorityOf } from '../placement/placement.ts'
import { chase } from './catch-up.ts'
import { spread, type Context } from './effect.ts'
import { highestKnown, type GroupLog, type ReadRound } from './log.ts'
import type { Highest, Query } from './message.ts'

export function beginRead(log: GroupLog, read: number): void {
  log.readsWaiting.push(read)
}

/** The edge no longer waits for it. */
export function cancelRead(log: GroupLog, read: number): void {
  log.readsWaiting = log.readsWaiting.filter((one) => one !== read)
  log.readsTargeted = log.readsTargeted.filter((one) => one.read !== read)
}

export function startReadRound(log: GroupLog, context: Context): void {
  if (log.readRound !== undefined || log.readsWaiting.length === 0) return
  const round = context.drawNumber()
  const deadline = context.now + spread(context, context.limits.phaseTimeoutMs, round % 1024, 0)
  log.readRound = { round, reads: log.readsWaiting, answers: new Map(), deadline }
  log.readsWaiting = []
  sendQueries(log, context, log.readRound)
  countAnswer(log, context, log.readRound, context.node, highestKnown(log))
}

function sendQueries(log: GroupLog, context: Context, current: ReadRound): void {
  const { group, set } = log
  const message: Query = { kind: 'query', group, epoch: set.epoch, read: current.round }
  for (const voter of set.voters) {
    if (voter === context.node || current.answers.has(voter)) continue
    context.emit({ kind: 'send', to: voter, message })
  }
}

export function onReadDeadline(log: GroupLog, context: Context, current: ReadRound): void {
  context.trace.mark('read round sent again')
  current.deadline =
    context.now + spread(context, context.limits.phaseTimeoutMs, current.round % 1024, 1)
  sendQueries(log, context, current)
}

export function onQuery(log: GroupLog, context: Context, from: NodeId, message: Query): void {
  const { group, set } = log
  const position = highestKnown(log)
  const answer = { kind: 'highest', group, epoch: set.epoch, read: message.read, position } as const
  context.emit({ kind: 'send', to: from, message: answer })
}

export function onHighest(log: GroupLog, context: Context, from: NodeId, message: Highest): void {
  const current = log.readRound
  if (current === undefined || current.round !== message.read) return
  if (!log.set.voters.includes(from)) return
  countAnswer(log, context, current, from, message.position)
}

function countAnswer(
  log: GroupLog,
  context: Context,
  current: ReadRound,
  from: NodeId,
  position: Position,
): void {
  current.answers.set(from, position)
  if (current.answers.size < majorityOf(log.set.voters)) return
  const target = Math.max(...current.answers.values())
  log.readRound = undefined
  for (const read of current.reads) log.readsTargeted.push({ read, position: target })
  const informer = [...current.answers].find(([, highest]) => highest === target)?.[0]
  chase(log, context, target, informer)
}

/** Serves every read whose target is applied. */
export function serveReads(log: GroupLog, context: Context): void {
  if (log.readsTargeted.length === 0) return
  const { position, timestamp } = log.state
  const left = log.readsTargeted.filter((one) => one.position > position)
  for (const one of log.readsTargeted) {
    if (one.position > position) continue
    context.emit({ kind: 'serve', read: one.read, position, timestamp })
  }
  log.readsTargeted = left
}
