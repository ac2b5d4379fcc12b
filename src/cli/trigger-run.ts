/**
 * `trilithon trigger run FILE --workers N`: starts workers, each a process, and restarts a worker that ends
 * by itself after a while. On a stop signal it ends with them.
 */
import { fork, type ChildProcess } from 'node:child_process'
import type { Command } from 'commander'
import type { Client } from '../client/client.ts'
import { allShardsOf } from '../cells/shard.ts'
import type { Service } from '../triggers/definition.ts'
import { addClusterFlags, parseCount, withClient } from './client.ts'
import { CliError, exitFailure } from './exit.ts'
import type { Options } from './options.ts'
import { counted, grouped, printJson, say } from './output.ts'
import { ignoreUserSignals, onStopSignals } from './signals.ts'
import { loadService } from './trigger-file.ts'
import { isReport, type WorkerReport } from './trigger-worker.ts'
import { parseUrls } from './url-flags.ts'

const workersMax = 256
/** A worker that ended by itself is started again after this; longer when it does so again. */
const againMs = 500
const againMaxMs = 30_000
/** A worker that lived this long has not failed at its start. */
const soundMs = 10_000
const statusMs = 2_000

export function addTriggerRunCommand(trigger: Command): void {
  addClusterFlags(trigger.command('run').argument('<FILE>'))
    .description(
      'run the triggers that a module declares, in worker processes, until a signal stops them',
    )
    .option('-w, --workers <N>', 'how many processes', '1')
    .action(runTriggerFile)
}

async function runTriggerFile(path: string, options: Options): Promise<void> {
  const workers = parseCount('--workers', options['workers'], 1, workersMax)
  const service = await loadService(path)
  parseUrls(options)
  await withClient(options, (client) => lookFirst(client, service))
  const pool = new WorkerPool(path, options)
  const names = service.triggers.map(({ name }) => name).join(', ')
  say(`service ${service.service}: ${counted(workers, 'worker')} for ${names}; Ctrl-C ends them`)
  await pool.run(workers)
}

/** A cluster that does not answer, and a name that may be wrong, are said before anything is begun. */
async function lookFirst(client: Client, { datastore }: Service): Promise<void> {
  const first = { kind: 'after', shard: 0, addedId: 0 } as const
  await client.cells(datastore).shardLogs([first], { limit: 1 })
  const outcomes = await client.cells(datastore).shardLogs(
    allShardsOf(datastore).map((shard) => ({ ...first, shard })),
    { limit: 1, read: 'snapshot' },
  )
  const isEmpty = outcomes.every(
    (outcome) => outcome.kind === 'ok' && outcome.value.items.length === 0,
  )
  if (isEmpty)
    say(`datastore ${datastore} has no cells yet: waiting for the first (is the name right?)`)
}

interface Totals {
  handled: number
  failed: number
  marked: number
}

class WorkerPool {
  readonly #path: string
  readonly #options: Options
  readonly #children = new Map<number, ChildProcess>()
  readonly #shards = new Map<number, number>()
  readonly #totals: Totals = { handled: 0, failed: 0, marked: 0 }
  #isEnding = false
  #end: (error?: CliError) => void = () => undefined

  constructor(path: string, options: Options) {
    this.#path = path
    this.#options = options
  }

  async run(count: number): Promise<void> {
    const ended = new Promise<CliError | undefined>((resolve) => (this.#end = resolve))
    onStopSignals({ stop: () => this.#stop(), stopNow: () => this.#stop() })
    ignoreUserSignals(say)
    for (let i = 1; i <= count; i++) this.#start(i, 0)
    const timer = this.#tellNowAndThen()
    const error = await ended
    clearInterval(timer)
    this.#tell()
    if (error !== undefined) throw error
  }

  #start(nth: number, failures: number): void {
    const startedMs = performance.now()
    const program = process.argv[1] ?? ''
    const child = fork(program, ['trigger', 'worker', this.#path, ...toFlags(this.#options)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#children.set(nth, child)
    say(`worker ${nth}: process ${child.pid ?? 'unknown'}`)
    child.on('message', (report: unknown) => {
      // The application's own code may send as well.
      if (isReport(report)) this.#onReport(nth, report)
    })
    child.on('error', (error) => say(`worker ${nth}: ${error.message}`))
    child.on('exit', (code, signal) => {
      this.#children.delete(nth)
      this.#shards.delete(nth)
      if (this.#isEnding) return this.#endIfAlone()
      const isSound = performance.now() - startedMs >= soundMs
      this.#again(
        nth,
        isSound ? 0 : failures + 1,
        code === null ? `by ${signal ?? 'a signal'}` : `with ${code}`,
      )
    })
  }

  #again(nth: number, failures: number, how: string): void {
    const delayMs = Math.min(againMaxMs, againMs * 2 ** Math.max(0, failures - 1))
    say(`worker ${nth} ended ${how}; another one is started in ${delayMs} ms`)
    setTimeout(() => {
      if (!this.#isEnding) this.#start(nth, failures)
    }, delayMs)
  }

  /** The second time it ends at once. */
  #stop(): void {
    if (this.#isEnding) return this.#end(new CliError('ended before the workers had', exitFailure))
    this.#isEnding = true
    say('ending; handlers that are at work are waited for')
    for (const child of this.#children.values()) child.kill('SIGTERM')
    this.#endIfAlone()
  }

  #endIfAlone(): void {
    if (this.#children.size === 0) this.#end()
  }

  #onReport(nth: number, report: WorkerReport): void {
    this.#shards.set(nth, report.shards)
    for (const name of ['handled', 'failed', 'marked'] as const) this.#totals[name] += report[name]
    for (const words of report.says) say(`worker ${nth}: ${words}`)
  }

  /** A line that is written over on a terminal; with `--json`, lines on stdout. */
  #tellNowAndThen(): NodeJS.Timeout {
    let told = ''
    return setInterval(() => {
      const { handled, failed, marked } = this.#totals
      const now = `${handled} ${failed} ${marked} ${[...this.#shards.values()].join()}`
      if (now === told) return
      told = now
      this.#tell()
    }, statusMs)
  }

  #tell(): void {
    const { handled, failed, marked } = this.#totals
    const shards = [...this.#shards.values()].reduce((sum, one) => sum + one, 0)
    const workers = this.#children.size
    if (this.#options['json'] === true)
      return printJson({ workers, shards, handled, failed, marked })
    say(
      `${counted(workers, 'worker')}, ${counted(shards, 'shard')}: ${grouped(handled)} handled, ${grouped(failed)} failed, ${grouped(marked)} marked`,
    )
  }
}

/** The cluster's flags as they were given. */
function toFlags(options: Options): readonly string[] {
  const names = { url: '--url', secretFile: '--secret-file', timeout: '--timeout' } as const
  return Object.entries(names).flatMap(([name, flag]) => {
    const value = options[name]
    return typeof value === 'string' ? [flag, value] : []
  })
}
