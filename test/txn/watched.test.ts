/** Writes that a program forgets to await: their error fails the transaction. */
import { expect, test } from 'vitest'
import { Turn, inTurn } from '../../src/txn/turn.ts'

const refused = new Error('refused')
const fail = (): Promise<never> => Promise.reject(refused)

test('a failed write that no caller awaits fails its transaction', async () => {
  const turn = new Turn('transaction')
  const run = inTurn(turn, async () => {
    void turn.write(fail)
    await Promise.resolve()
    return 1
  })
  await expect(run).rejects.toBe(refused)
})

test('a write that throws at once fails its transaction, too', async () => {
  const turn = new Turn('transaction')
  const run = inTurn(turn, async () => {
    void turn.write(() => {
      throw refused
    })
    await new Promise((resolve) => void setImmediate(resolve))
  })
  await expect(run).rejects.toBe(refused)
})

test('a failure that the function has caught is its own affair', async () => {
  const turn = new Turn('transaction')
  const run = inTurn(turn, async () => {
    await expect(turn.write(fail)).rejects.toBe(refused)
    const [one] = await Promise.allSettled([turn.write(fail)])
    await turn.write(fail).catch(() => undefined)
    return one?.status
  })
  expect(await run).toBe('rejected')
})

test('a write that was awaited gives what it came to', async () => {
  const turn = new Turn('transaction')
  const run = inTurn(turn, async () => (await turn.write(() => Promise.resolve(5))) + 1)
  expect(await run).toBe(6)
})
