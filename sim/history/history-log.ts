/**
 * Writes a history down while it happens. An operation that has begun and not ended is part of it,
 * with an unknown outcome.
 */
import type { History, HistoryOperation, MicroOperation } from './operation.ts'

/** The known facts of an operation when it begins. */
export type Asked = Pick<HistoryOperation, 'client' | 'micro' | 'level' | 'group' | 'node'>

/** The facts that its end makes more exact. */
export type Learnt = Partial<Pick<HistoryOperation, 'node' | 'level'>>

export interface OpenOperation {
  /** It took effect, with these reads and writes. */
  ok(micro: readonly MicroOperation[], learnt?: Learnt): void
  fail(): void
  /** It may have taken effect, or take effect yet. */
  unknown(): void
}

export class HistoryLog {
  readonly #now: () => number
  readonly #operations: HistoryOperation[] = []
  readonly #onEnd: (operation: HistoryOperation) => void

  /** Calls `onEnd` with each operation whose outcome is known, or will stay unknown. */
  constructor(now: () => number, onEnd: (operation: HistoryOperation) => void = () => undefined) {
    this.#now = now
    this.#onEnd = onEnd
  }

  get length(): number {
    return this.#operations.length
  }

  begin(asked: Asked): OpenOperation {
    const index = this.#operations.length
    const start = this.#now()
    this.#operations.push({ start, outcome: 'unknown', ...asked })
    const end = (change: Partial<HistoryOperation>): void => {
      const ended: HistoryOperation = { start, outcome: 'unknown', ...asked, ...change }
      this.#operations[index] = ended
      this.#onEnd(ended)
    }
    return {
      ok: (micro, learnt = {}) => {
        end({ micro, outcome: 'ok', end: this.#now(), ...learnt })
      },
      fail: () => {
        end({ outcome: 'fail', end: this.#now() })
      },
      unknown: () => {
        end({})
      },
    }
  }

  history(): History {
    return [...this.#operations]
  }
}
