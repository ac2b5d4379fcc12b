/**
 * What became of intents, as the library says it, against the log: who asks after an unknown outcome is
 * told what the log has of the intent, and what is told for good stays so.
 *
 * TXN-5   A call that is refused never takes effect. Of answers: `committed` is of an intent that took effect there; `expired`, and `none` or `forgotten` after
 *         its time, of one that never does; `forgotten` is told of none that might yet take effect.
 * LEASE-3 The answer is as of all that was acknowledged before it was asked for.
 */
import type { IntentOutcome } from '../../src/replica/local-replica.ts'
import type { LogModel } from './log-model.ts'
import type { Referee } from './referee.ts'

/** An intent as it was sent. */
export interface SentIntent {
  readonly group: string
  readonly session: string
  readonly sequence: number
  readonly expiresAt: number
}

/** When somebody asked: the highest position of the group that anybody had been told of. */
export type IntentAsked = SentIntent & { readonly floorPosition: number; readonly isTimed: boolean }

export class IntentChecker {
  readonly #model: LogModel
  readonly #referee: Referee
  readonly #told = new Map<string, number>()
  /** The highest floor that each session has sent to each group. */
  readonly #floors = new Map<string, number>()
  /** Intents that surely never take effect, or did not, by what was told. */
  readonly #never: { readonly sent: SentIntent; readonly told: string }[] = []

  constructor(model: LogModel, referee: Referee) {
    this.#model = model
    this.#referee = referee
  }

  toldPosition(group: string): number {
    return this.#told.get(group) ?? 0
  }

  onSent(sent: SentIntent, floor: number): void {
    const name = sessionOf(sent)
    this.#floors.set(name, Math.max(floor, this.#floors.get(name) ?? 0))
  }

  /** Its own call was told that it is committed. */
  onCommitted(sent: SentIntent, position: number): void {
    this.#see(sent.group, position)
    const at = this.#effectOf(sent)
    const sentence = 'A commit is told of an intent that took effect elsewhere, or nowhere.'
    this.#check(at === position, 'TXN-5', sentence, { sent, position, at })
  }

  /** Its own call was told that nothing was carried out, and nothing will be. */
  onRefused(sent: SentIntent, code: string): void {
    this.#onNever(sent, code)
  }

  onOutcome(asked: IntentAsked, outcome: IntentOutcome): void {
    if (outcome.kind === 'expired') {
      const past = this.#model.of(asked.group).timestamp > asked.expiresAt
      const early = 'An intent is told to have expired before its time.'
      this.#check(past, 'TXN-5', early, { asked, logTime: this.#model.of(asked.group).timestamp })
      return this.#onNever(asked, 'expired')
    }
    const { kind, position, timestamp } = outcome
    const at = this.#effectOf(asked)
    const detail = { asked, outcome, at }
    if (kind === 'committed') {
      const isThere = at === position && this.#timeOf(asked.group, position) === timestamp
      const sentence = 'An intent is told to be committed where it did not take effect.'
      this.#check(isThere, 'TXN-5', sentence, detail)
      return this.#see(asked.group, position)
    }
    const isCurrent = position >= asked.floorPosition
    const stale = 'What became of an intent is told as of before what was acknowledged.'
    this.#check(isCurrent, 'LEASE-3', stale, detail)
    this.#see(asked.group, position)
    if (kind === 'none') this.#onNone(asked, { position, timestamp }, detail)
    else this.#onForgotten(asked, { position, timestamp }, detail)
  }

  #onNone(asked: IntentAsked, { position, timestamp }: Point, detail: object): void {
    const at = this.#effectOf(asked)
    const sentence = 'An intent is told not to be in effect, and is.'
    this.#check(at === undefined || at > position, 'TXN-5', sentence, detail)
    if (timestamp > asked.expiresAt) this.#onNever(asked, 'none, after its time')
  }

  /** It may have been in effect: nothing is remembered that would tell. */
  #onForgotten(asked: IntentAsked, { position, timestamp }: Point, detail: object): void {
    const isSettled = asked.sequence < (this.#floors.get(sessionOf(asked)) ?? 0)
    const mayBeForgotten = isSettled || timestamp > asked.expiresAt
    // Who does not name its time cannot tell an intent that is not in effect from one that is forgotten.
    const at = this.#effectOf(asked)
    const isKnown = asked.isTimed || (at !== undefined && at <= position)
    const sentence = 'An intent is told to be forgotten that may still be asked for.'
    this.#check(mayBeForgotten || !isKnown, 'TXN-5', sentence, detail)
  }

  #onNever(sent: SentIntent, told: string): void {
    this.#never.push({ sent, told })
    this.#checkNever(sent, told)
  }

  /** What was told for good is so at the end. */
  atEnd(): void {
    for (const { sent, told } of this.#never) this.#checkNever(sent, told)
  }

  #checkNever(sent: SentIntent, told: string): void {
    const at = this.#effectOf(sent)
    const sentence = 'An intent is told never to take effect, and did.'
    this.#check(at === undefined, 'TXN-5', sentence, { sent, told, at })
  }

  #effectOf({ group, session, sequence }: SentIntent): number | undefined {
    return this.#model.of(group).effects.get(`${session}/${sequence}`)
  }

  #timeOf(group: string, position: number): number | undefined {
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

function sessionOf({ group, session }: SentIntent): string {
  return `${session}\n${group}`
}
