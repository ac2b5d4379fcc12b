/**
 * PostgreSQL: a primary and two standbys, one of which must have synced a commit before it is
 * acknowledged (`ANY 1`), and pgbench for a client: an upsert of 100 bytes under one of a million
 * keys, or a select by key at the primary, prepared.
 */
import { chown, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChildProcess } from 'node:child_process'
import { freePorts } from '../../sim/processes/free-ports.ts'
import type { Load } from '../load-process.ts'
import { summarizeLoad } from '../load.ts'
import {
  findProgram,
  output,
  startServer,
  stopServer,
  treesCpuSeconds,
  until,
  waitedCpuSeconds,
  type RunAs,
} from './servers.ts'
import type { Measured, RunningSystem, StartOptions, System } from './system.ts'

const install = 'apt-get install postgresql-15'
/** Debian keeps what starts servers out of PATH. */
const folders = ['/usr/lib/postgresql/15/bin']
const programs = ['initdb', 'postgres', 'pg_basebackup', 'psql', 'pgbench'] as const
const startWaitMs = 30_000
const rowCount = 1_000
const keyCount = 1_000_000
const scripts: Readonly<Record<Load['operation'], string>> = {
  commits: `\\set key random(1, ${keyCount})\nINSERT INTO bench VALUES (:key, repeat('x', 100)) ON CONFLICT (key) DO UPDATE SET value = excluded.value;\n`,
  reads: `\\set key random(1, ${rowCount})\nSELECT value FROM bench WHERE key = :key;\n`,
}

type Programs = Readonly<Record<(typeof programs)[number], string>>

export const postgres: System = {
  name: 'postgres',
  async missing() {
    return (await find()) === undefined ? install : undefined
  },
  async start(folder, options) {
    const found = await find()
    if (found === undefined) throw new Error(`PostgreSQL 15 is not here: ${install}`)
    return await startPostgres(folder, found, options)
  },
}

async function find(): Promise<Programs | undefined> {
  const [initdb, server, basebackup, psql, pgbench] = await Promise.all(
    programs.map((name) => findProgram(name, folders)),
  )
  if (!initdb || !server || !basebackup || !psql || !pgbench) return undefined
  return { initdb, postgres: server, pg_basebackup: basebackup, psql, pgbench }
}

/** PostgreSQL refuses to be root's: then it is its own user's. */
async function readUser(): Promise<Partial<RunAs>> {
  if (process.getuid?.() !== 0) return {}
  const [uid, gid] = await Promise.all([
    output('id', ['-u', 'postgres']),
    output('id', ['-g', 'postgres']),
  ])
  return { uid: Number(uid), gid: Number(gid) }
}

/** Facts that all three need. */
interface Place {
  readonly folder: string
  readonly found: Programs
  readonly as: Partial<RunAs>
  readonly ports: readonly number[]
  readonly signal: AbortSignal
  readonly clientsMax: number
}

