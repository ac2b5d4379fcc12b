/** When a client may give up at once: only where waiting helps at none of its addresses. */
import { expect, test } from 'vitest'
import { UnreachedAddresses } from '../../src/client/unreached.ts'
import type { Unreached } from '../../src/ports/transport.ts'

type Kind = Unreached['kind']

function afterTries(addresses: number, kinds: readonly Kind[]): UnreachedAddresses {
  const unreached = new UnreachedAddresses(addresses)
  for (const [nth, kind] of kinds.entries()) {
    unreached.onUnreached(`n${nth}`, { kind, reason: `n${nth}: ${kind}` })
  }
  return unreached
}

test.each<readonly [readonly Kind[], string | undefined]>([
  [['waits', 'waits', 'forbidden'], undefined],
  [['forbidden', 'forbidden', 'waits'], undefined],
  [['wrong', 'waits', 'wrong'], undefined],
  [['waits', 'waits', 'waits'], undefined],
  [['forbidden', 'forbidden', 'forbidden'], 'forbidden'],
  [['wrong', 'forbidden', 'wrong'], 'forbidden'],
  [['wrong', 'wrong', 'wrong'], 'invalid'],
  [['forbidden', 'forbidden'], undefined],
  [[], undefined],
])('three addresses, of which the tries so far ended as %j: %s', (kinds, code) => {
  expect(afterTries(3, kinds).hopeless()?.code).toBe(code)
})

test('each address has a say as of its latest try', () => {
  const unreached = afterTries(2, ['waits', 'wrong'])
  unreached.onUnreached('n0', { kind: 'wrong', reason: 'n0: another server' })
  expect(unreached.hopeless()).toMatchObject({
    code: 'invalid',
    message: 'no node takes this client: n0: another server; n1: wrong',
  })
  unreached.onUnreached('n1', { kind: 'waits', reason: 'n1: connection refused' })
  expect(unreached.hopeless()).toBeUndefined()
})

test('no address is hopeless for a client that was linked once', () => {
  const unreached = afterTries(1, ['waits'])
  unreached.onUp('n0')
  unreached.onUnreached('n0', { kind: 'forbidden', reason: 'n0: secret: differs' })
  expect(unreached.hopeless()).toBeUndefined()
})
