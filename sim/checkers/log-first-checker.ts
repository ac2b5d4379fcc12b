/**
 * LOG-14: a node's data disk holds no position of a group that its log disk did not hold before, as chosen. Else a
 * crash leaves rows without a log for them: after a power cut of all nodes none of them knows any more which value
 * was chosen there, and a replica that has not applied the position cannot learn it.
 */
import type { FlushRecord } from '../../src/log/flush.ts'
import type { Referee } from './referee.ts'

export class LogFirstChecker {
  readonly #referee: Referee
  /** By node and group, the highest position that was durable in the log as chosen. */
  readonly #chosen = new Map<string, Map<string, number>>()

  constructor(referee: Referee) {
    this.#referee = referee
  }

  /** Another store is to have the node's vote. */
  onStoreLost(node: string): void {
    this.#chosen.delete(node)
  }

  /** A record became durable on the node's log disk. */
  onLogDurable(node: string, { kind, group, position }: FlushRecord): void {
    if (kind !== 'chosen') return
    let groups = this.#chosen.get(node)
    if (groups === undefined) this.#chosen.set(node, (groups = new Map<string, number>()))
    if (position > (groups.get(group) ?? 0)) groups.set(group, position)
  }

  /** The group's state record became durable on the node's data disk. */
  onDataDurable(node: string, group: string, position: number): void {
    const logged = this.#chosen.get(node)?.get(group) ?? 0
    this.#referee.check(
      position <= logged,
      'LOG-14',
      'A data disk holds a position that the log did not hold as chosen before.',
      () => ({ node, group, position, logged }),
    )
  }
}
