/** A folder whose file system does not answer: a network that is gone, a device that hangs. */
import { StoreError } from '../base/errors.ts'

/** A file system that is slow answers sooner. */
const answerMsMax = 10_000

/** A thread of this process waits for the system, so that it cannot end in the usual way. */
export class SilentFolder extends StoreError {
  constructor(path: string, ms: number) {
    const text = `the data folder ${path} has not answered in ${ms / 1000} s; look at its disk or network, or give another one with --data`
    super('unavailable', text)
  }
}

/** The result of `work`; rejects with `SilentFolder` when that takes too long. */
export async function answered<T>(
  path: string,
  work: Promise<T>,
  ms: number = answerMsMax,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SilentFolder(path, ms)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
