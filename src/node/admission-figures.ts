/** The requests that wait to begin at a node, are at work and were refused, in figures. */
import type { Admission, LaneName } from './admission.ts'
import type { Figure } from './metrics.ts'

const laneNames: readonly LaneName[] = ['reads', 'writes']

export function admissionFigures({
  figures,
}: {
  readonly figures: Admission['figures']
}): readonly Figure[] {
  const { waiting, refused, writesAtWork, writesMax } = figures
  return [
    ...laneNames.map((lane) => ({
      name: 'trilithon_load_waiting',
      help: 'Requests of clients that have come and wait to begin, over links and HTTP.',
      value: waiting[lane],
      labels: { lane },
    })),
    ...laneNames.map((lane) => ({
      name: 'trilithon_load_refused_total',
      help: 'Requests that were refused with `overloaded` before they began.',
      value: refused[lane],
      labels: { lane },
    })),
    {
      name: 'trilithon_writes_at_work',
      help: 'Writes of clients that have begun and not ended.',
      value: writesAtWork,
    },
    {
      name: 'trilithon_writes_at_work_max',
      help: 'So many may be at work: it follows how long they take.',
      value: writesMax,
    },
  ]
}
