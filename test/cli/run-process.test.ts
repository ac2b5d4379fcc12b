/** A process that a signal stops: before it has started, when it serves, twice, and by a failure. */
import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import { StoreError } from '../../src/base/errors.ts'
import { CliError, exitFailure, isStuck } from '../../src/cli/exit.ts'
import { runUntilTold, type Running } from '../../src/cli/run-process.ts'
import { answered } from '../../src/node/silent-folder.ts'

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

test('a start that goes on for too long is given up, and the signal ends the process', async () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  void runUntilTold(() => new Promise(() => undefined), logger, 10)
  process.emit('SIGTERM', 'SIGTERM')
  await vi.waitFor(() => expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, 'SIGTERM'))
  expect(process.listenerCount('SIGTERM')).toBe(0)
})

test('a start that fails after the signal ends with its own sentence', async () => {
  let fail: (error: Error) => void = () => undefined
  const run = runUntilTold(() => new Promise((_, reject) => (fail = reject)), logger)
  process.emit('SIGTERM', 'SIGTERM')
  fail(new StoreError('invalid', 'the folder is none'))
  await expect(run).rejects.toThrow(new CliError('the folder is none', exitFailure))
})

test('the process reports a data folder that does not answer, and ends without its threads', async () => {
  const silent = answered('/mnt/gone', new Promise(() => undefined), 5)
  const text =
    'the data folder /mnt/gone has not answered in 0.005 s; look at its disk or network, or give another one with --data'
  expect(isStuck()).toBe(false)
  await expect(runUntilTold(() => silent.then(() => new Server()), logger)).rejects.toThrow(
    new CliError(text, exitFailure),
  )
  expect(isStuck()).toBe(true)
})

/**
 * Starts only when the test says so: a start that is never done would end this very process when its time is
 * over.
 */
function slowly(): {
  readonly start: () => Promise<Running>
  end(run: Promise<void>): Promise<void>
} {
  let started: (running: Running) => void = () => undefined
  const starting = new Promise<Running>((resolve) => (started = resolve))
  return {
    start: () => starting,
    end: (run) => {
      started(new Server())
      return run
    },
  }
}

test('a second signal ends the process itself at once, also while it starts', async () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  const slow = slowly()
  const run = runUntilTold(slow.start, logger, 60_000)
  process.emit('SIGTERM', 'SIGTERM')
  expect(kill).not.toHaveBeenCalled()
  process.emit('SIGINT', 'SIGINT')
  expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, 'SIGINT')
  expect(process.listenerCount('SIGINT')).toBe(0)
  await slow.end(run)
})

test('a terminal that closes says so twice, and does not cut the end short', async () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  const slow = slowly()
  const run = runUntilTold(slow.start, logger, 60_000)
  process.emit('SIGHUP', 'SIGHUP')
  process.emit('SIGHUP', 'SIGHUP')
  expect(kill).not.toHaveBeenCalled()
  process.emit('SIGTERM', 'SIGTERM')
  expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, 'SIGTERM')
  await slow.end(run)
})

test('a failure stops it and is what it ends with', async () => {
  const server = new Server()
  const run = runUntilTold(() => Promise.resolve(server), logger)
  await new Promise((resolve) => setImmediate(resolve))
  server.onFailure?.(new Error('a disk is gone'))
  await expect(run).rejects.toThrow(new CliError('a disk is gone', exitFailure))
  expect(server.stops).toBe(1)
})
