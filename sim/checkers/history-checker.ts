/**
 * The clients' answers, judged as one history by itself: a second opinion beside the checkers
 * that know what each node did.
 *
 * TXN-1   One order of all transactions of a group, which real time and sessions fit.
 * LEASE-3 A current read shows all that was acknowledged before it began.
 * LEASE-4 A session never sees less than it has seen.
 * LOG-3   One append leaves one element.
 */
import type { AnomalyName } from '../history/anomaly.ts'
import { checkHistory, explain } from '../history/check.ts'
import type { History } from '../history/operation.ts'
import type { Referee } from './referee.ts'

export function judgeHistory(history: History, referee: Referee): void {
  const { anomalies, acknowledgedCount } = checkHistory(history)
  for (const rule of ['TXN-1', 'LEASE-3', 'LEASE-4', 'LOG-3']) {
    referee.judged(rule, acknowledgedCount)
  }
  for (const anomaly of anomalies) {
    referee.check(false, pickRule(anomaly.name), `A history is wrong: ${anomaly.name}.`, () => ({
      explanation: explain(anomaly, history).split('\n'),
    }))
  }
}

function pickRule(name: AnomalyName): string {
  switch (name) {
    case 'stale-read':
      return 'LEASE-3'
    case 'session-backwards':
      return 'LEASE-4'
    case 'duplicate-elements':
      return 'LOG-3'
    default:
      return 'TXN-1'
  }
}
