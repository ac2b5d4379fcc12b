/** Deletions whose bytes still stand in files of this node, in figures and in words. */
import type { EraseFigures } from '../replica/erase-report.ts'
import type { Figure } from './metrics.ts'

export function eraseFigures(erase: EraseFigures | undefined): readonly Figure[] {
  if (erase === undefined) return []
  const { requests, oldestMs, overdue, done } = erase
  return [
    {
      name: 'trilithon_erase_pending',
      help: 'Rounds of deletions whose bytes may still stand in files of this node.',
      value: requests.length,
    },
    {
      name: 'trilithon_erase_oldest_ms',
      help: 'How long ago the oldest of these deletions was taken in; 0: there is none.',
      value: oldestMs,
    },
    {
      name: 'trilithon_erase_overdue',
      help: 'Rounds whose bytes are there for longer than erase_within_ms.',
      value: overdue,
    },
    {
      name: 'trilithon_erase_done_total',
      help: 'Rounds whose bytes left every file of this node since it started.',
      value: done,
    },
  ]
}

/** Erasures behind their time, in words; empty when there are none. */
export function describeErase({ requests, overdue }: EraseFigures): readonly string[] {
  const why = requests.slice(0, overdue).flatMap((request) => request.why)
  if (overdue === 0) return []
  return [
    `bytes of what was deleted are still in files of this node after erase_within_ms (${why.join('; ')}): see trilithon erase status`,
  ]
}
