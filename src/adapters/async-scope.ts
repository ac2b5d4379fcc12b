/** Knows of any code whether the function of a transaction that is still open has started it. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { TransactionScope } from '../txn/scope.ts'

export function asyncScope(): TransactionScope {
  const inside = new AsyncLocalStorage<{ isOver: boolean }>()
  return {
    inside: async (run) => {
      const here = { isOver: false }
      try {
        return await inside.run(here, run)
      } finally {
        here.isOver = true
      }
    },
    isInside: () => inside.getStore()?.isOver === false,
  }
}
