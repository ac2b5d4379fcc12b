/**
 * The client process of the commits bench: `clients` loops, each putting one small cell after the
 * other through one client library. Prints one JSON line when its time is over.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { connect } from '../src/client/connect.ts'

const [urls = '', clients = '1', seconds = '10', valueBytes = '100'] = process.argv.slice(2)
const client = await connect({ nodes: urls.split(',') })
const cells = client.cells('bench')
const warmUpSeconds = 10
const filler = randomBytes(Number(valueBytes)).toString('base64').slice(0, Number(valueBytes))
const latenciesMs: number[] = []
let failures = 0

// Long enough for the engine to have compiled what is hot: a daemon runs for days.
const warmUpEnd = performance.now() + warmUpSeconds * 1000
await Promise.all(Array.from({ length: Number(clients) }, () => loop(warmUpEnd, () => undefined)))
process.stdout.write(`${JSON.stringify({ kind: 'warm' })}\n`)
const start = performance.now()
const end = start + Number(seconds) * 1000
await Promise.all(
  Array.from({ length: Number(clients) }, () => loop(end, (ms) => latenciesMs.push(ms))),
)
const elapsedMs = performance.now() - start
latenciesMs.sort((a, b) => a - b)
const result = { kind: 'result', commits: latenciesMs.length, failures, elapsedMs }
const at = (share: number): number =>
  latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * share))] ?? 0
const percentiles = { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), maxMs: at(1) }
process.stdout.write(`${JSON.stringify({ ...result, ...percentiles })}\n`)
await client.close()

async function loop(until: number, record: (ms: number) => void): Promise<void> {
  while (performance.now() < until) {
    const began = performance.now()
    try {
      await cells.put({ rowKey: randomUUID(), column: 'BASE', refKey: 0, body: { v: filler } })
      record(performance.now() - began)
    } catch {
      // Counted and shown: a bench with failures is no bench.
      failures += 1
    }
  }
}
