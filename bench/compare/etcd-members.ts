/** Three members of etcd on loopback, with a leader, and the key there that is read. */
import { join } from 'node:path'
import { freePorts } from '../../sim/processes/free-ports.ts'
import { key } from './etcd-messages.ts'
import { output, startServer, stopServer, until } from './servers.ts'

const startWaitMs = 20_000
/** At etcd's own 2 GiB it refuses every put after some millions of them, which long runs come to. */
const quotaBytes = 8 * 2 ** 30

export interface Members {
  readonly version: string
  readonly leader: string
  readonly pids: readonly number[]
  /** Of the leader: it rises by one with each put. */
  revision(): Promise<number>
  stop(): Promise<void>
}

export async function startMembers(folder: string, signal: AbortSignal): Promise<Members> {
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
      ...['--logger', 'zap', '--log-level', 'error', '--quota-backend-bytes', `${quotaBytes}`],
    ]),
  )
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => stopServer(child, 'SIGTERM')))
  }
  try {
    const urls = members.map(({ client }) => client)
    const leader = await until(() => findLeader(urls), startWaitMs, signal)
    await fetch(`${leader}/v3/kv/put`, {
      method: 'POST',
      body: JSON.stringify({ key: key.toString('base64'), value: key.toString('base64') }),
    })
    const version = (await output('etcd', ['--version'])).split('\n')[0] ?? ''
    const pids = children.map(({ pid }) => pid ?? 0)
    return { version, leader, pids, revision: () => fetchRevision(leader), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

interface Status {
  readonly leader?: string
  readonly header?: { readonly member_id: string; readonly revision: string }
}

async function fetchStatus(url: string): Promise<Status> {
  const answer = await fetch(`${url}/v3/maintenance/status`, { method: 'POST', body: '{}' })
  const status: unknown = await answer.json()
  if (!isStatus(status)) throw new Error('etcd answered with no status')
  return status
}

function isStatus(status: unknown): status is Status {
  return typeof status === 'object' && status !== null && 'header' in status
}

async function findLeader(urls: readonly string[]): Promise<string> {
  for (const url of urls) {
    const { leader, header } = await fetchStatus(url)
    if (leader !== undefined && leader === header?.member_id) return url
  }
  throw new Error('etcd has elected no leader')
}

async function fetchRevision(url: string): Promise<number> {
  return Number((await fetchStatus(url)).header?.revision)
}
