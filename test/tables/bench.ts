/** Tables over groups in memory, ready for use in a test. */
import { asyncScope } from '../../src/adapters/async-scope.ts'
import { openTables } from '../../src/tables/open.ts'
import type { Tables, TablesOptions } from '../../src/tables/tables.ts'
import type { DefinedSchema } from '../../schema/define.ts'
import type { Table } from '../../schema/table.ts'
import { MemoryPort } from '../txn/memory-port.ts'
import { TestClock, testRandom } from '../txn/test-ports.ts'

export interface TablesBench<Of extends readonly Table[]> {
  readonly port: MemoryPort
  readonly clock: TestClock
  readonly db: Tables<Of>
}

/** Each handle has chance, and so sessions, of its own. */
let seed = 0

export function tablesBench<const Of extends readonly Table[]>(
  schema: DefinedSchema<Of>,
  options: Partial<TablesOptions> = {},
  port: MemoryPort = new MemoryPort(),
): TablesBench<Of> {
  const clock = new TestClock()
  const random = testRandom(++seed)
  const db = openTables(schema, port, { clock, random, scope: asyncScope(), ...options })
  return { port, clock, db }
}
