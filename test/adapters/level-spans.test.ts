/** The part of a store that a start reads: what votes rest on, and of the rows beside it little. */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SeededRandom } from '../../sim/world/random.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { checkTables, type CheckProgress } from '../../src/adapters/level-tables.ts'
import type { Put } from '../../src/ports/storage.ts'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { groupPrefix, rowStoreKey, stateKey, votingSpans } from '../../src/store/row-format.ts'

const groups = 200
const random = new SeededRandom('level spans')
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-spans-'))
  await write('few', 20)
  await write('many', 200)
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

function groupAt(n: number): GroupId {
  return groupOfBytes(Buffer.from(`group ${n}`))
}

/** In the way of the applier: rows of some groups with their states, in random order; each state twice. */
async function write(name: string, rowsEach: number): Promise<void> {
  const store = await openLevelStore(join(folder, name), {
    ...{ compresses: false, writeBufferBytes: 256 * 1024 },
  })
  const part = rowsEach / 2
  for (let row = 0; row < rowsEach; row += part) {
    for (let from = 0; from < groups; from += 20) {
      const puts: Put[] = []
      for (let n = from; n < from + 20; n++) {
        const group = groupAt((n * 77) % groups)
        for (let at = row; at < row + part; at++) {
          const key = rowStoreKey(group, Buffer.from(`row ${at}`))
          puts.push({ key, value: Buffer.from(random.bytes(200)) })
        }
        puts.push({
          key: stateKey(groupPrefix(group)),
          value: Buffer.alloc(300, row === 0 ? 0 : 1),
        })
      }
      await store.write(puts)
    }
  }
  await store.close()
  // Once more: what the journal had is in tables now.
  const again = await openLevelStore(join(folder, name), { checkTables: false })
  await again.close()
}

function checkOf(path: string, isWhole = false): Promise<CheckProgress> {
  return checkTables(path, { spans: isWhole ? 'all' : votingSpans })
}

test('DISK-14: a start reads under 3 % of added rows, and a whole check reads all', async () => {
  const [few, many] = [join(folder, 'few'), join(folder, 'many')]
  const wholes = [await checkOf(few, true), await checkOf(many, true)] as const
  expect(wholes[1].bytesRead).toBeGreaterThan(6 * wholes[0].bytesRead)
  const parts = [await checkOf(few), await checkOf(many)] as const
  expect(parts[1].tables).toBe(wholes[1].tables)
  const more = wholes[1].bytesRead - wholes[0].bytesRead
  expect(parts[1].bytesRead - parts[0].bytesRead).toBeLessThan(0.03 * more)
})

test('DISK-14: a flipped bit is found at a start where a state record may stand, and by a scrub anywhere', async () => {
  const path = join(folder, 'damaged')
  await cp(join(folder, 'few'), path, { recursive: true })
  const names = (await readdir(path)).filter((name) => name.endsWith('.ldb'))
  let [found, foundByScrub, missed] = [0, 0, 0]
  for (let tries = 0; tries < 40; tries++) {
    const file = join(path, random.pick(names))
    const whole = await readFile(file)
    const at = random.int(0, whole.length - 1)
    const bytes = Buffer.from(whole)
    bytes[at] = (bytes[at] ?? 0) ^ 1
    // Of a state record its key stands there, or it is what was written last.
    await writeFile(file, bytes)
    const isFound = await checkOf(path).then(...verdicts)
    const isFoundByScrub = await checkOf(path, true).then(...verdicts)
    const isOfState = bytes.subarray(Math.max(0, at - 40), at + 40).includes('sgroup ')
    if (isOfState) expect(isFound).toBe(true)
    expect(isFoundByScrub).toBe(true)
    if (isFound) found += 1
    else missed += 1
    foundByScrub += 1
    await writeFile(file, whole)
  }
  expect([found > 0, missed > 0, foundByScrub]).toEqual([true, true, 40])
})

const verdicts = [() => false, () => true] as const
