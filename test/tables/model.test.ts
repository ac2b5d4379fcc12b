/** Drawn changes of rows of drawn schemas, compared with plain maps. */
import * as fc from 'fast-check'
import { test } from 'vitest'
import { schemas } from '../schema/arbitrary.ts'
import { Drawn, type Pick } from './drawn.ts'
import { Replay } from './replay.ts'

const kinds = ['insert', 'insert', 'put', 'update', 'delete'] as const

test('TAB-1, TAB-2, IDX-1, IDX-2: rows, scans, trees and indexes are what plain maps say', async () => {
  await fc.assert(
    fc.asyncProperty(schemas, fc.gen(), async (schema, gen) => {
      const pick: Pick = (values) => gen(() => values)
      const drawn = new Drawn(schema, pick)
      const replay = new Replay(schema, drawn)
      for (let change = 0; change < 24; change++) {
        const table = pick(fc.constantFrom(...drawn.tables))
        await replay.change(table, pick(fc.constantFrom(...kinds)))
        if (change % 6 === 5) await replay.compare(pick)
      }
    }),
    { numRuns: 40, endOnFailure: true },
  )
})
