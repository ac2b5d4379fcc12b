/** Six real processes in two replica sets: one set gives buckets to the other, while clients write to old groups and begin new ones. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import type { Client } from '../../src/index.ts'
import { applyAccounts, CountedWrites, setOf } from './accounts.ts'
import { patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'

const east = ['a', 'b', 'c']
const west = ['d', 'e', 'f']

let cluster: TestCluster
// For each try of a test: buckets that one has moved are not there any more.
beforeEach(async () => {
  const setOf = (id: string): string => (east.includes(id) ? 'east' : 'west')
  cluster = await startCluster({ ids: [...east, ...west], setOf })
})
afterEach(() => cluster?.close())

/** Groups that are there before. */
const oldCount = 60
/** Between two writes of a client: the machine has other work. */
const thinkMs = 150

function sets(words: readonly string[]): Promise<string> {
  return run(['sets', ...words])
}

async function run(words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runProgram([...words, '--url', cluster.node('a').url])
  if (code !== 0) throw new Error(`exit ${code}: ${stderr}`)
  return stdout
}

test('MOVE-14 MOVE-15: a set gives a quarter of its buckets to another one, and each write of many clients takes effect once', async () => {
  const clients = await Promise.all(
    ['a', 'b', 'd', 'e'].map((id) => {
      return connect({ endpoints: [cluster.node(id).url], follow: false, timeoutMs: patienceMs })
    }),
  )
  const [first] = clients
  if (first === undefined) throw new Error('there are clients')
  const writes = new CountedWrites()
  const write = (client: Client, name: string): Promise<void> => writes.write(client, name)
  const { written } = writes
  try {
    await applyAccounts(first)
    for (let at = 0; at < oldCount; at++) await write(first, `old-${at}`)
    const writing = { isOver: false }
    const writers = clients.map(async (client, nth) => {
      for (let turn = 0; !writing.isOver; turn++) {
        await write(client, `old-${(turn * 7 + nth * 15) % oldCount}`)
        await write(client, `new-${nth}-${turn}`)
        await new Promise((resolve) => setTimeout(resolve, thinkMs))
      }
    })
    await expect(
      sets(['give', '--from', 'east', '--to', 'west', '--buckets', '512']),
    ).rejects.toThrow('run trilithon upgrade finalize first')
    await run(['upgrade', 'finalize'])
    expect(
      await sets(['give', '--from', 'east', '--to', 'west', '--buckets', '512', '--dry-run']),
    ).toMatch(/^would move 512 buckets of set east to set west$/m)
    expect(
      await sets(['give', '--from', 'east', '--to', 'west', '--buckets', '512', '--wait']),
    ).toMatch(/^moved 512 buckets of set east to set west$/m)
    expect(await sets(['list'])).toMatch(/^east +1536 +37\.5 %[^]*^west +2560 +62\.5 %/m)
    for (const client of clients) await write(client, `last-${written.size}`)
    writing.isOver = true
    await Promise.all(writers)
    for (const client of clients) expect(await writes.listWrong(client)).toEqual([])
    // Groups that begin now in these buckets begin in the other set.
    const where = await Promise.all([...written.keys()].map((name) => setOf(first, name)))
    expect(where.filter((set) => set === 'west').length).toBeGreaterThan(written.size / 2)
  } finally {
    await Promise.all(clients.map((client) => client.close()))
  }
}, 240_000)

test('wrong requests for buckets are refused in words', async () => {
  await run(['upgrade', 'finalize'])
  await expect(sets(['give', '--from', 'east', '--to', 'north', '--buckets', '5'])).rejects.toThrow(
    'refused by set east: to: "north" is no other replica set; there are west',
  )
  await expect(sets(['give', '--from', 'west', '--to', 'west', '--buckets', '5'])).rejects.toThrow(
    'is no other replica set',
  )
  await expect(
    sets(['give', '--from', 'east', '--to', 'west', '--buckets', '4000']),
  ).rejects.toThrow('buckets: this replica set has')
  await expect(sets(['give', '--from', 'east', '--to', 'west', '--buckets', '0'])).rejects.toThrow(
    'exit 2',
  )
  for (const [from, to, count, why] of [
    ['east', 'north', 5, 'there is no set north; there are east, west'],
    ['west', 'west', 5, 'set west has its buckets already'],
    ['east', 'west', 4_000, 'set east has 2,048 buckets, which are fewer than 4000'],
  ] as const) {
    const words = ['give', '--from', from, '--to', to, '--buckets', String(count), '--dry-run']
    await expect(sets(words)).rejects.toThrow(why)
  }
  await expect(sets(['stay', '--from', 'south'])).rejects.toThrow('there are east, west')
  await expect(sets(['stay', '--from', 'east'])).rejects.toThrow('No buckets of this replica set')
})
