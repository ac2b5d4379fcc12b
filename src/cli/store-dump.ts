/** `trilithon store dump`: what the stores of a stopped node hold, as lines of JSON. */
import type { Command } from 'commander'
import { DataLooks } from '../inspect/data-looks.ts'
import { dump, type DumpOptions } from '../inspect/dump.ts'
import { openStoppedNode } from '../inspect/stopped-node.ts'
import { CliError, exitUsage } from './exit.ts'
import { counted, printJson, say, writtenOut } from './output.ts'
import type { Options } from './options.ts'
import { withStoppedFolder } from './store-folder.ts'
import { parseGroup, makeReadable } from './store-readable.ts'

/** Lines that are made before the reader of the output has taken those before them. */
const linesAtOnce = 1_000

export function addDumpCommand(store: Command): void {
  store
    .command('dump')
    .argument('<FOLDER>', 'the data folder of a stopped node')
    .description(
      'print what the stores hold, one thing a line, as JSON; all of it, or what flags name',
    )
    .option('--group <KEY>', 'of this group only: as store stats prints it, or DATASTORE/SHARD')
    .option(
      '--flushes <FROM..TO>',
      'the flushes of the log with these numbers, such as 10..20, 7 or 90..',
    )
    .option('--records', 'the records of flushes: promises, acceptances, choices')
    .option('--rows', 'the rows of data/: rows of groups, state records, positions, and the others')
    .option('--json', 'the default: each line is JSON')
    .action(dumpFolder)
}

async function dumpFolder(path: string, options: Options): Promise<void> {
  const asked = readDumpOptions(options)
  const damages = new Set<string>()
  await withStoppedFolder(path, async () => {
    const node = await openStoppedNode(path, (store, what) => damages.add(`${store}/${what}`))
    try {
      const readable = makeReadable(node.data && new DataLooks(node.data))
      let lines = 0
      for await (const line of dump(node, { ...asked, readable })) {
        printJson(line)
        lines += 1
        if (lines % linesAtOnce === 0) await writtenOut()
      }
    } finally {
      await node.close()
    }
  })
  if (damages.size === 0) return
  say(`${counted(damages.size, 'place')} damaged, and left out; store verify tells all of it`)
}

function readDumpOptions(options: Options): Omit<DumpOptions, 'readable'> {
  const { group, flushes, records, rows } = options
  const isAll = flushes === undefined && records !== true && rows !== true
  return {
    ...(typeof group === 'string' && { group: parseGroup(group) }),
    ...(typeof flushes === 'string'
      ? parseFlushRange(flushes)
      : { from: 0, to: Number.MAX_SAFE_INTEGER }),
    showsFlushes: isAll || flushes !== undefined,
    showsRecords: isAll || records === true || (flushes !== undefined && group !== undefined),
    showsRows: isAll || rows === true,
  }
}

function parseFlushRange(text: string): { readonly from: number; readonly to: number } {
  const [, first = '', dots, last = ''] = /^(\d{1,15})(?:(\.\.)(\d{0,15}))?$/.exec(text) ?? []
  const from = Number(first)
  const to = dots === undefined ? from : last === '' ? Number.MAX_SAFE_INTEGER : Number(last)
  if (first !== '' && from <= to) return { from, to }
  const forms = 'numbers of flushes, such as 10..20, 7 or 90..'
  throw new CliError(`--flushes wants ${forms}, not "${text}"`, exitUsage)
}
