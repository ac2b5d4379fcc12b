/** `trilithon store verify`: reads both stores, writes nothing, and reports each damaged place in a sentence. */
import type { Command } from 'commander'
import { Findings, tellDamage } from '../inspect/finding.ts'
import { openStoppedNode } from '../inspect/stopped-node.ts'
import { DataLooks } from '../inspect/data-looks.ts'
import { verify, type Verdict } from '../inspect/verify.ts'
import { CliError, exitDamaged } from './exit.ts'
import { interruptible } from './interruptible.ts'
import { byteText, counted, countFlushes, print, printJson, say } from './output.ts'
import type { Options } from './options.ts'
import { withStoppedFolder } from './store-folder.ts'
import { lookProgress } from './store-progress.ts'
import { makeReadable } from './store-readable.ts'

export function addVerifyCommand(store: Command): void {
  store
    .command('verify')
    .argument('<FOLDER>', 'the data folder of a stopped node')
    .description(
      'read all of log/ and data/ and report each damaged place; the command writes nothing',
    )
    .option('--json', 'as one JSON object')
    .action(verifyFolder)
}

async function verifyFolder(path: string, options: Options): Promise<void> {
  const progress = lookProgress()
  let share = 0
  const work = {
    name: 'the check',
    done: () => `${Math.floor(100 * share)} % had been read`,
    advice: 'run the same command again: a check begins anew',
  }
  const verdict = await interruptible(work, (signal) =>
    withStoppedFolder(path, async (notes) => {
      const findings = new Findings()
      const node = await openStoppedNode(path, (store, what) => tellDamage(findings, store, what))
      try {
        const found = await verify(node, findings, {
          nameGroup: makeReadable(node.data && new DataLooks(node.data)).group,
          isOver: () => signal.aborted,
          onProgress: (doing, part, bytes) => {
            share = part
            progress.update(doing, part, bytes)
          },
        })
        return { ...found, notes: [...notes, ...found.notes] }
      } finally {
        await node.close()
      }
    }),
  ).finally(() => progress.stop())
  const isSound = verdict.damages === 0
  if (options['json'] === true) printJson({ sound: isSound, ...verdict })
  else show(verdict)
  if (!isSound) throw new CliError(summary(verdict), exitDamaged)
}

function show({ node, cluster, storeId, log, data, findings, notes, damages }: Verdict): void {
  const whose = node === undefined ? 'of no known node' : `node ${node} of cluster ${cluster}`
  print(`${whose}${storeId === undefined ? '' : `, store ${storeId}`}`)
  const { first, last, flushes, records, bytes } = log
  const range = flushes === 0 ? '' : ` (${first} to ${last})`
  print(
    `log/   ${countFlushes(flushes)}${range} with ${counted(records, 'record')}, ${byteText(bytes)}; ${byteText(log.fileBytes)} of files`,
  )
  const mark = data.mark === undefined ? '' : `; flushes through ${data.mark} are taken in`
  print(`data/  ${counted(data.rows, 'row')}; ${byteText(data.fileBytes)} of files${mark}`)
  for (const note of notes) say(`note: ${note}`)
  for (const { text } of findings) print(`damaged: ${text}`)
  const more = damages - findings.length
  if (more > 0) print(`damaged: ${counted(more, 'more place')}`)
  if (damages === 0) print('sound: all of it was read, and nothing is damaged')
}

function summary({ damages, findings }: Verdict): string {
  const isOfLog = findings.some(({ store }) => store === 'log')
  const section = isOfLog ? 'A damaged log' : 'Damaged data'
  const remedy = isOfLog
    ? 'keep the folder as it is'
    : 'data/ is derived: the node makes it anew from the log, once it is moved away'
  return `${counted(damages, 'place')} damaged; ${remedy}; see "${section}" in operating.md`
}
