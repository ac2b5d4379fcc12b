/** `trilithon cells rejected`: buffered cells that their shards would not have. */
import type { Command } from 'commander'
import { formatIso } from '../base/datetime.ts'
import { addCellFlags, readDatastore, withClient } from './client.ts'
import { print, printJson, say } from './output.ts'
import type { Options } from './options.ts'

export function addRejectedCommand(cells: Command): void {
  addCellFlags(cells.command('rejected'))
    .description('list buffered cells that lost to another body, with the reason')
    .action(listRejected)
}

async function listRejected(options: Options): Promise<void> {
  const count = await withClient(options, async (client) => {
    let sum = 0
    for await (const cell of client.rejected(readDatastore(options))) {
      sum += 1
      const { rowKey, column, refKey, bufferedAt, reason, body } = cell
      const at = formatIso(bufferedAt)
      if (options['json'] === true) printJson({ ...cell, bufferedAt: at })
      else {
        print(`${rowKey} ${column} ${refKey}, buffered ${at}: ${reason.code}, ${reason.message}`)
        print(`  ${JSON.stringify(body)}`)
      }
    }
    return sum
  })
  if (count === 0) say('no cell was rejected')
}
