/** Bugs in a process's log, where a reader who has the id from an answer finds the details. */
import type { Logger } from 'pino'
import { errorText } from '../base/error-text.ts'
import type { Bug } from './bugs.ts'

const causeCharsMax = 2_000

export function bugLog(logger: Logger): (bug: Bug) => void {
  return ({ id, place, error }) => {
    const { cause } = error
    const detail = { id, place, error: error.stack ?? error.message }
    const text = 'an error of the program itself: it ended what met it, and nothing else'
    logger.error(
      cause === undefined ? detail : { ...detail, cause: errorText(cause, causeCharsMax) },
      text,
    )
  }
}
