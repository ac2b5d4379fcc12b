/**
 * The client process of a bench: `clients` loops through one client library, of puts of new small
 * cells or of current reads of cells written before. Prints a line of JSON when it is warm, and one
 * with the result; what it is told on stdin, a line each, is a load: `{"clients":64,"seconds":10,…}`.
 * With `one-group` as its last argument all puts are of one shard, which is one entity group.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import type { NewCell } from '../src/cells/cell.ts'
import { shardOf } from '../src/cells/shard.ts'
import { connect } from '../src/client/connect.ts'
import { runLoops } from './load.ts'
import { loadOf, say } from './load-messages.ts'
import type { Load } from './load-process.ts'

const [urls = '', valueBytes = '100', spread = 'all-groups'] = process.argv.slice(2)
const client = await connect({ nodes: urls.split(',') })
const cells = client.cells('bench')
const filler = randomBytes(Number(valueBytes)).toString('base64').slice(0, Number(valueBytes))
/** Rows that are read. */
const rowCount = 1_000
const rows = Array.from({ length: rowCount }, () => randomUUID())
const cellOf = (rowKey: string, refKey = 0) => ({
  ...{ rowKey, column: 'BASE', refKey, body: { v: filler } },
})
const outcomes = await cells.batchPut(rows.map((row) => cellOf(row)))
if (outcomes.some(({ kind }) => kind === 'problem')) throw new Error('the rows were not written')
const readOne = (row = '') => cells.get({ rowKey: row, column: 'BASE', refKey: 0 })
// A read that finds nothing costs less than one that does.
if ((await readOne(rows.at(-1))) === undefined) throw new Error('the rows are not there')
/** Where all is put that goes to one group: a few rows, as their keys have to be found by trying. */
const hotRowCount = 16
const hotRows = spread === 'one-group' ? rowsOfOneShard(hotRowCount) : []
let [next, put] = [0, 0]
const operations: Readonly<Record<Load['operation'], () => Promise<unknown>>> = {
  commits: () => cells.put(newCell()),
  reads: () => readOne(rows[next++ % rowCount]),
}

say({ kind: 'ready' })
for await (const line of createInterface({ input: process.stdin })) {
  const { clients, seconds, warmUpSeconds, operation } = loadOf(line)
  const run = operations[operation]
  await runLoops(clients, warmUpSeconds, run)
  say({ kind: 'warm' })
  say({ kind: 'result', ...(await runLoops(clients, seconds, run)) })
}
await client.close()

/** No two puts meet: a row of its own for each, or a ref key of its own in one of the hot rows. */
function newCell(): NewCell {
  const turn = put++
  const hot = hotRows[turn % hotRowCount]
  return hot === undefined ? cellOf(randomUUID()) : cellOf(hot, Math.floor(turn / hotRowCount))
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
