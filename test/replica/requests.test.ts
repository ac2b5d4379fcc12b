/** Requests that wait for an applied position, and their deadlines. */
import { expect, test } from 'vitest'
import { systemClock } from '../../src/adapters/system-clock.ts'
import { Requests } from '../../src/replica/requests.ts'
import { group } from '../log/log-fixture.ts'

test('a watch that has ended, and is cancelled once more, takes no later one with it', () => {
  const requests = new Requests(systemClock, () => undefined)
  const woken: string[] = []
  const watch = (name: string): (() => void) =>
    requests.watch(group('g'), 0, () => woken.push(name))
  const cancel = watch('first')
  requests.applied(group('g'), 1)
  watch('second')
  cancel()
  requests.applied(group('g'), 2)
  expect(woken).toEqual(['first', 'second'])
  // A watch that is cancelled in time is not woken, and those beside it are.
  const cancelThird = watch('third')
  watch('fourth')
  cancelThird()
  requests.applied(group('g'), 3)
  expect(woken).toEqual(['first', 'second', 'fourth'])
})