async function startPostgres(
  folder: string,
  found: Programs,
  { signal, clientsMax }: StartOptions,
): Promise<RunningSystem> {
  const as = await readUser()
  await give(folder, as)
  const place = { folder, found, as, ports: await freePorts(3), signal, clientsMax }
  const children: ChildProcess[] = []
  const stop = async (): Promise<void> => {
    // The standbys first: the primary waits for them when it ends.
    for (const child of children.toReversed()) await stopServer(child, 'SIGINT')
  }
  try {
    children.push(await startPrimary(place))
    for (const standby of [1, 2]) children.push(await startStandby(place, standby))
    await until(() => checkStandbys(place), startWaitMs, signal)
    await fill(place)
    const version = (await output(found.postgres, ['--version'])).trim()
    const work = join(folder, 'pgbench')
    await mkdir(work)
    for (const [name, text] of Object.entries(scripts)) await writeFile(join(work, name), text)
    return {
      description: `${version}, synchronous_standby_names 'ANY 1 (s1,s2)'; pgbench, prepared; upsert of 100 bytes, select at the primary`,
      operations: ['commits', 'reads'],
      run: (load) =>
        runLoad(
          place,
          children.map(({ pid }) => pid ?? 0),
          load,
        ),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function give(path: string, { uid, gid }: Partial<RunAs>): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid)
}

function joinDataPath({ folder }: Place, server: number): string {
  return join(folder, `data${server}`)
}

/**
 * Connections of clients, and of the operator of the servers: PostgreSQL keeps three for that
 * anyway.
 */
export function connectionsMax(clientsMax: number): number {
  return clientsMax + 20
}

function start(place: Place, server: number, settings: readonly string[]): ChildProcess {
  const { found, as, ports, clientsMax } = place
  const common = [
    ...[
      'fsync=on',
      'synchronous_commit=on',
      `max_connections=${connectionsMax(clientsMax)}`,
      `port=${ports[server] ?? 0}`,
    ],
    ...['listen_addresses=127.0.0.1', `unix_socket_directories=${place.folder}`],
    // Checkpoints as on a server that has been given some room.
    ...['max_wal_size=4GB', 'checkpoint_timeout=15min', 'log_min_messages=panic'],
  ]
  const args = [...common, ...settings].flatMap((setting) => ['-c', setting])
  return startServer(found.postgres, ['-D', joinDataPath(place, server), ...args], as)
}

async function startPrimary(place: Place): Promise<ChildProcess> {
  const { found, as } = place
  const auth = ['-A', 'trust', '-U', 'bench', '-E', 'UTF8', '--locale', 'C']
  await output(found.initdb, ['-D', joinDataPath(place, 0), ...auth], as)
  const child = start(place, 0, [`synchronous_standby_names=ANY 1 (s1,s2)`])
  await until(() => sql(place, 'SELECT 1'), startWaitMs, place.signal)
  return child
}

async function startStandby(place: Place, standby: number): Promise<ChildProcess> {
  const { found, as, ports } = place
  const source = `host=127.0.0.1 port=${ports[0] ?? 0} user=bench application_name=s${standby}`
  const args = ['-D', joinDataPath(place, standby), '-R', '-c', 'fast', '-d', source]
  await output(found.pg_basebackup, args, as)
  return start(place, standby, [])
}

function sql({ found, ports }: Place, statement: string): Promise<string> {
  const where = ['-h', '127.0.0.1', '-p', `${ports[0] ?? 0}`, '-U', 'bench', '-d', 'postgres']
  return output(found.psql, [...where, '-X', '-A', '-t', '-c', statement])
}

async function checkStandbys(place: Place): Promise<void> {
  const count = await sql(
    place,
    `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'`,
  )
  if (Number(count) !== 2) throw new Error('a standby of PostgreSQL has not come up')
}

async function fill(place: Place): Promise<void> {
  await sql(place, 'CREATE TABLE bench (key int PRIMARY KEY, value text)')
  await sql(
    place,
    `INSERT INTO bench SELECT n, repeat('x', 100) FROM generate_series(1, ${rowCount}) n`,
  )
}

async function runLoad(place: Place, pids: readonly number[], load: Load): Promise<Measured> {
  const { clients, seconds, warmUpSeconds, operation } = load
  await ask(place, operation, clients, warmUpSeconds)
  const before = await treesCpuSeconds(pids)
  const { latenciesMs, clientCpu } = await ask(place, operation, clients, seconds)
  const after = await treesCpuSeconds(pids)
  // That number of clients connects for longer than a short run lasts: it measured nothing.
  if (latenciesMs.length === 0) throw new Error('pgbench came to no transaction in its time')
  const result = summarizeLoad(latenciesMs, 0, seconds * 1000)
  const per1000 = (used: number): number => (used / latenciesMs.length) * 1000
  return {
    ...result,
    drainSeconds: 0,
    perSecond: latenciesMs.length / seconds,
    serverCpuPer1000: per1000(after - before),
    clientCpuPer1000: per1000(clientCpu),
    backlogBytes: [],
  }
}

/** One run of pgbench, whose logs have a line a transaction: of which client, its number, how long it took. */
async function ask(
  { folder, found, ports, signal }: Place,
  operation: Load['operation'],
  clients: number,
  seconds: number,
): Promise<{ readonly latenciesMs: number[]; readonly clientCpu: number }> {
  const work = join(folder, 'pgbench')
  const before = await waitedCpuSeconds()
  const args = [
    ...['-h', '127.0.0.1', '-p', `${ports[0] ?? 0}`, '-U', 'bench', '-n', '-M', 'prepared'],
    ...['-c', `${clients}`, '-T', `${seconds}`, '-f', join(work, operation)],
    ...['--log', '--log-prefix', join(work, 'log'), 'postgres'],
  ]
  await output(found.pgbench, args, { signal })
  const clientCpu = (await waitedCpuSeconds()) - before
  const latenciesMs: number[] = []
  for (const name of await readdir(work)) {
    if (!name.startsWith('log.')) continue
    const lines = (await readFile(join(work, name), 'utf8')).split('\n').filter((one) => one !== '')
    for (const line of lines) latenciesMs.push(Number(line.split(' ')[2]) / 1000)
    await rm(join(work, name))
  }
  return { latenciesMs, clientCpu }
}
