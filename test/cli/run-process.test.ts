/** A process that is told to stop: before it has started, when it serves, twice, and by a failure. */
import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import { CliError, exitFailure } from '../../src/cli/exit.ts'
import { runUntilTold, type Running } from '../../src/cli/run-process.ts'

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const
const all = [...signals, 'SIGUSR1', 'SIGUSR2'] as const
const logger = pino({ level: 'silent' })
const known = new Map(all.map((signal) => [signal, process.listeners(signal)]))

afterEach(() => {
  vi.restoreAllMocks()
  for (const signal of all) {
    for (const listener of process.listeners(signal)) {
      if (known.get(signal)?.includes(listener) !== true) process.off(signal, listener)
    }
  }
})

class Server implements Running {
  onFailure?: (reason: Error) => void
  stops = 0
  stop(): Promise<void> {
    this.stops += 1
    return Promise.resolve()
  }
}

test.each(signals)('%s in the turn in which it says that it serves stops it', async (signal) => {
  const server = new Server()
  await runUntilTold(() => {
    process.emit(signal, signal)
    return Promise.resolve(server)
  }, logger)
  expect(server.stops).toBe(1)
})

test('a signal that comes while it starts is obeyed when it has started, and not before', async () => {
  const server = new Server()
  let started: (running: Running) => void = () => undefined
  const run = runUntilTold(() => new Promise((resolve) => (started = resolve)), logger)
  process.emit('SIGTERM', 'SIGTERM')
  await new Promise((resolve) => setImmediate(resolve))
  expect(server.stops).toBe(0)
  started(server)
  await run
  expect(server.stops).toBe(1)
})

test('a second signal ends at once, also while it starts', async () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => {
    throw new Error('exit')
  })
  void runUntilTold(() => new Promise(() => undefined), logger)
  process.emit('SIGTERM', 'SIGTERM')
  expect(exit).not.toHaveBeenCalled()
  expect(() => process.emit('SIGINT', 'SIGINT')).toThrow('exit')
  expect(exit).toHaveBeenCalledExactlyOnceWith(exitFailure)
})

test('a terminal that closes says so twice, and does not cut the end short', async () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => {
    throw new Error('exit')
  })
  void runUntilTold(() => new Promise(() => undefined), logger)
  process.emit('SIGHUP', 'SIGHUP')
  process.emit('SIGHUP', 'SIGHUP')
  expect(exit).not.toHaveBeenCalled()
  expect(() => process.emit('SIGTERM', 'SIGTERM')).toThrow('exit')
})

test('a failure stops it and is what it ends with', async () => {
  const server = new Server()
  const run = runUntilTold(() => Promise.resolve(server), logger)
  await new Promise((resolve) => setImmediate(resolve))
  server.onFailure?.(new Error('a disk is gone'))
  await expect(run).rejects.toThrow(new CliError('a disk is gone', exitFailure))
  expect(server.stops).toBe(1)
})
