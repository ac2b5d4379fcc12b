/** Code inside a transaction's function is known from other code, over any number of runs. */
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { asyncScope } from '../../src/adapters/async-scope.ts'

test('the scope ends with its function, and begins anew', async () => {
  const scope = asyncScope()
  for (let turn = 0; turn < 3; turn++) {
    const seen = await scope.inside(async () => {
      await setImmediate()
      return scope.isInside()
    })
    expect([seen, scope.isInside()]).toEqual([true, false])
  }
})

test('a function that is still open is followed while others end, and after they did', async () => {
  const scope = asyncScope()
  const shared = setImmediate()
  const long = scope.inside(async () => {
    const seen: boolean[] = []
    await shared
    for (let turn = 0; turn < 4; turn++) {
      seen.push(scope.isInside())
      await setImmediate()
    }
    return seen
  })
  await scope.inside(() => setImmediate())
  await expect(scope.inside(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(scope.isInside()).toBe(false)
  expect(await long).toEqual([true, true, true, true])
})

test('a promise that a function leaves behind is outside its scope once it has ended', async () => {
  const scope = asyncScope()
  let left: Promise<boolean> | undefined
  await scope.inside(async () => {
    left = setImmediate().then(() => scope.isInside())
  })
  const other = scope.inside(() => setImmediate(scope.isInside()))
  expect(await left).toBe(false)
  expect(await other).toBe(true)
})
