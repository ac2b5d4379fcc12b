/**
 * The intent of one call, which is opened as there is something to commit under it: one that is open holds
 * back what all groups may forget of its session, and a function may run for long before it writes.
 */
import type { Intent } from '../group/replica-port.ts'
import type { IntentSource, OpenIntent } from './session.ts'

export class CallIntent {
  readonly #source: IntentSource
  #open: OpenIntent | undefined
  /** Whether a submission is on its way whose end is not known. */
  mayTakeEffect = false

  /** `given`: by the caller, who sees to its end. */
  constructor(source: IntentSource, given: Intent | undefined) {
    this.#source = source
    this.#open = given && { intent: given, settle: () => undefined }
  }

  /** The same for all attempts. */
  open(): Intent {
    this.#open ??= this.#source.open()
    return this.#open.intent
  }

  /** Called once, at the end of the call. */
  settle(): void {
    this.#open?.settle(!this.mayTakeEffect)
  }
}
