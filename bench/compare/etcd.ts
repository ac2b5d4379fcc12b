/**
 * etcd, and h2load for a client: one connection to the leader with as many streams as there are
 * clients, which of all ways to ask it was the fastest; no program that has other things to do asks so.
 */
import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Load } from '../load-process.ts'
import { summarizeLoad } from '../load.ts'
import { startMembers, type Members } from './etcd-members.ts'
import { messages, paths, what } from './etcd-messages.ts'
import { findProgram, treesCpuSeconds, waitedCpuSeconds } from './servers.ts'
import type { Measured, RunningSystem, StartOptions, System } from './system.ts'

const install = 'apt-get install etcd-server nghttp2-client'

export const etcd: System = {
  name: 'etcd',
  async missing() {
    const found = await Promise.all([findProgram('etcd'), findProgram('h2load')])
    return found.includes(undefined) ? install : undefined
  },
  start: startEtcd,
}

async function startEtcd(folder: string, { signal }: StartOptions): Promise<RunningSystem> {
  const members = await startMembers(folder, signal)
  await writeFile(join(folder, 'commits'), messages.commits)
  await writeFile(join(folder, 'reads'), messages.reads)
  return {
    description: `${members.version}; h2load on one connection to the leader, a stream a client; ${what}`,
    operations: ['commits', 'reads'],
    run: (load) => runLoad({ folder, members, signal }, load),
    stop: members.stop,
  }
}

/** Facts that a load needs. */
interface Place {
  readonly folder: string
  readonly members: Members
  readonly signal: AbortSignal
}

async function runLoad(place: Place, load: Load): Promise<Measured> {
  const { pids, revision } = place.members
  const { clients, seconds, warmUpSeconds, operation } = load
  await ask(place, operation, clients, warmUpSeconds)
  const before = await treesCpuSeconds(pids)
  const revisionBefore = await revision()
  const { latenciesMs, elapsedMs, clientCpu } = await ask(place, operation, clients, seconds)
  const after = await treesCpuSeconds(pids)
  const answered = latenciesMs.length
  // The status of a call of gRPC is not one of HTTP: etcd's own revision counts the puts that took
  // effect.
  const effects = (await revision()) - revisionBefore
  const failures = operation === 'commits' ? Math.max(0, answered - effects) : 0
  const result = summarizeLoad(latenciesMs, failures, elapsedMs)
  const done = answered - failures
  return {
    ...result,
    drainSeconds: 0,
    perSecond: done / (elapsedMs / 1000),
    serverCpuPer1000: ((after - before) / done) * 1000,
    clientCpuPer1000: (clientCpu / done) * 1000,
    backlogBytes: [],
  }
}

interface Asked {
  readonly latenciesMs: number[]
  readonly elapsedMs: number
  readonly clientCpu: number
}

/** One run of h2load, whose log has a line a request: when it began, its status, how long it took. */
async function ask(
  { folder, members, signal }: Place,
  operation: Load['operation'],
  clients: number,
  seconds: number,
): Promise<Asked> {
  const log = join(folder, 'requests.log')
  const started = await waitedCpuSeconds()
  const args = [
    ...['-D', `${seconds}`, '-c', '1', '-m', `${clients}`, '-t', '1', '--log-file', log],
    ...['-d', join(folder, operation)],
    ...['-H', 'content-type: application/grpc', '-H', 'te: trailers'],
    `${members.leader}${paths[operation]}`,
  ]
  await promisify(execFile)('h2load', args, { signal })
  const clientCpu = (await waitedCpuSeconds()) - started
  const lines = (await readFile(log, 'utf8')).trim().split('\n')
  await rm(log)
  const latenciesMs = lines.map((line) => {
    const [, status, micros] = line.split('\t').map(Number)
    if (status !== 200 || micros === undefined) throw new Error(`etcd answered ${line}`)
    return micros / 1000
  })
  return { latenciesMs, elapsedMs: seconds * 1000, clientCpu }
}
