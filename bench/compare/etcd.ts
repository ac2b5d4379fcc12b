/**
 * etcd: three members, and h2load for a client: one connection to the leader with as many streams as
 * there are clients, which of all ways to ask it was the fastest. It puts 100 bytes under one key;
 * etcd keeps every version of it, as it would of many keys.
 */
import { execFile } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { freePorts } from '../../sim/processes/free-ports.ts'
import type { Load } from '../load-process.ts'
import { resultOf } from '../load.ts'
import {
  findProgram,
  output,
  startServer,
  stopServer,
  treesCpuSeconds,
  until,
  waitedCpuSeconds,
} from './servers.ts'
import type { Measured, RunningSystem, System } from './system.ts'

const install = 'apt-get install etcd-server nghttp2-client'
const startWaitMs = 20_000
const valueBytes = 100
const key = Buffer.from('bench')
const paths = { commits: '/etcdserverpb.KV/Put', reads: '/etcdserverpb.KV/Range' }

export const etcd: System = {
  name: 'etcd',
  async missing() {
    const found = await Promise.all([findProgram('etcd'), findProgram('h2load')])
    return found.includes(undefined) ? install : undefined
  },
  start: startEtcd,
}

async function startEtcd(folder: string): Promise<RunningSystem> {
  const ports = await freePorts(6)
  const members = [0, 1, 2].map((i) => ({
    name: `e${i}`,
    client: `http://127.0.0.1:${ports[i] ?? 0}`,
    peer: `http://127.0.0.1:${ports[i + 3] ?? 0}`,
  }))
  const initial = members.map(({ name, peer }) => `${name}=${peer}`).join(',')
  const children = members.map(({ name, client, peer }) =>
    startServer('etcd', [
      ...['--name', name, '--data-dir', join(folder, name), '--initial-cluster', initial],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--logger', 'zap', '--log-level', 'error'],
    ]),
  )
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => stopServer(child, 'SIGTERM')))
  }
  try {
    const urls = members.map(({ client }) => client)
    const leader = await until(() => leaderOf(urls), startWaitMs)
    await writeFile(join(folder, 'commits'), framed(fields(key, Buffer.alloc(valueBytes, 'x'))))
    await writeFile(join(folder, 'reads'), framed(fields(key)))
    await fetch(`${leader}/v3/kv/put`, {
      method: 'POST',
      body: JSON.stringify({ key: key.toString('base64'), value: key.toString('base64') }),
    })
    const version = (await output('etcd', ['--version'])).split('\n')[0] ?? ''
    return {
      description: `${version}; h2load on one connection to the leader, a stream a client; put of ${valueBytes} bytes, linearizable range of one key`,
      operations: ['commits', 'reads'],
      run: (load) => runLoad(folder, leader, children.map(pidOf), load),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function pidOf({ pid }: { readonly pid?: number | undefined }): number {
  return pid ?? 0
}

interface Status {
  readonly leader?: string
  readonly header?: { readonly member_id: string; readonly revision: string }
}

async function statusOf(url: string): Promise<Status> {
  const answer = await fetch(`${url}/v3/maintenance/status`, { method: 'POST', body: '{}' })
  const status: unknown = await answer.json()
  if (!isStatus(status)) throw new Error('etcd answered with no status')
  return status
}

function isStatus(status: unknown): status is Status {
  return typeof status === 'object' && status !== null && 'header' in status
}

async function leaderOf(urls: readonly string[]): Promise<string> {
  for (const url of urls) {
    const { leader, header } = await statusOf(url)
    if (leader !== undefined && leader === header?.member_id) return url
  }
  throw new Error('etcd has elected no leader')
}

/** A message of these bytes as its fields 1, 2, …; a put and a range begin with the key. */
function fields(...values: readonly Uint8Array[]): BinaryWriter {
  const writer = new BinaryWriter()
  for (const [place, value] of values.entries()) {
    writer.tag(place + 1, WireType.LengthDelimited).bytes(value)
  }
  return writer
}

/** A message of gRPC: not compressed, its length, itself. */
function framed(message: BinaryWriter): Buffer {
  const bytes = message.finish()
  const head = Buffer.alloc(5)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}

async function runLoad(
  folder: string,
  leader: string,
  pids: readonly number[],
  load: Load,
): Promise<Measured> {
  const { clients, seconds, warmUpSeconds, operation } = load
  await ask(folder, leader, operation, clients, warmUpSeconds)
  const before = await treesCpuSeconds(pids)
  const revision = await revisionOf(leader)
  const { latenciesMs, elapsedMs, clientCpu } = await ask(
    folder,
    leader,
    operation,
    clients,
    seconds,
  )
  const after = await treesCpuSeconds(pids)
  const answered = latenciesMs.length
  // The status of a call of gRPC is not one of HTTP: what took effect is counted where it did.
  const effects = (await revisionOf(leader)) - revision
  const failures = operation === 'commits' ? Math.max(0, answered - effects) : 0
  const result = resultOf(latenciesMs, failures, elapsedMs)
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

async function revisionOf(url: string): Promise<number> {
  return Number((await statusOf(url)).header?.revision)
}

interface Asked {
  readonly latenciesMs: number[]
  readonly elapsedMs: number
  readonly clientCpu: number
}

/** One run of h2load, whose log has a line a request: when it began, its status, how long it took. */
async function ask(
  folder: string,
  leader: string,
  operation: Load['operation'],
  clients: number,
  seconds: number,
): Promise<Asked> {
  const log = join(folder, 'requests.log')
  const started = await waitedCpuSeconds()
  await promisify(execFile)('h2load', [
    ...['-D', `${seconds}`, '-c', '1', '-m', `${clients}`, '-t', '1', '--log-file', log],
    ...['-d', join(folder, operation)],
    ...['-H', 'content-type: application/grpc', '-H', 'te: trailers'],
    `${leader}${paths[operation]}`,
  ])
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
