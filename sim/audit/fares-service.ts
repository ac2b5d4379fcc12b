/** A trigger service of the audit: writes what a trip costs into a column of the trip's row. */
import { defineTriggers, type Service } from '../../src/triggers/index.ts'
import { datastore, fareColumn, computeFare, tripColumn } from './trips.ts'

export const faresTrigger = { service: 'fares', trigger: 'write-fare' } as const

export const service: Service = defineTriggers({
  service: faresTrigger.service,
  datastore,
  triggers: [
    {
      name: faresTrigger.trigger,
      column: tripColumn,
      retryMs: 200,
      retryMaxMs: 2_000,
      // A node that is down comes up again: no cell may be set aside for that.
      attemptsMax: Infinity,
      async handle({ rowKey, body }, { cells }) {
        await cells.put({
          rowKey,
          column: fareColumn,
          refKey: 0,
          body: { ...computeFare(parseTrip(body)) },
        })
      },
    },
  ],
})

function parseTrip(body: unknown): { readonly zone: number; readonly total: number } {
  if (typeof body === 'object' && body !== null && 'zone' in body && 'total' in body) {
    return { zone: Number(body.zone), total: Number(body.total) }
  }
  throw new Error('the trip has no zone, or no total')
}
