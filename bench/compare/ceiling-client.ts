/** The client process of the bare ceiling: as `../load-client.ts`, with one frame a turn and nothing else. */
import { randomBytes } from 'node:crypto'
import { pack, unpack } from 'msgpackr'
import { WebSocket } from 'ws'
import { runLoops } from '../load.ts'
import { loads, say } from '../load-messages.ts'
import { bytesValues } from '../values.ts'

const [port = '0', valueBytes = '100'] = process.argv.slice(2)
const link = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
await new Promise<void>((resolve, reject) => link.once('open', resolve).once('error', reject))
const nextValue = bytesValues(Number(valueBytes))
const keyBytes = 40
const waiting = new Map<number, () => void>()
let ids = 0
let puts: (readonly [number, Uint8Array, Uint8Array])[] = []

link.on('message', (bytes: Buffer) => {
  const answered: unknown = unpack(bytes)
  if (!Array.isArray(answered)) throw new Error('ceiling: answers are an array')
  for (const id of answered) {
    waiting.get(Number(id))?.()
    waiting.delete(Number(id))
  }
})

function put(): Promise<void> {
  return new Promise((resolve) => {
    const id = ++ids
    waiting.set(id, resolve)
    if (puts.length === 0) setImmediate(flush)
    puts.push([id, randomBytes(keyBytes), nextValue()])
  })
}

function flush(): void {
  link.send(pack(puts))
  puts = []
}

say({ kind: 'ready' })
for await (const { clients, seconds, warmUpSeconds } of loads()) {
  await runLoops(clients, warmUpSeconds, put)
  say({ kind: 'warm' })
  say({ kind: 'result', ...(await runLoops(clients, seconds, put)) })
}
link.close()
