/**
 * Calls `run`; what it throws is a rejection. For functions that hand a promise on: as `async` ones they
 * would make another of it, and where calls are short and many, promises are most of what they cost.
 */
export function asPromise<Value>(run: () => Promise<Value>): Promise<Value> {
  try {
    return run()
  } catch (error) {
    return Promise.reject(error)
  }
}
