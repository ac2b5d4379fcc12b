/**
 * Where a report has a measurement without a sample. Its percentiles are 0, which reads like the best of
 * all results: a bench in which something did nothing has failed.
 */

/** Members that count or rate what was done in a measurement. */
const done = ['operations', 'commits', 'perSecond', 'best', 'bestAfter']
/** One line a second: in the outage of a bench of outages nothing may be done in some of them. */
const perSecondLists = ['seconds']

/** The paths of such members, as `runs[2].perSecond`. */
export function nothingMeasured(report: unknown, at = ''): readonly string[] {
  if (Array.isArray(report)) {
    const items: readonly unknown[] = report
    return items.flatMap((item, nth) => nothingMeasured(item, `${at}[${nth}]`))
  }
  if (typeof report !== 'object' || report === null) return []
  return Object.entries(report).flatMap(([name, value]: [string, unknown]) => {
    const path = at === '' ? name : `${at}.${name}`
    if (done.includes(name) && (value === 0 || Number.isNaN(value))) return [path]
    return perSecondLists.includes(name) ? [] : nothingMeasured(value, path)
  })
}
