/**
 * A Node.js process that asks etcd: one connection to the leader, a stream a call, as gRPC libraries do
 * it, and nothing of what they do besides. Run with the leader's URL; talks as `load-client.ts` does.
 */
import { once } from 'node:events'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import { createInterface } from 'node:readline'
import { runLoops } from '../load.ts'
import { loadOf, say } from '../load-messages.ts'
import type { Load } from '../load-process.ts'
import { messages, paths } from './etcd-messages.ts'

const [leader = ''] = process.argv.slice(2)
const session = connect(leader)
await once(session, 'remoteSettings')

function ask(operation: Load['operation']): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': paths[operation],
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    let status: unknown
    stream.on('trailers', (trailers: IncomingHttpHeaders) => {
      status = trailers['grpc-status']
    })
    stream.on('error', reject)
    stream.on('close', () => {
      if (status === '0') resolve()
      else reject(new Error(`etcd answered with status ${String(status)}`))
    })
    stream.resume()
    stream.end(messages[operation])
  })
}

say({ kind: 'ready' })
for await (const line of createInterface({ input: process.stdin })) {
  const { clients, seconds, warmUpSeconds, operation } = loadOf(line)
  await runLoops(clients, warmUpSeconds, () => ask(operation))
  say({ kind: 'warm' })
  say({ kind: 'result', ...(await runLoops(clients, seconds, () => ask(operation))) })
}
session.close()
