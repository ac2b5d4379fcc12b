/** Signals to a process that runs for long: which end it, and which must not. */
import { listenNoMore } from './early-signals.ts'

const stopSignals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

export interface StopListeners {
  /** At the first signal that asks for an end. */
  readonly stop: (signal: NodeJS.Signals) => void
  /** The user sends a second signal, and does not want to wait. */
  readonly stopNow?: (signal: NodeJS.Signals) => void
}

/**
 * SIGTERM, SIGINT and SIGHUP stop in an orderly way; one of the first two that comes later ends at once. A
 * terminal that closes sends SIGHUP, its shell often once more: a second one is no impatience.
 */
export function onStopSignals({ stop, stopNow }: StopListeners): void {
  let isTold = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (!isTold) {
      isTold = true
      stop(signal)
    } else if (signal !== 'SIGHUP') stopNow?.(signal)
  }
  for (const signal of stopSignals) process.on(signal, onSignal)
  listenNoMore()
}

/**
 * Ends the process as the system does when no listener is registered: also one whose threads wait for
 * something.
 */
export function endBy(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

/**
 * Node.js answers SIGUSR1 with a debugger's port, through which any program that reaches it can run code in
 * this process. SIGUSR2 would end the process. With listeners for them, neither happens.
 */
export function ignoreUserSignals(say: (text: string, signal: NodeJS.Signals) => void): void {
  process.on('SIGUSR1', (signal) => {
    say('SIGUSR1 opens no debugger here: start it with --inspect for one', signal)
  })
  process.on('SIGUSR2', (signal) => {
    say('SIGUSR2 means nothing to this process', signal)
  })
}
