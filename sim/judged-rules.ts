/**
 * The rules that checkers count. A checker that saw no event of its kind is as silent as one that
 * found no violation. So a run reports each of these rules that compared nothing, and a campaign
 * fails by it (META-2). Assertions in the code enforce the other rules, wherever it runs.
 */
export const judgedRules: readonly string[] = [
  ...['PAX-1', 'PAX-2', 'PAX-3', 'PAX-4', 'PAX-5', 'PAX-6', 'PAX-7', 'PAX-8'],
  ...['LOG-1', 'LOG-2', 'LOG-3', 'LOG-4', 'LOG-5', 'LOG-6', 'LOG-8', 'LOG-9', 'LOG-13'],
  ...['LOG-7', 'LOG-14', 'LOG-15', 'LOG-16', 'LOG-17', 'LOG-18', 'SNAP-1', 'SNAP-4'],
  ...['HASH-1', 'HEAL-4', 'ERASE-1'],
  ...['MOVE-2', 'MOVE-3', 'MOVE-5', 'MOVE-9', 'MOVE-13', 'MOVE-15'],
  ...['UPG-2', 'UPG-3'],
  ...['LEASE-1', 'LEASE-2', 'LEASE-3', 'LEASE-4', 'MVCC-1', 'MVCC-2'],
  'STALE-1',
  ...['CLOCK-1', 'CLOCK-2', 'CLOCK-3', 'TXN-1', 'TXN-2', 'TXN-4', 'TXN-5'],
  ...['IDX-1', 'IDX-2', 'IDX-3', 'IDX-4', 'IDX-5', 'IDX-6', 'IDX-7', 'IDX-9', 'IDX-10', 'IDX-14'],
  ...['QUE-1', 'QUE-2', 'QUE-3', 'QUE-4', 'QUE-5', 'QUE-6', 'QUE-7'],
  ...['CELL-1', 'CELL-2', 'CELL-3', 'CELL-4', 'CELL-5', 'CELL-7', 'CELL-8', 'BUF-1', 'BUF-3'],
  ...['TRIG-1', 'TRIG-2', 'TRIG-3', 'TRIG-4', 'TRIG-5', 'TRIG-6', 'TRIG-7', 'TRIG-8'],
  ...['LIVE-1', 'LIVE-2', 'LIVE-3', 'LIVE-4', 'LIVE-5', 'LIVE-6', 'LOAD-10'],
  ...['TTL-1', 'TTL-2', 'TTL-3', 'TTL-4', 'HOLD-1', 'PURGE-1'],
]

/** Those of `rules`, or of all, by which nothing was judged. */
export function unjudged(
  judgements: Readonly<Record<string, number>>,
  rules: readonly string[] = judgedRules,
): readonly string[] {
  const counted = judgedRules.filter((rule) => rules.includes(rule))
  return counted.filter((rule) => (judgements[rule] ?? 0) === 0)
}
