/**
 * A trigger service of the audit: appends a line to a file for each call, so that it can be told
 * how often and in which order cells were handled.
 */
import { appendFile } from 'node:fs/promises'
import { defineTriggers, type Service } from '../../src/triggers/index.ts'
import { datastore, tripColumn } from './trips.ts'

export const ledgerTrigger = { service: 'ledger', trigger: 'write-line' } as const

/** The environment names the file. */
export const ledgerVariable = 'TRILITHON_AUDIT_LEDGER'

export const service: Service = defineTriggers({
  service: ledgerTrigger.service,
  datastore,
  triggers: [
    {
      name: ledgerTrigger.trigger,
      column: tripColumn,
      retryMs: 200,
      retryMaxMs: 2_000,
      attemptsMax: Infinity,
      async handle({ shard, addedId, rowKey }) {
        // An append this short is whole or absent, whichever other process writes.
        await appendFile(process.env[ledgerVariable] ?? '', `${shard} ${addedId} ${rowKey}\n`)
      },
    },
  ],
})
