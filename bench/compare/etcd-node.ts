/** etcd, asked by a Node.js process as a program in Node.js can ask it: see `etcd-client.ts`. */
import { fileURLToPath } from 'node:url'
import { LoadProcess, type Load } from '../load-process.ts'
import { startMembers, type Members } from './etcd-members.ts'
import { what } from './etcd-messages.ts'
import { findProgram, treesCpuSeconds } from './servers.ts'
import type { Measured, RunningSystem, System } from './system.ts'

const clientPath = fileURLToPath(new URL('./etcd-client.js', import.meta.url))

export const etcdNode: System = {
  name: 'etcdNode',
  async missing() {
    const found = await findProgram('etcd')
    return found === undefined ? 'apt-get install etcd-server' : undefined
  },
  start,
}

async function start(folder: string): Promise<RunningSystem> {
  const members = await startMembers(folder)
  try {
    const client = await LoadProcess.start(clientPath, [members.leader])
    return {
      description: `${members.version}; Node ${process.version}, http2 on one connection to the leader, a stream a call; ${what}`,
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

async function runLoad({ pids }: Members, client: LoadProcess, load: Load): Promise<Measured> {
  let before = 0
  const result = await client.run(load, async () => {
    before = await treesCpuSeconds(pids)
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
