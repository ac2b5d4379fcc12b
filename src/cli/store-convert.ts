/** `trilithon store convert`: keeps the log of a stopped node in other files. */
import type { Command } from 'commander'
import { journalKinds, nameKind, type JournalKind } from '../adapters/journal-kind.ts'
import { StoreError } from '../base/errors.ts'
import { unknownWord } from '../base/suggest.ts'
import { convertLog, type Converted } from '../inspect/convert-log.ts'
import { CliError, exitDamaged, exitUsage } from './exit.ts'
import { interruptible } from './interruptible.ts'
import type { Options } from './options.ts'
import { byteText, counted, countFlushes, print, printJson, say } from './output.ts'
import { withLockedFolder } from './store-folder.ts'
import { passProgress } from './store-progress.ts'

export function addConvertCommand(store: Command): void {
  store
    .command('convert')
    .argument('<FOLDER>', 'the data folder of a stopped node')
    .description('keep log/ in LevelDB or in segment files; all of it is read back and compared')
    .requiredOption('--to <KIND>', 'leveldb or files')
    .option('--json', 'as one JSON object')
    .action(convertFolder)
}

async function convertFolder(path: string, options: Options): Promise<void> {
  const to = readKind(String(options['to']))
  const progress = passProgress()
  const work = {
    name: 'the conversion',
    done: () => 'the log is as it was',
    advice: 'run the same command again: it begins anew',
  }
  const outcome = await interruptible(work, (signal) =>
    withLockedFolder(path, async (notes) => {
      for (const note of notes) say(`note: ${note}`)
      const isOver = (): boolean => signal.aborted
      return convertLog(path, { to, isOver, onProgress: (...at) => progress(...at) })
    }),
  ).catch((error: unknown) => {
    const isDamage = error instanceof StoreError && error.code === 'corrupt'
    throw isDamage ? new CliError(error.message, exitDamaged) : error
  })
  const isDone = typeof outcome === 'object'
  if (options['json'] === true) printJson({ converted: isDone, to, ...(isDone && outcome) })
  else if (isDone) show(outcome, to)
  else if (outcome === 'empty') print('log/ is empty: a node of either kind begins it')
  else print(`log/ is in ${nameKind(to)} already`)
}

function readKind(text: string): JournalKind {
  const kind = journalKinds.find((one) => one === text)
  if (kind !== undefined) return kind
  throw new CliError(`--to: ${unknownWord('kind', text, journalKinds)}`, exitUsage)
}

function show({ first, last, flushes, records, bytes }: Converted, to: JournalKind): void {
  const range = flushes === 0 ? '' : ` (${first} to ${last})`
  print(
    `log/ is in ${nameKind(to)} now: ${countFlushes(flushes)}${range} and ${counted(records, 'record')}, ${byteText(bytes)}; each was read back and compared`,
  )
  say(`set log_store: ${to} for this node before you start it`)
}
