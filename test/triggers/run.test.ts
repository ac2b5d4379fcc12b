/** Whom `runTriggers` and `triggerAdmin` take for a client. */
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/index.ts'
import { runTriggers, triggerAdmin } from '../../src/triggers/run.ts'

/** What callers in JavaScript may do. */
const run = (given: readonly unknown[]): unknown => Reflect.apply(runTriggers, undefined, given)
const admin = (given: readonly unknown[]): unknown => Reflect.apply(triggerAdmin, undefined, given)

const nodes = ['http://127.0.0.1:9']

test('a client of another class, as a second copy of the package has it, is a client', async () => {
  const client = await connect({ nodes })
  onTestFinished(() => client.close())
  const other = { cells: (datastore: string) => client.cells(datastore), groups: client.groups }
  expect(() => admin([other, 'orders'])).not.toThrow()
  // It gets past the client, to what comes after it.
  expect(() => run([other, 'no service'])).toThrow(/^runTriggers: the service /)
})

test.each([[undefined], [null], ['http://127.0.0.1:4700'], [{}], [{ cells: [], groups: {} }]])(
  '%j is no client',
  (client) => {
    expect(() => admin([client, 'orders'])).toThrow(/^triggerAdmin: the client is /)
    expect(() => run([client, 'orders'])).toThrow(/^runTriggers: the client is /)
  },
)
