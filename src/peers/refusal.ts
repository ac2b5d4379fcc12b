/**
 * Why a peer would not have this node's store: whether that ends the node. It does for good, so the
 * claim is held against what this node itself knows first.
 *
 * LOG-12  A node retires for a claim about its log only where its own log does not refute it.
 */
import { assert } from '../base/assert.ts'
import { StoreError } from '../base/errors.ts'
import type { Trace } from '../ports/trace.ts'
import type { LinkInfo } from '../ports/transport.ts'
import { areCredible } from './admission.ts'
import type { LogStore } from '../log/log-store.ts'

/**
 * The facts on its store that this node tells as a link begins. Of its log it tells the end that the start found: later
 * flushes take the numbers of those that the disk may have lost, and a peer that knew these would not see that (LOG-10).
 */
export function describeSelf({ identity, memory, openedFlush, run }: OwnLog): LinkInfo {
  const { storeId, incarnation } = identity
  const durableFlush = openedFlush
  const known = memory.isWhole ? { known: memory.kept } : {}
  return { storeId, incarnation, durableFlush, run, ...known, knowsLogEnds: true, compares: true }
}

export type OwnLog = Pick<LogStore, 'memory' | 'openedFlush' | 'run'> & {
  readonly identity: Pick<LogStore['identity'], 'storeId' | 'incarnation'>
}

/** The claims with which peers refuse this node. */
export class Refusals {
  /** Those that this node's own log refutes. */
  falseClaims = 0
  readonly #own: OwnWord
  readonly #trace: Trace
  readonly #retire: (error: StoreError) => void

  constructor(
    { identity, openedFlush }: LogStore,
    trace: Trace,
    retire: (error: StoreError) => void,
  ) {
    const { storeId, incarnation } = identity
    this.#own = { storeId, incarnation, openedFlush }
    this.#trace = trace
    this.#retire = retire
  }

  hear(peer: string, reason: string): void {
    this.#trace.mark('refused_by_peer')
    const claim = claimIn(reason, this.#own)
    if (claim === 'refuted') {
      this.falseClaims += 1
      this.#trace.mark('false_claim_about_log')
      this.#trace.emit({ kind: 'false-claim', peer, reason })
    }
    if (claim !== 'fatal') return
    const isRefuted = claimIn(reason, this.#own) === 'refuted'
    assert(!isRefuted, 'LOG-12: a node retires for a claim that its own log refutes')
    const text = `${peer} will not vote with this store any more (${reason})`
    this.#retire(new StoreError('corrupt', text))
  }
}

/** This node, as it was when its log was opened: later flushes may have come to an old log. */
export interface OwnWord {
  readonly storeId: string
  readonly incarnation: number
  readonly openedFlush: number
}

export type Claim = 'none' | 'refuted' | 'fatal'

const flushClaim = /^stale-disk: \S+ once had flush (\d+) /
const incarnationClaim = /^stale-disk: \S+ once was in incarnation (\d+) /
const storeClaim = /^unknown-store: \S+ voted with store ([^;]+);/

/**
 * `refuted`: this log has that flush and had it when it was opened, or is in that incarnation, or is that
 * store; or no log can have come so far.
 */
export function claimIn(reason: string, own: OwnWord): Claim {
  if (!reason.startsWith('stale-disk') && !reason.startsWith('unknown-store')) return 'none'
  const [flush, incarnation] = [flushClaim, incarnationClaim].map((form) => numberIn(form, reason))
  if (flush !== undefined) return judged(flush, own.openedFlush)
  if (incarnation !== undefined) return judged(incarnation, own.incarnation)
  return storeClaim.exec(reason)?.[1] === own.storeId ? 'refuted' : 'fatal'
}

function numberIn(form: RegExp, reason: string): number | undefined {
  const found = form.exec(reason)?.[1]
  return found === undefined ? undefined : Number(found)
}

function judged(claimed: number, own: number): Claim {
  return claimed <= own || !areCredible({ durableFlush: claimed }) ? 'refuted' : 'fatal'
}
