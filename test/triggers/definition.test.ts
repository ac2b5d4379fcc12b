import { expect, test } from 'vitest'
import { defineTriggers, isService, type TriggerOptions } from '../../src/triggers/definition.ts'

const good: TriggerOptions = { name: 'bill', column: 'BASE', handle: () => undefined }

function define(change: Partial<TriggerOptions>): unknown {
  return defineTriggers({ service: 's', datastore: 'd', triggers: [{ ...good, ...change }] })
}

test('a trigger without options has the documented defaults', () => {
  const { triggers } = defineTriggers({ service: 's', datastore: 'd', triggers: [good] })
  expect(triggers[0]).toMatchObject({
    ...{ since: 0, attemptsMax: 8, retryMs: 1_000, retryMaxMs: 60_000 },
    ...{ timeoutMs: 60_000, marksMax: 100 },
  })
  expect(define({ attemptsMax: Infinity })).toMatchObject({ triggers: [{ attemptsMax: Infinity }] })
})

test.each<[Partial<TriggerOptions>, string]>([
  [{ name: 'Bill it' }, 'the name of a trigger is 1 to 64 of a-z, 0-9, _ and -'],
  [{ column: '7' }, 'trigger bill: the column name "7" is not'],
  [{ attemptsMax: 0 }, 'trigger bill: attemptsMax is a whole number from 1 to Infinity, not 0'],
  [{ retryMs: 0 }, 'trigger bill: retryMs is a whole number from 1'],
  [{ retryMs: 50, retryMaxMs: 10 }, 'trigger bill: retryMaxMs is a whole number from 50'],
  [{ timeoutMs: 1.5 }, 'trigger bill: timeoutMs is a whole number'],
  [{ marksMax: -1 }, 'trigger bill: marksMax is a whole number from 0'],
  [{ since: -1 }, 'trigger bill: since is -1; expected a Date, or microseconds since 1970'],
  [
    { since: 1_767_225_600_123 },
    'trigger bill: since is 1767225600123, which looks like milliseconds',
  ],
  // @ts-expect-error -- in another case
  [{ retryMS: 5 }, 'trigger bill: unknown option "retryMS"; did you mean "retryMs"?'],
])('%j is refused in one sentence', (change, message) => {
  expect(() => define(change)).toThrow(message)
})

test('a service without triggers, with two of one name, or of no datastore is refused', () => {
  const of = { service: 's', datastore: 'd' }
  expect(() => defineTriggers({ ...of, triggers: [] })).toThrow('service s has no triggers')
  expect(() => defineTriggers({ ...of, triggers: [good, good] })).toThrow('two triggers named bill')
  expect(() => defineTriggers({ ...of, datastore: 'Trips!', triggers: [good] })).toThrow(
    'service s: the datastore name "Trips!"',
  )
  const many = Array.from({ length: 33 }, (_, i) => ({ ...good, name: `t${i}` }))
  expect(() => defineTriggers({ ...of, triggers: many })).toThrow('33 triggers, at most 32')
})

test('isService tells a service from other exports of a module', () => {
  expect(isService(defineTriggers({ service: 's', datastore: 'd', triggers: [good] }))).toBe(true)
  for (const other of [undefined, null, 3, {}, { service: 's' }, () => 1]) {
    expect(isService(other)).toBe(false)
  }
})
