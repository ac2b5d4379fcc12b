/** Whom `runTriggers` and `triggerAdmin` take for a client. */
import { expect, onTestFinished, test } from 'vitest'
import { connect } from '../../src/index.ts'
import { defineTriggers } from '../../src/triggers/definition.ts'
import { runTriggers, triggerAdmin } from '../../src/triggers/run.ts'

/** Calls that programs in JavaScript may make. */
const run = (given: readonly unknown[]): unknown => Reflect.apply(runTriggers, undefined, given)
const admin = (given: readonly unknown[]): unknown => Reflect.apply(triggerAdmin, undefined, given)

const nodes = ['http://127.0.0.1:9']

test('a client of another class, as a second copy of the package has it, is a client', async () => {
  const client = await connect({ endpoints: nodes })
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

test('a worker stops by its signal, and none begins under one that is aborted', async () => {
  const client = await connect({ endpoints: nodes })
  onTestFinished(() => client.close())
  const trigger = { name: 'bill', column: 'BASE', handle: async () => undefined }
  const of = { service: 'billing', datastore: 'trips' }
  const service = defineTriggers({ ...of, triggers: [trigger] })
  const controller = new AbortController()
  const { signal } = controller
  const running = runTriggers(client, service, { signal })
  controller.abort()
  await running.ended
  expect(() => runTriggers(client, service, { signal })).toThrow('given up by its signal')
})

test('the signal of a trigger admin ends its calls', async () => {
  const client = await connect({ endpoints: nodes })
  onTestFinished(() => client.close())
  const controller = new AbortController()
  const { signal } = controller
  const asked = triggerAdmin(client, 'billing', { signal })
  const calls = [asked.status(), asked.shards('bill'), asked.marked('bill'), asked.retry('bill')]
  controller.abort(new Error('the page was left'))
  const given = { code: 'closed', cause: { message: 'the page was left' } }
  for (const call of calls) await expect(call).rejects.toMatchObject(given)
  await expect(asked.skip('bill', 1)).rejects.toMatchObject(given)
  expect(() => admin([client, 'billing', { timeout: 1 }])).toThrow(/^triggerAdmin: unknown option/)
  expect(() => admin([client, 'billing', 0])).toThrow(/^triggerAdmin: timeoutMs is 0/)
})
