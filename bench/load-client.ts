/**
 * The client process of a bench: `clients` loops through one client library, of puts of new small
 * cells or of current reads of cells written before. Prints a line of JSON when it is warm, and one
 * with the result; what it is told on stdin, a line each, is a load: `{"clients":64,"seconds":10,…}`.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { createInterface } from 'node:readline'
import { connect } from '../src/client/connect.ts'
import { runLoops } from './load.ts'
import { loadOf, say } from './load-messages.ts'
import type { Load } from './load-process.ts'

const [urls = '', valueBytes = '100'] = process.argv.slice(2)
const client = await connect({ nodes: urls.split(',') })
const cells = client.cells('bench')
const filler = randomBytes(Number(valueBytes)).toString('base64').slice(0, Number(valueBytes))
/** Rows that are read. */
const rowCount = 1_000
const rows = Array.from({ length: rowCount }, () => randomUUID())
const cellOf = (rowKey: string) => ({ rowKey, column: 'BASE', refKey: 0, body: { v: filler } })
const outcomes = await cells.batchPut(rows.map(cellOf))
if (outcomes.some(({ kind }) => kind === 'problem')) throw new Error('the rows were not written')
let next = 0
const operations: Readonly<Record<Load['operation'], () => Promise<unknown>>> = {
  commits: () => cells.put(cellOf(randomUUID())),
  reads: () => cells.get({ rowKey: rows[next++ % rowCount] ?? '', column: 'BASE', refKey: 0 }),
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
