/**
 * Trips that end, for the billing example: writes them, and prints a line for each that is there.
 *
 *   node dist/src/docs/billing/trips.js --count 100 --url http://127.0.0.1:4700
 */
import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { connect } from '../../index.ts'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '100' },
    url: { type: 'string', default: 'http://127.0.0.1:4700,http://127.0.0.1:4701' },
  },
})

const client = await connect({ endpoints: values.url.split(','), timeoutMs: 30_000 })
const trips = client.cells('trips')
for (let nth = 1; nth <= Number(values.count); nth++) {
  const rowKey = randomUUID()
  const body = { rider: `rider-${nth % 20}`, cents: 250 + (nth % 90) * 10 }
  await trips.put({ rowKey, column: 'BASE', refKey: 0, body })
  process.stdout.write(`${rowKey}\n`)
}
await client.close()
