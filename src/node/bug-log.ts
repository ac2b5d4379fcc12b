/** Bugs in a process's log, where whoever was told an id finds the rest. */
import type { Logger } from 'pino'
import type { Bug } from './bugs.ts'

export function bugLog(logger: Logger): (bug: Bug) => void {
  return ({ id, place, error }) => {
    const { cause } = error
    const detail = { id, place, error: error.stack ?? error.message }
    const text = 'an error of the program itself: it ended what met it, and nothing else'
    logger.error(cause === undefined ? detail : { ...detail, cause: wordsOf(cause) }, text)
  }
}

function wordsOf(cause: unknown): string {
  try {
    return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
  } catch {
    return 'what has no words'
  }
}
