/**
 * The disks of a node, at the end of a run.
 *
 * LOG-15: at the end of a run, each sound log leads from flush to flush of a group, and the state record of a group names
 * the last one that no start folds. Nothing else leads to the values of settled positions, and replicas that are
 * behind ask for them.
 */
import { flushesFrom } from '../../src/journal/ordered-journal.ts'
import { DataLooks } from '../../src/inspect/data-looks.ts'
import { Findings } from '../../src/inspect/finding.ts'
import { ChainCheck } from '../../src/inspect/verify-chain.ts'
import { HashCheck } from '../../src/inspect/verify-hashes.ts'
import { decodeDataRow } from '../../src/inspect/data-row.ts'
import { fromLatin1, latin1 } from '../../src/base/bytes.ts'
import { allGroups } from '../../src/store/row-format.ts'
import { decodeFlush } from '../../src/log/flush.ts'
import type { LogDisk } from '../world/log-disk.ts'
import type { Referee } from '../checkers/referee.ts'

/** HASH-1: at the end, too, the rows of each group on the disk are those that its state record counts. */
export function checkHashes({ node, data }: Omit<ChainLook, 'log'>, referee: Referee): void {
  const findings = new Findings()
  const looks = new DataLooks({ getSync: (key) => data.durableValue(latin1(key)) })
  const check = new HashCheck(
    findings,
    (group) => Buffer.from(group, 'latin1').toString('hex'),
    looks,
  )
  for (const key of data.durableKeys(allGroups)) {
    const row = decodeDataRow({ key: fromLatin1(key), value: data.durableValue(key) ?? nothing })
    if (!('problem' in row) && row.kind === 'row') {
      check.take(row.group, row.key, row.stamp, row.value)
    }
  }
  check.endRows()
  referee.check(
    findings.count === 0,
    'HASH-1',
    'The rows on a data disk are not those that the state record of their group counts.',
    () => ({ node, found: findings.list.slice(0, 3).map(({ text }) => text) }),
  )
}

const nothing = new Uint8Array()

/** The disks of a node, both of them sound. */
export interface ChainLook {
  readonly node: string
  readonly log: LogDisk
  readonly data: LogDisk
}

export function checkChain({ node, log, data }: ChainLook, referee: Referee): void {
  const findings = new Findings()
  const chain = new ChainCheck(findings, (group) => Buffer.from(group, 'latin1').toString('hex'))
  for (const key of log.durableKeys(flushesFrom(1))) {
    const header = decodeFlush(log.durableValue(key) ?? new Uint8Array())
    if (header !== undefined) chain.take(header)
  }
  const looks = new DataLooks({ getSync: (key) => data.durableValue(latin1(key)) })
  const mark = looks.mark()
  chain.compare(looks, typeof mark === 'object' ? mark.number : 0)
  referee.check(
    findings.count === 0,
    'LOG-15',
    'A log does not lead to all flushes of a group.',
    () => ({ node, found: findings.list.slice(0, 3).map(({ text }) => text) }),
  )
}
