/** `trilithon store stats`: what the stores of a stopped node hold, in figures. */
import type { Command } from 'commander'
import { DataLooks } from '../inspect/data-looks.ts'
import { rowKinds, type RowKind } from '../inspect/data-row.ts'
import {
  collectStats,
  type DataFigures,
  type KindFigures,
  type LogFigures,
  type Stats,
} from '../inspect/stats.ts'
import { openStoppedNode } from '../inspect/stopped-node.ts'
import {
  byteText,
  counted,
  countFlushes,
  grouped,
  print,
  printJson,
  say,
  styledData,
  table,
} from './output.ts'
import type { Options } from './options.ts'
import { withStoppedFolder } from './store-folder.ts'
import { lookProgress } from './store-progress.ts'
import { formatGroup, makeReadable } from './store-readable.ts'

export function addStatsCommand(store: Command): void {
  store
    .command('stats')
    .argument('<FOLDER>', 'the data folder of a stopped node')
    .description('count flushes, records, rows and bytes, and name the largest groups')
    .option('--json', 'as one JSON object')
    .action(showStats)
}

async function showStats(path: string, options: Options): Promise<void> {
  const progress = lookProgress()
  const damages = new Set<string>()
  const stats = await withStoppedFolder(path, async () => {
    const node = await openStoppedNode(path, (store, what) => damages.add(`${store}/${what}`))
    try {
      const { log, data } = node.fileBytes
      let [bytes, done] = [0, 0]
      return await collectStats(node, {
        nameGroup: makeReadable(node.data && new DataLooks(node.data)).group,
        onBytes: (store, more) => {
          bytes += more
          done = Math.min(done + more, store === 'log' ? log : log + data)
          progress.update(`${store}/`, done / Math.max(1, log + data), bytes)
        },
      })
    } finally {
      await node.close()
    }
  }).finally(() => progress.stop())
  if (options['json'] === true) printJson({ ...stats, damages: [...damages] })
  else show(stats)
  const advice = 'these figures leave out what cannot be read; store verify tells all of it'
  if (damages.size > 0) say(`${counted(damages.size, 'place')} damaged; ${advice}`)
}

function show({ identity, peers, earlierDamages, log, data }: Stats): void {
  const { node, cluster, storeId, incarnation } = identity ?? {}
  const title =
    node === undefined
      ? 'the log has no identity that can be read'
      : `node ${node} of cluster ${cluster}, store ${storeId}, incarnation ${incarnation}`
  print(styledData('bold', title))
  showLog(log)
  for (const what of earlierDamages) print(`  found damaged once  ${what}`)
  const known = (peers ?? []).map((peer) => [
    ...[peer.node, peer.storeId, String(peer.durableFlush), String(peer.incarnation)],
  ])
  if (known.length > 0) {
    print(`\n${table([['PEER', 'STORE', 'LAST FLUSH', 'INCARNATION'], ...known])}`)
  }
  if (data === undefined) print('\ndata/  is not there: the next start makes it out of the log')
  else showData(data)
}

function showLog(log: LogFigures): void {
  const { flushes, first, last, records, recordsMax, flushBytes, fileBytes, damagedFlushes } = log
  const mean = flushes === 0 ? 0 : records / flushes
  const lines = [
    ['log/', `${byteText(fileBytes)} of files`],
    [
      '  flushes',
      `${grouped(flushes)}${flushes === 0 ? '' : ` (${first} to ${last})`}, ${byteText(flushBytes)}`,
    ],
    [
      '  records',
      `${grouped(records)}: ${grouped(log.promises)} promises, ${grouped(log.acceptances)} acceptances, ${grouped(log.choices)} choices, ${grouped(log.copies)} copies`,
    ],
    ['  records a flush', `${mean.toFixed(1)}, ${grouped(recordsMax)} at most`],
    ...log.incarnations.map(({ incarnation, first: from, last: to }) => [
      ...[`  incarnation ${incarnation}`, `flushes ${from} to ${to}`],
    ]),
    ...(damagedFlushes > 0 ? [['  damaged headers', grouped(damagedFlushes)]] : []),
  ]
  print(table(lines))
}

const labels: Readonly<Record<RowKind, string>> = {
  row: 'rows',
  history: 'superseded rows',
  state: 'state records',
  staged: 'of snapshots on their way',
  staging: 'snapshots on their way',
  position: 'places in the log',
  worklist: 'worklist',
  marker: 'markers of batches',
  name: 'records of the node',
  unknown: 'of no known kind',
}

function showData(data: DataFigures): void {
  const { kinds, mark, flushesAfterMark, openPositions, groups, largest } = data
  const lines = [
    ['data/', `${byteText(data.fileBytes)} of files`],
    ['  groups', grouped(groups)],
    [
      '  taken in',
      mark === undefined
        ? 'not known: the next start reads the whole log'
        : `flushes through ${mark.number}; ${countFlushes(flushesAfterMark)} after it`,
    ],
    ...(openPositions > 0 ? [['  open before that', counted(openPositions, 'position')]] : []),
    ...(data.unreadable > 0 ? [['  unreadable', grouped(data.unreadable)]] : []),
  ]
  print(`\n${table(lines)}`)
  const rows = rowKinds
    .map((kind) => [kind, kinds[kind]] as const)
    .filter(([, { rows: count }]) => count > 0)
    .map(([kind, figures]) => [labels[kind], ...cellsFor(figures)])
  print(`\n${table([['KIND', 'NUMBER', 'KEYS', 'VALUES'], ...rows])}`)
  const groupRows = largest.map(({ name, rows: count, history, bytes, group }) => [
    ...[name, grouped(count), grouped(history), byteText(bytes), formatGroup(group)],
  ])
  if (groupRows.length === 0) return
  print(`\n${table([['LARGEST GROUPS', 'ROWS', 'SUPERSEDED', 'BYTES', '--group'], ...groupRows])}`)
}

function cellsFor({ rows, keyBytes, valueBytes }: KindFigures): readonly string[] {
  return [grouped(rows), byteText(keyBytes), byteText(valueBytes)]
}
