/**
 * The card processor of the billing example: a service of another company, reached over HTTP, which fails
 * at times. Some charges it refuses; some it makes, and the answer is lost; some take long. A charge with a
 * key that it has seen is not made again. Each that it makes is a line of its ledger. What becomes of its
 * n-th request depends on the seed alone.
 *
 *   node dist/src/docs/billing/card-processor.js --port 4790 --ledger charges.jsonl --seed 1
 */
import { appendFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { parseArgs } from 'node:util'
import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64'
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '4790' },
    ledger: { type: 'string', default: 'charges.jsonl' },
    seed: { type: 'string', default: '1' },
  },
})

interface Charge {
  /** The reason of the charge: asked for again, it is the same one. */
  readonly key: string
  readonly rider: string
  readonly cents: number
}

const luck = xoroshiro128plus(Number(values.seed))
const made = new Set<string>()

/**
 * Requests whose answer waits for another request: a caller that has given up asks again, and ends the
 * wait.
 */
const waiting: (() => void)[] = []

function nextRequest(): Promise<void> {
  return new Promise((resolve) => waiting.push(resolve))
}

async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  for (const goOn of waiting.splice(0)) goOn()
  const chance = uniformFloat64(luck)
  const charge = await readBody(request)
  if (chance < 0.1) return answer(response, 503, { result: 'TRY_LATER' })
  if (chance > 0.95) await nextRequest()
  if (!made.has(charge.key)) {
    made.add(charge.key)
    appendFileSync(values.ledger, `${JSON.stringify(charge)}\n`)
  }
  // The charge is made, and its caller does not hear of it.
  if (chance < 0.2) return void response.destroy()
  answer(response, 200, { result: 'SUCCESS' })
}

async function readBody(request: IncomingMessage): Promise<Charge> {
  let text = ''
  for await (const piece of request) text += String(piece)
  const charge: Charge = JSON.parse(text)
  return charge
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const server = createServer((request, response) => {
  onRequest(request, response).catch(() => response.destroy())
})
server.listen(Number(values.port), '127.0.0.1', () => {
  process.stderr.write(`charges cards at http://127.0.0.1:${values.port}\n`)
})
