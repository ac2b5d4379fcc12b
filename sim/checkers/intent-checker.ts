/**
 * Compares the answers of `groups.outcome`, and the ends of calls, with the log.
 *
 * TXN-5   An intent whose call was refused never takes effect. The answer `committed` names the position where
 *         the intent took effect. After `expired` the intent never takes effect. The group answers `none`
 *         only before `expiresAt` of an intent without effect so far, and `forgotten` only when the intent
 *         is below its session's floor, or `expiresAt` has passed or was not named.
 * LEASE-3 The answer covers every position that was acknowledged before the question.
 */
import type { IntentOutcome } from '../../src/group/replica-port.ts'
import type { LogModel } from './log-model.ts'
import type { Referee } from './referee.ts'

/** An intent as it was sent. */
export interface SentIntent {
  readonly group: string
  readonly session: string
  readonly sequence: number
  readonly expiresAt: number
}

/** A question, with the highest position of the group that any program had been told of before. */
export type IntentAsked = SentIntent & { readonly floorPosition: number; readonly isTimed: boolean }

export class IntentChecker {
  readonly #model: LogModel
  readonly #referee: Referee
  readonly #told = new Map<string, number>()
  /** The highest floor that each session has sent to each group. */
  readonly #floors = new Map<string, number>()
  /** Intents that a node said will never take effect, with its words. */
  readonly #never: { readonly sent: SentIntent; readonly told: string }[] = []

  constructor(model: LogModel, referee: Referee) {
    this.#model = model
    this.#referee = referee
  }

  toldPosition(group: string): number {
    return this.#told.get(group) ?? 0
  }

  onSent(sent: SentIntent, floor: number): void {
    const name = formatSession(sent)
    this.#floors.set(name, Math.max(floor, this.#floors.get(name) ?? 0))
  }

  /** The call was answered with `committed`. */
  onCommitted(sent: SentIntent, position: number): void {
    this.#see(sent.group, position)
    const at = this.#findEffect(sent)
    const sentence = 'A call was told a position at which its intent did not take effect.'
    this.#check(at === position, 'TXN-5', sentence, { sent, position, at })
  }

  /** The call was refused for good. */
  onRefused(sent: SentIntent, code: string): void {
    this.#onNever(sent, code)
  }

  onOutcome(asked: IntentAsked, outcome: IntentOutcome): void {
    if (outcome.kind === 'expired') {
      const past = this.#model.of(asked.group).timestamp > asked.expiresAt
      const early = 'The answer is `expired`, and log time has not passed `expiresAt`.'
      this.#check(past, 'TXN-5', early, { asked, logTime: this.#model.of(asked.group).timestamp })
      return this.#onNever(asked, 'expired')
    }
    const { kind, position, timestamp } = outcome
    const at = this.#findEffect(asked)
    const detail = { asked, outcome, at }
    if (kind === 'committed') {
      const isThere = at === position && this.#findTime(asked.group, position) === timestamp
      const sentence =
        'The answer `committed` names a position at which the intent did not take effect.'
      this.#check(isThere, 'TXN-5', sentence, detail)
      return this.#see(asked.group, position)
    }
    const isCurrent = position >= asked.floorPosition
    const stale = 'An outcome was read at a position before one that was already acknowledged.'
    this.#check(isCurrent, 'LEASE-3', stale, detail)
    this.#see(asked.group, position)
    if (kind === 'none') this.#onNone(asked, { position, timestamp }, detail)
    else this.#onForgotten(asked, { position, timestamp }, detail)
  }

  #onNone(asked: IntentAsked, { position, timestamp }: Point, detail: object): void {
    const at = this.#findEffect(asked)
    const sentence = 'The answer is `none`, and the intent is in effect.'
    this.#check(at === undefined || at > position, 'TXN-5', sentence, detail)
    const isInTime = asked.isTimed && timestamp <= asked.expiresAt
    const late = 'The answer is `none`, and a session may have been forgotten since.'
    this.#check(isInTime, 'TXN-5', late, detail)
  }

  /** The intent may have taken effect: the group remembers nothing of it. */
  #onForgotten(asked: IntentAsked, { position, timestamp }: Point, detail: object): void {
    const isSettled = asked.sequence < (this.#floors.get(formatSession(asked)) ?? 0)
    const mayBeForgotten = isSettled || timestamp > asked.expiresAt
    // A caller that does not name its time cannot tell an ineffective intent from a forgotten one.
    const at = this.#findEffect(asked)
    const isKnown = asked.isTimed || (at !== undefined && at <= position)
    const sentence = 'The answer is `forgotten`, and the group must still remember the intent.'
    this.#check(mayBeForgotten || !isKnown, 'TXN-5', sentence, detail)
  }

  #onNever(sent: SentIntent, told: string): void {
    this.#never.push({ sent, told })
    this.#checkNever(sent, told)
  }

  /** Final answers must still be true at the end. */
  atEnd(): void {
    for (const { sent, told } of this.#never) this.#checkNever(sent, told)
  }

  #checkNever(sent: SentIntent, told: string): void {
    const at = this.#findEffect(sent)
    const sentence = 'An intent took effect that a node had said never will.'
    this.#check(at === undefined, 'TXN-5', sentence, { sent, told, at })
  }

  #findEffect({ group, session, sequence }: SentIntent): number | undefined {
    return this.#model.of(group).effects.get(`${session}/${sequence}`)
  }

  #findTime(group: string, position: number): number | undefined {
    return this.#model.of(group).timestamps[position]
  }

  #see(group: string, position: number): void {
    this.#told.set(group, Math.max(position, this.toldPosition(group)))
  }

  #check(holds: boolean, rule: string, sentence: string, detail: object): void {
    this.#referee.check(holds, rule, sentence, () => ({ ...detail }))
  }
}

interface Point {
  readonly position: number
  readonly timestamp: number
}

function formatSession({ group, session }: SentIntent): string {
  return `${session}\n${group}`
}
