/** Triggers on the machine's clock and randomness: the functions that programs call. */
import { systemClock } from '../adapters/system-clock.ts'
import { systemRandom } from '../adapters/system-random.ts'
import { checkArgument, checkOptions, givenMember, text, wrongArgument } from '../base/arguments.ts'
import { isReadable } from '../base/readable.ts'
import { openCellTables, placedCellTables } from '../cells/cell-table.ts'
import type { Client } from '../client/client.ts'
import type { WriteOptions } from '../client/options.ts'
import { writeRules } from '../client/rules.ts'
import type { Tables } from '../tables/tables.ts'
import { checkSignal } from '../txn/signalled.ts'
import { TriggerAdmin } from './admin.ts'
import { isService, type Service } from './definition.ts'
import { checkWorker, Worker, type WorkerOptions } from './worker.ts'
import { Sessions } from '../txn/session.ts'

/** A worker that runs in this process. */
export interface RunningTriggers {
  readonly worker: string
  /** Resolves when it was stopped, rejects when it could not go on: it has left the service by then. */
  readonly ended: Promise<void>
  /** Lets handlers end, saves what they did and leaves the service. Rejects when `ended` does. */
  stop(): Promise<void>
}

/** Begins to work on a service's triggers, with this client, which stays the caller's. */
export function runTriggers(
  client: Client,
  service: Service,
  options: WorkerOptions = {},
): RunningTriggers {
  checkClient('runTriggers', client)
  if (!isService(service)) {
    throw wrongArgument('runTriggers', 'the service', service, 'what defineTriggers gives')
  }
  checkWorker(service, options)
  const { signal } = options
  checkSignal(signal)
  const ports = { clock: systemClock, random: systemRandom }
  const cells = client.cells(service.datastore)
  const worker = new Worker(
    service,
    { ...ports, cells, tables: openTables(client, service.datastore) },
    options,
  )
  const ended = worker.run()
  // A program that does not wait for `ended` gets the error from `stop`.
  ended.catch(() => undefined)
  const stop = (): Promise<void> => worker.stop()
  const stopAlone = (): void => void stop().catch(() => undefined)
  signal?.addEventListener('abort', stopAlone, { once: true })
  const forget = (): void => signal?.removeEventListener('abort', stopAlone)
  void ended.then(forget, forget)
  return { worker: worker.name, ended, stop }
}

/** By what it has: a program may hold two copies of the package, each with a class of its own. */
function checkClient(call: string, client: unknown): void {
  const isObject = typeof client === 'object' && client !== null && isReadable(client)
  const member = (name: string): unknown =>
    isObject && givenMember(`${call}: the client`, client, name)
  if (typeof member('cells') === 'function' && typeof member('groups') === 'object') return
  throw wrongArgument(call, 'the client', client, 'a client, as connect gives it')
}

const adminTimeoutMs = 10_000

/** Looks at a service, and changes how its triggers go on. The options are those of each of its calls. */
export function triggerAdmin(
  client: Client,
  service: string,
  given: number | WriteOptions = {},
): TriggerAdmin {
  checkClient('triggerAdmin', client)
  checkArgument('triggerAdmin', 'the service', service, text)
  const options = typeof given === 'number' ? { timeoutMs: given } : given
  checkOptions('triggerAdmin', options, writeRules)
  const { timeoutMs = adminTimeoutMs, signal } = options
  const call = { timeoutMs, ...(signal && { signal }) }
  const { groups } = client
  const ports = { cells: (datastore: string) => client.cells(datastore), groups, ...call }
  const machine = { clock: systemClock, random: systemRandom, timeoutMs }
  const systems = { ...machine, intents: new Sessions(systemClock, systemRandom) }
  const tables = openCellTables(groups, systems)
  const tablesOf = placedCellTables(groups, systems)
  return new TriggerAdmin({ ...ports, tables, tablesOf }, service)
}

function openTables(client: Client, datastore: string): Tables {
  const systems = { clock: systemClock, random: systemRandom }
  return placedCellTables(client.groups, systems)(datastore)
}
