/** Calling what a program gave, with an end to the wait for it; and trying again what must come about. */
import { errorText } from '../base/error-text.ts'
import type { Clock } from '../ports/clock.ts'
import { pause } from '../time/moments.ts'
import { errorCharsMax } from './limits.ts'
import { isOutage } from './member.ts'

/** The end of a call: undefined when it went well, or why it did not, in words. */
export type Failure = string | undefined

/** Resolves when the call has ended, or its time has. A later end of the call is ignored. */
export function attempt(
  clock: Clock,
  timeoutMs: number,
  call: () => Promise<void> | void,
): Promise<Failure> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(timeoutMs, () => {
      resolve(`it had not ended after ${timeoutMs} ms`)
    })
    const end = (failure: Failure): void => {
      timer.cancel()
      resolve(failure)
    }
    called(call).then(
      () => end(undefined),
      (error: unknown) => end(errorText(error, errorCharsMax)),
    )
  })
}

/** An error that the call throws at once is a rejection as well. */
async function called(call: () => Promise<void> | void): Promise<void> {
  await call()
}

/** Tries until it comes about; undefined when it was not to go on after an outage. */
export async function untilDone<Value>(
  ports: { readonly clock: Clock; readonly pauseMs: number; mayGoOn(): boolean },
  work: () => Promise<Value>,
): Promise<Value | undefined> {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isOutage(error)) throw error
      if (!ports.mayGoOn()) return undefined
    }
    await pause(ports, ports.pauseMs)
    if (!ports.mayGoOn()) return undefined
  }
}
