/**
 * A node whose log must not be used asks the other nodes of its replica set, one after another, for a seat: that an empty
 * store takes the place of its own. It goes on until one of them gives a seat, or a signal ends it.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { askNode, type NodeReply, type NodeRequest } from '../adapters/node-asks.ts'
import { StoreError } from '../base/errors.ts'
import type { NodeId } from '../base/ids.ts'
import { isChange, isGoingOn, readMembers, type MembersView } from './members-view.ts'

export interface SeatAsksParts {
  readonly node: NodeId
  /** The store that must not vote any more, as far as its folder tells. */
  readonly storeId: string
  readonly others: readonly { readonly id: NodeId; readonly url: string }[]
  /** The cluster's; absent: it has none. */
  readonly secret: string | undefined
  /** Ends the questions. */
  readonly signal: AbortSignal | undefined
  /** Called after each round without a seat, with the reasons of the others. */
  onRefused(why: readonly string[], waitMs: number): void
}

type Answer = { readonly seat: number } | { readonly why: string }

const lookMs = 5_000
/** A node answers when the set's own group has the change, or when no majority has answered it for some time. */
const changeMs = 30_000
const waitMsFirst = 500
const waitMsMax = 10_000

/** Resolves with the seat. Rejects with `closed` when the signal ends it. */
export async function askForSeat(parts: SeatAsksParts): Promise<number> {
  for (let waitMs = waitMsFirst; ; waitMs = Math.min(waitMsMax, 2 * waitMs)) {
    const why: string[] = []
    for (const { id, url } of parts.others) {
      checkSignal(parts.signal)
      const answer = await askOne(parts, url)
      if ('seat' in answer) return answer.seat
      why.push(`${id}: ${answer.why}`)
    }
    checkSignal(parts.signal)
    parts.onRefused(why, waitMs)
    const options = parts.signal === undefined ? {} : { signal: parts.signal }
    await delay(waitMs, undefined, options).catch(() => undefined)
  }
}

function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new StoreError('closed', 'this node was stopped')
}

async function askOne(parts: SeatAsksParts, url: string): Promise<Answer> {
  const { node } = parts
  const looked = await ask(parts, { url, method: 'GET', path: '/members', timeoutMs: lookMs })
  const view = looked.body && readMembers(looked.body)
  if (view === undefined) return refusal(looked)
  const hindrance = await clearWay(parts, url, view)
  if (hindrance !== undefined) return { why: hindrance }
  const path = `/members/replace?${new URLSearchParams({ node }).toString()}`
  const reply = await ask(parts, { url, method: 'POST', path, timeoutMs: changeMs })
  const change = reply.body?.['change']
  if (!isChange(change)) return refusal(reply)
  const { seat, store, phase, number } = change
  const isOwn = change.kind === 'replace' && change.node === node && phase === 'copying'
  if (isOwn && store === undefined && seat !== undefined) return { seat }
  return { why: `change ${number} has no seat left for an empty store (${phase})` }
}

/** Why the node must not be asked for a seat now; undefined: it may. Gives a change up whose newcomer this folder has lost. */
async function clearWay(
  parts: SeatAsksParts,
  url: string,
  { members, change, canLose }: MembersView,
): Promise<string | undefined> {
  const { node, storeId } = parts
  // A copy of a folder must not drive out the node that it was copied from.
  if (members.some((one) => one.node === node && one.isAlive)) {
    return `it hears of ${node}: another process runs under that name, or this one has just ended`
  }
  // The request would wait there for a majority, and may be carried out when this node has come back with its own log.
  if (canLose < 0) return 'no majority of the voters answers it now'
  if (!isGoingOn(change) || change.node !== node || change.store === undefined) return undefined
  if (change.phase === 'sealing') return `change ${change.number} goes on, and another one follows`
  if (change.store !== storeId) {
    return `change ${change.number} has given the seat to store ${change.store}, which is not the one of this folder`
  }
  const request = { url, method: 'POST', path: '/members/cancel', timeoutMs: changeMs } as const
  const { why } = await ask(parts, request)
  return why
}

function ask(
  { secret, signal }: SeatAsksParts,
  request: Omit<NodeRequest, 'headers' | 'signal'>,
): Promise<NodeReply> {
  const headers = secret === undefined ? {} : { authorization: `Bearer ${secret}` }
  return askNode({ ...request, headers, ...(signal !== undefined && { signal }) })
}

function refusal({ why = 'its answer has another form' }: NodeReply): Answer {
  return { why }
}
