/**
 * Billing, as in the article on Schemaless triggers: a trip that ends is a cell in column BASE; the
 * trigger charges the rider and writes what came of it to column STATUS.
 *
 *   trilithon trigger run dist/src/docs/billing/service.js --workers 2
 */
import { defineTriggers, type Service } from '../../triggers/index.ts'

const processor = process.env['CARD_PROCESSOR'] ?? 'http://127.0.0.1:4790'

export const service: Service = defineTriggers({
  service: 'billing',
  datastore: 'trips',
  triggers: [
    {
      name: 'bill-rider',
      column: 'BASE',
      retryMs: 100,
      timeoutMs: 5_000,
      async handle({ rowKey, column, refKey, body }, { cells }) {
        // It may have been called for this trip before: then the rider has been billed.
        if ((await cells.get({ rowKey, column: 'STATUS' })) !== undefined) return

        // A worker may die right behind the charge: the key lets the processor know it again.
        const result = await charge(`${rowKey}/${column}/${refKey}`, parseTrip(body))

        // Throwing has the cell tried again later.
        if (result !== 'SUCCESS') throw new Error(`the rider could not be billed: ${result}`)
        const status = { is_completed: true, result }
        await cells.put({ rowKey, column: 'STATUS', refKey: 0, body: status })
      },
    },
  ],
})

interface Trip {
  readonly rider: string
  readonly cents: number
}

async function charge(key: string, trip: Trip): Promise<string> {
  const response = await fetch(processor, {
    method: 'POST',
    body: JSON.stringify({ key, ...trip }),
    signal: AbortSignal.timeout(2_000),
  })
  const answer: { readonly result: string } = JSON.parse(await response.text())
  return answer.result
}

function parseTrip(body: unknown): Trip {
  if (typeof body === 'object' && body !== null && 'rider' in body && 'cents' in body) {
    return { rider: String(body.rider), cents: Number(body.cents) }
  }
  throw new Error('the trip has no rider, or no price')
}
