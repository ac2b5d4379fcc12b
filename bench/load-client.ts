/**
 * The client process of a bench: `clients` loops through one client library, of puts of new small
 * cells. Prints a line of JSON when it is warm, and one with the result; each line on stdin is a
 * load: `{"clients":64,"seconds":10,…}`. With `one-group` as its last argument all puts are of one
 * shard, which is one entity group.
 */
import { randomUUID } from 'node:crypto'
import type { NewCell } from '../src/cells/cell.ts'
import { shardOf } from '../src/client/row-shard.ts'
import { connect } from '../src/client/connect.ts'
import { runLoops } from './load.ts'
import { loads, say } from './load-messages.ts'
import { textValues } from './values.ts'

const [urls = '', valueBytes = '100', spread = 'all-groups'] = process.argv.slice(2)
const client = await connect({ endpoints: urls.split(',') })
const cells = client.cells('bench')
const nextText = textValues(Number(valueBytes))
const buildCell = (rowKey: string, refKey = 0) => ({
  ...{ rowKey, column: 'BASE', refKey, body: { v: nextText() } },
})
/** Where all is put that goes to one group: a few rows, as their keys have to be found by trying. */
const hotRowCount = 16
const hotRows = spread === 'one-group' ? rowsOfOneShard(hotRowCount) : []
let puts = 0
const run = (): Promise<unknown> => cells.put(newCell())

say({ kind: 'ready' })
for await (const { clients, seconds, warmUpSeconds } of loads()) {
  await runLoops(clients, warmUpSeconds, run)
  say({ kind: 'warm' })
  say({ kind: 'result', ...(await runLoops(clients, seconds, run)) })
}
await client.close()

/** No two puts meet: a row of its own for each, or a ref key of its own in one of the hot rows. */
function newCell(): NewCell {
  const turn = puts++
  const hot = hotRows[turn % hotRowCount]
  return hot === undefined
    ? buildCell(randomUUID())
    : buildCell(hot, Math.floor(turn / hotRowCount))
}

function rowsOfOneShard(count: number): string[] {
  const found = [randomUUID()]
  const shard = shardOf(found[0] ?? '')
  while (found.length < count) {
    const row = randomUUID()
    if (shardOf(row) === shard) found.push(row)
  }
  return found
}
