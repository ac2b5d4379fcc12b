/**
 * The card processor of the billing example: a service of somebody else's, reached over HTTP, which
 * fails at times. Some charges it refuses; some it makes, and the answer is lost; some take long. A
 * charge with a key that it has seen is not made again. Each that it makes is a line of its ledger.
 *
 *   node dist/src/docs/billing/card-processor.js --port 4790 --ledger charges.jsonl
 */
import { appendFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '4790' },
    ledger: { type: 'string', default: 'charges.jsonl' },
  },
})

interface Charge {
  /** What the charge is for: asked for again, it is the same one. */
  readonly key: string
  readonly rider: string
  readonly cents: number
}

const made = new Set<string>()

async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const charge = await bodyOf(request)
  const chance = Math.random()
  if (chance < 0.1) return answer(response, 503, { result: 'TRY_LATER' })
  if (chance > 0.95) await new Promise((resolve) => setTimeout(resolve, 300))
  if (!made.has(charge.key)) {
    made.add(charge.key)
    appendFileSync(values.ledger, `${JSON.stringify(charge)}\n`)
  }
  // The charge is made, and nobody hears of it.
  if (chance < 0.2) return void response.destroy()
  answer(response, 200, { result: 'SUCCESS' })
}

async function bodyOf(request: IncomingMessage): Promise<Charge> {
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
