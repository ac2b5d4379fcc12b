/**
 * `trilithon trigger worker`: one worker, as `trigger run` starts it. Tells its parent how it goes,
 * and stops when that is gone.
 */
import type { Command } from 'commander'
import { StoreError } from '../base/errors.ts'
import type { TriggerEvent } from '../triggers/event.ts'
import { runTriggers } from '../triggers/run.ts'
import { addClusterFlags, withClient } from './client.ts'
import { CliError, exitFailure } from './exit.ts'
import type { Options } from './options.ts'
import { ignoreUserSignals, onStopSignals } from './signals.ts'
import { loadService } from './trigger-file.ts'

/** The work that a worker has done since its last report, and its messages for the user. */
export interface WorkerReport {
  readonly kind: 'trilithon worker'
  readonly worker: string
  readonly handled: number
  readonly failed: number
  readonly marked: number
  readonly shards: number
  readonly says: readonly string[]
}

const reportMs = 500

/** The application's code runs in the worker too, and may send what it likes. */
export function isReport(sent: unknown): sent is WorkerReport {
  if (typeof sent !== 'object' || sent === null) return false
  return 'kind' in sent && sent.kind === 'trilithon worker' && 'says' in sent
}

export function addTriggerWorkerCommand(trigger: Command): void {
  addClusterFlags(trigger.command('worker', { hidden: true }).argument('<FILE>'))
    .description('one worker, as `trigger run` starts it')
    .action(runWorker)
}

async function runWorker(path: string, options: Options): Promise<void> {
  const service = await loadService(path)
  const counts = { handled: 0, failed: 0, marked: 0, shards: 0 }
  let says: string[] = []
  const onEvent = (event: TriggerEvent): void => {
    if (event.kind === 'handled' || event.kind === 'failed' || event.kind === 'marked') {
      counts[event.kind] += 1
    } else if (event.kind === 'assigned') counts.shards = event.shards
    says.push(...describeEvent(event))
  }
  await withClient(options, async (client) => {
    const running = runTriggers(client, service, { onEvent })
    const report = (): void => {
      const sent: WorkerReport = {
        kind: 'trilithon worker',
        worker: running.worker,
        ...counts,
        says,
      }
      Object.assign(counts, { handled: 0, failed: 0, marked: 0 })
      says = []
      if (process.connected) process.send?.(sent)
    }
    const timer = setInterval(report, reportMs)
    // Why it could not go on is said below.
    const stop = (): void => void running.stop().catch(() => undefined)
    onStopSignals({ stop })
    ignoreUserSignals((text) => says.push(text))
    process.on('disconnect', stop)
    // The parent may have gone before this worker listened. A worker without `send` was run by hand.
    if (process.send !== undefined && !process.connected) stop()
    try {
      await running.ended
    } catch (error) {
      throw error instanceof StoreError ? new CliError(error.message, exitFailure) : error
    } finally {
      clearInterval(timer)
      report()
    }
  })
}

/** The words about an event that people want to read. */
function describeEvent(event: TriggerEvent): readonly string[] {
  switch (event.kind) {
    case 'marked': {
      const { rowKey, column, refKey } = event.cell
      const tries = event.attempts === 1 ? 'try' : 'tries'
      return [
        `${event.trigger}: ${rowKey} ${column} ${refKey} is marked after ${event.attempts} ${tries}: ${event.error}`,
      ]
    }
    case 'passed-over': {
      const { trigger, shard, cells } = event
      return [
        `${trigger}: passes over ${cells} cells of shard ${shard} that have expired or were purged`,
      ]
    }
    case 'state':
      return event.state === 'running'
        ? []
        : [`${event.trigger} is ${event.state}: ${event.reason}`]
    case 'elected':
      return [`leads from term ${event.term}`]
    case 'reach':
      return [
        event.isReached
          ? 'reaches its service again'
          : `does not reach its service: ${event.error}`,
      ]
    default:
      return []
  }
}
