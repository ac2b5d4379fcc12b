/**
 * etcd, asked by its own client library, as a program in Go asks it (`etcd-client.go`); its puts
 * and reads are those of PostgreSQL and Trilithon. Built with the packages of Debian.
 */
import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { LoadProcess, type Load } from '../load-process.ts'
import { startMembers, type Members } from './etcd-members.ts'
import { findProgram, treesCpuSeconds } from './servers.ts'
import type { Measured, RunningSystem, StartOptions, System } from './system.ts'

const install = 'apt-get install etcd-server golang-go golang-etcd-server-dev'
/** Where Debian keeps the sources of Go's libraries. */
const library = '/usr/share/gocode'
/** It stands in the sources, which the build of this file leaves where they are. */
const source = fileURLToPath(new URL('../../../bench/compare/etcd-client.go', import.meta.url))

export const etcdGo: System = {
  name: 'etcdGo',
  async missing() {
    const found = await Promise.all([findProgram('etcd'), findProgram('go'), hasLibrary()])
    return found.every(Boolean) ? undefined : install
  },
  start,
}

function hasLibrary(): Promise<boolean> {
  return access(join(library, 'src/go.etcd.io/etcd/clientv3')).then(
    () => true,
    () => false,
  )
}

async function start(folder: string, { signal }: StartOptions): Promise<RunningSystem> {
  const program = join(folder, 'etcd-client')
  await build(program, folder)
  const members = await startMembers(folder, signal)
  try {
    const client = await LoadProcess.start(program, [members.leader], signal)
    return {
      description: `${members.version}; its Go client, one for all goroutines; put of 100 bytes under one of a million keys, linearizable get of one of 1,000`,
      operations: ['commits', 'reads'],
      run: (load) => runLoad(members, client, load),
      stop: async () => {
        await client.stop()
        await members.stop()
      },
    }
  } catch (error) {
    await members.stop()
    throw error
  }
}

async function build(program: string, folder: string): Promise<void> {
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: library,
    GOCACHE: join(folder, 'cache'),
  }
  await promisify(execFile)('go', ['build', '-o', program, source], { env })
}

async function runLoad({ pids }: Members, client: LoadProcess, load: Load): Promise<Measured> {
  let before = 0
  const result = await client.run(load, {
    onWarm: async () => {
      before = await treesCpuSeconds(pids)
    },
  })
  const used = (await treesCpuSeconds(pids)) - before
  const { clientCpu, ...figures } = result
  return {
    ...figures,
    drainSeconds: 0,
    perSecond: result.operations / (result.elapsedMs / 1000),
    serverCpuPer1000: (used / result.operations) * 1000,
    clientCpuPer1000: (clientCpu / result.operations) * 1000,
    backlogBytes: [],
  }
}
