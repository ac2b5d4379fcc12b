import { mkdtempSync, rmSync } from 'node:fs'
import { openLevelStore } from '/work/main/src/replica/zz-level-fixed.ts'
import { systemClock } from '/work/main/src/adapters/system-clock.ts'
import { systemRandom } from '/work/main/src/adapters/system-random.ts'
import { clusterId, groupOfBytes, nodeId } from '/work/main/src/base/ids.ts'
import { silentTrace } from '/work/main/src/ports/trace.ts'
import { LogStore } from '/work/main/src/replica/log-store.ts'
import { encodeFlush } from '/work/main/src/replica/flush.ts'
const dir = mkdtempSync(process.env.DIR ?? '/tmp/fbench/log-')
const store = await openLevelStore(dir)
const opts = { node: nodeId('n1'), cluster: clusterId('c'), random: systemRandom, clock: systemClock, trace: silentTrace, flushBytesMax: 16 << 20 }
const log = await LogStore.open(store, opts)
const groups = Array.from({ length: 4096 }, (_, i) => groupOfBytes(Buffer.from(`\x20shard-${i}\0\x01`)))
const pos = new Array(4096).fill(0)
const value = Buffer.alloc(200, 7)
const nodes = ['n1', 'n2', 'n3'].map(nodeId)
let g = 0
function one(flushes: number): Promise<void> {
  return new Promise((resolve) => {
    let left = flushes
    const batch = () => {
      if (left-- === 0) return resolve()
      let n = 256
      for (let i = 0; i < 256; i++) {
        g = (g + 1) % 4096
        const record = { kind: 'accept', group: groups[g]!, position: ++pos[g], ballot: { round: 0, node: nodes[g % 3]!, incarnation: 1 }, value } as const
        log.append([record], () => { if (--n === 0) batch() })
      }
    }
    batch()
  })
}
await one(200)
for (let r = 0; r < 3; r++) {
  const t = performance.now(), c = process.cpuUsage()
  await one(1000)
  const ms = performance.now() - t, u = process.cpuUsage(c)
  console.log(`${(256_000 / ms * 1000).toFixed(0)} entries/s, ${(ms / 1000).toFixed(2)} ms a flush, cpu µs/entry all threads ${((u.user + u.system) / 256000).toFixed(2)}`)
}
// CPU of our own part, without LevelDB
const null_ = { getSync: () => undefined, write: () => Promise.resolve(), async *scan() {}, close: async () => {} }
const log2 = await LogStore.open(null_ as never, opts)
{
  pos.fill(0)
  const run = (flushes: number) => new Promise<void>((resolve) => {
    let left = flushes
    const batch = () => {
      if (left-- === 0) return resolve()
      let n = 256
      for (let i = 0; i < 256; i++) {
        g = (g + 1) % 4096
        log2.append([{ kind: 'accept', group: groups[g]!, position: ++pos[g], ballot: { round: 0, node: nodes[g % 3]!, incarnation: 1 }, value }], () => { if (--n === 0) batch() })
      }
    }
    batch()
  })
  await run(500)
  const c = process.cpuUsage()
  await run(2000)
  const u = process.cpuUsage(c)
  console.log(`own part: ${((u.user + u.system) / 512000).toFixed(2)} µs/entry`)
  const m = process.memoryUsage()
  console.log('heap MB', (m.heapUsed / 1e6).toFixed(0))
}
// reads and reopen
{
  const t = performance.now()
  let sum = 0
  for (let i = 0; i < 20000; i++) { const v = log.value(groups[(i * 7) % 4096]!, 1 + (i % 40)); if (v instanceof Uint8Array) sum += v.length }
  console.log(`random reads: ${(20000 / (performance.now() - t) * 1000).toFixed(0)}/s`, sum)
  const t1 = performance.now()
  for (let i = 0; i < 20000; i++) { const v = log.value(groups[100 + i % 200]!, 1 + Math.floor(i / 200) % 100); if (v instanceof Uint8Array) sum += v.length }
  console.log(`neighbouring reads: ${(20000 / (performance.now() - t1) * 1000).toFixed(0)}/s`)
  await log.stop(); await store.close()
  const again = await openLevelStore(dir)
  const t2 = performance.now()
  const log3 = await LogStore.open(again, opts)
  console.log(`open of ${log3.durableFlush} flushes, ${log3.durableFlush * 256} entries: ${(performance.now() - t2).toFixed(0)} ms`)
  await again.close()
}
rmSync(dir, { recursive: true })
