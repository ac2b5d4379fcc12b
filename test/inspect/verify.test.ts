/** A check of a stopped node's stores finds what is damaged, says where, and changes nothing. */
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { groupOfBytes, type GroupId } from '../../src/base/ids.ts'
import { shardGroup } from '../../src/cells/shard.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { Findings, formatGroupHex, tellDamage } from '../../src/inspect/finding.ts'
import { openStoppedNode } from '../../src/inspect/stopped-node.ts'
import { verify, type Verdict } from '../../src/inspect/verify.ts'
import { flushKey, recordKey } from '../../src/journal/ordered-journal.ts'
import { crc32 } from '../../src/base/bytes.ts'
import { decodeFlush } from '../../src/log/flush.ts'
import { metaName } from '../../src/log/log-meta.ts'
import { memoryName } from '../../src/log/peer-memory.ts'
import { stretchPositions } from '../../src/log/settled.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import {
  afterRows,
  decodeStored,
  encodeState,
  encodeStored,
  groupPrefix,
  markerKey,
  nameKey,
  positionKey,
  rowsPrefix,
  stateKey,
} from '../../src/store/row-format.ts'
import { forgetHash } from '../store/hash-kit.ts'
import { flipBit } from '../store/stores.ts'
import {
  changed,
  copyFolder,
  snapshotFiles,
  remove,
  rowKey,
  runNode,
  makeFolderOfRuns,
} from './node-folder.ts'

const made: string[] = []
let folder = ''
/** The group that is written sixty times. */
const shard: GroupId = shardGroup('trips', shardOf(rowKey))
beforeAll(async () => {
  folder = await makeFolderOfRuns()
  made.push(folder)
})
afterAll(() => Promise.all(made.map(remove)))

async function copied(): Promise<string> {
  const copy = await copyFolder(folder)
  made.push(copy)
  return copy
}

async function checked(path: string): Promise<Verdict> {
  const findings = new Findings()
  const node = await openStoppedNode(path, (store, what) => tellDamage(findings, store, what))
  const nameGroup = (group: GroupId): string => (group === shard ? 'the shard' : 'another group')
  const options = { nameGroup, isOver: () => false, onProgress: () => undefined }
  try {
    return await verify(node, findings, options)
  } finally {
    await node.close()
  }
}

function listTexts({ findings }: Verdict): readonly string[] {
  return findings.map(({ text }) => text)
}

/** A flush of the log, from the folder as it was. */
async function flushAt(path: string, number: number): Promise<Uint8Array> {
  let bytes: Uint8Array | undefined
  await changed(join(path, 'log'), async (store) => {
    bytes = store.getSync(flushKey(number))
  })
  return bytes ?? new Uint8Array()
}

test('the folder of a node that was stopped is sound, and no byte or time of it changes', async () => {
  const before = await snapshotFiles(folder)
  const verdict = await checked(folder)
  expect(listTexts(verdict)).toEqual([])
  expect(verdict).toMatchObject({ node: 'a', cluster: 'test', damages: 0, notes: [] })
  expect(verdict.log.flushes).toBe(verdict.log.last)
  expect(verdict.log.records).toBeGreaterThanOrEqual(240)
  expect(verdict.data.mark).toBeGreaterThan(0)
  expect(verdict.data.rows).toBeGreaterThan(300)
  expect(await snapshotFiles(folder)).toEqual(before)
})

test('a check tells how far it has come, up to all of it, and ends where its caller says', async () => {
  const node = await openStoppedNode(folder, () => undefined)
  const parts: number[] = []
  const options = { nameGroup: String, onProgress: (_: string, part: number) => parts.push(part) }
  await verify(node, new Findings(), { ...options, isOver: () => false })
  expect(parts).toEqual(parts.toSorted((a, b) => a - b))
  expect(parts.at(-1)).toBeGreaterThan(0.5)
  expect(parts.at(-1)).toBeLessThanOrEqual(1)
  await expect(
    verify(node, new Findings(), { ...options, isOver: () => true }),
  ).rejects.toMatchObject({ code: 'closed' })
  await node.close()
})

/** Flips a bit in the middle of the largest file of the kind. Gives its name. */
async function damageFile(path: string, ending: string): Promise<string> {
  const names = (await readdir(path)).filter((name) => name.endsWith(ending))
  const files = await Promise.all(
    names.map(async (name) => ({ name, bytes: await readFile(join(path, name)) })),
  )
  const [largest] = files.toSorted((one, other) => other.bytes.length - one.bytes.length)
  if (largest === undefined) throw new Error(`no file ends with ${ending}`)
  const { name, bytes } = largest
  const at = Math.floor(bytes.length / 3)
  bytes[at] = (bytes[at] ?? 0) ^ 8
  await writeFile(join(path, name), bytes)
  return name
}

test.each([
  ['log', '.ldb', 'a block does not match its checksum'],
  ['data', '.ldb', 'a block does not match its checksum'],
  ['log', '.log', 'a record does not match its checksum, and it is not a torn end'],
  ['data', '.log', 'a record does not match its checksum, and it is not a torn end'],
])(
  'a check names the file and the place of one flipped bit in %s/*%s',
  async (store, ending, what) => {
    const copy = await copied()
    const name = await damageFile(join(copy, store), ending)
    const before = await snapshotFiles(copy)
    const verdict = await checked(copy)
    const [first] = verdict.findings
    expect(first?.store).toBe(store)
    expect(first?.text).toMatch(new RegExp(`^${store}/${name} at byte \\d+: ${what}$`))
    // The check names each place once, though two passes meet it.
    expect(new Set(listTexts(verdict)).size).toBe(verdict.damages)
    expect(await snapshotFiles(copy)).toEqual(before)
  },
)

/** Values stand at a flush's end. Which flushes have some depends on how fast the disk was. */
function flushWithValue(log: OrderedStore): number {
  const hasValue = (number: number): boolean =>
    decodeFlush(log.getSync(flushKey(number)) ?? Buffer.of())?.records.at(-1)?.piece !== undefined
  const found = [30, 31, 32, 33, 34, 35, 29, 28, 27, 26, 25].find(hasValue)
  if (found === undefined) throw new Error('none of these flushes ends with a value')
  return found
}

test.each<[string, (log: OrderedStore) => Promise<void>, readonly (string | RegExp)[]]>([
  [
    'a flipped bit in a value',
    (log) => flipBit(log, flushKey(flushWithValue(log)), -1),
    [/^the value of .* at position \d+, record \d+ of flush \d+, does not match its checksum$/],
  ],
  [
    'a flipped bit in a header',
    (log) => flipBit(log, flushKey(30), 40),
    ['the header of flush 30 is damaged'],
  ],
  ['a missing flush', (log) => log.write([{ key: flushKey(30) }]), ['flush 30 is missing']],
  [
    'missing flushes',
    (log) => log.write([{ key: flushKey(30) }, { key: flushKey(31) }]),
    ['flushes 30 to 31 are missing'],
  ],
  [
    'a flush in the place of another',
    (log) => log.write([{ key: flushKey(30), value: log.getSync(flushKey(29)) ?? Buffer.of() }]),
    ['flush 29 stands in the place of flush 30'],
  ],
  [
    'a damaged identity',
    (log) => flipBit(log, recordKey(metaName), 9),
    [
      'the record of its identity in the log is damaged',
      'the two copies of the record of its identity in the log differ',
    ],
  ],
  [
    'a damaged memory of peers',
    (log) => flipBit(log, recordKey(memoryName), 5),
    ['the memory of peers in the log is damaged, or was lost'],
  ],
])('a check finds %s in the log', async (_, damage, words) => {
  const copy = await copied()
  await changed(join(copy, 'log'), damage)
  const texts = listTexts(await checked(copy))
  expect(texts).toHaveLength(words.length)
  for (const [place, one] of words.entries()) expect(texts[place]).toMatch(one)
})

test('LOG-6: a check finds a log that ends before the flushes that the data store has taken in', async () => {
  const copy = await copied()
  const { log, data } = await checked(copy)
  const mark = data.mark ?? 0
  await changed(join(copy, 'log'), async (store) => {
    const gone = Array.from({ length: log.last - mark + 1 }, (_, at) => mark + at)
    await store.write(gone.map((number) => ({ key: flushKey(number) })))
  })
  const { findings } = await checked(copy)
  expect(findings[0]).toEqual({
    ...{ store: 'log', flush: mark },
    text: `data/ has taken in flush ${mark}, and the log has flushes 1 to ${mark - 1}`,
  })
  expect(findings[1]?.text).toMatch(/names flush \d+, and the log ends at flush \d+$/)
})

test('LOG-6: a check finds a log of another history than the data store has taken in', async () => {
  const copy = await copied()
  const mark = (await checked(copy)).data.mark ?? 0
  const crc = decodeFlush(await flushAt(copy, mark))?.crc
  await changed(join(copy, 'data'), async (store) => {
    const key = nameKey('log/mark')
    const value = Buffer.from(store.getSync(key) ?? [])
    const at = value.indexOf(
      Buffer.from([crc ?? 0].flatMap((one) => [24, 16, 8, 0].map((bits) => (one >>> bits) & 255))),
    )
    value[at] = (value[at] ?? 0) ^ 1
    await store.write([{ key, value: encodeStored(key, 0, value.subarray(15)) }])
  })
  expect(listTexts(await checked(copy))).toEqual([
    `flush ${mark} in the log is another one than data/ has taken in`,
  ])
})

/** The value of a key after the first of another two runs, put back after the second. */
async function withOlder(key: Uint8Array): Promise<string> {
  const copy = await copied()
  let older: Uint8Array | undefined
  await changed(join(copy, 'data'), async (store) => {
    older = store.getSync(key)
  })
  await runNode(copy, async (client) => {
    for (let refKey = 60; refKey < 64; refKey++) {
      await client.cells('trips').put({ rowKey, column: 'BASE', refKey, body: {} })
    }
  })
  await changed(join(copy, 'data'), (store) =>
    store.write([{ key, ...(older !== undefined && { value: older }) }]),
  )
  return copy
}

test('LOG-6, DISK-14: a check finds an older state record in the place of the newest', async () => {
  const copy = await withOlder(stateKey(groupPrefix(shard)))
  const { findings } = await checked(copy)
  const texts = findings.map(({ text }) => text)
  // The node may have closed a position by itself before the first row.
  const position = /state record of position (6[01]):/.exec(texts.join('\n'))?.[1]
  expect(position).toBeDefined()
  const last = Number(position) + 4
  const taken = [last - 1, last].map((at) => {
    return `the state record of the shard is of position ${position}, and data/ has taken in position ${at}: an older record stands in its place`
  })
  expect(texts).toContain(
    `a row of the shard is newer than its state record of position ${position}: an older record stands in its place`,
  )
  expect(texts.filter((text) => taken.includes(text))).toHaveLength(1)
  expect(new Set(findings.map(({ group }) => group))).toEqual(new Set([formatGroupHex(shard)]))
})

const rowsDiffer =
  'the rows of the shard in data/ are not those that its state record counts: a row is missing, or another one stands in its place'

/** Keys of rows of the shard, in order. */
async function rowsOf(path: string): Promise<readonly Uint8Array[]> {
  const keys: Uint8Array[] = []
  const prefix = groupPrefix(shard)
  const span = { gte: rowsPrefix(prefix), lt: afterRows(prefix) }
  await changed(join(path, 'data'), async (store) => {
    for await (const rows of store.scan(span)) keys.push(...rows.map(({ key }) => key))
  })
  return keys
}

test('HASH-1: a check counts the rows of a group, and finds a row that is missing, and an older one in its place', async () => {
  const missing = await copied()
  const keys = await rowsOf(missing)
  expect(keys.length).toBeGreaterThan(60)
  const [first = new Uint8Array()] = keys
  await changed(join(missing, 'data'), (store) => store.write([{ key: first }]))
  const { findings } = await checked(missing)
  expect(findings).toEqual([{ store: 'data', text: rowsDiffer, group: formatGroupHex(shard) }])

  // A sound row of an earlier entry, in the place of the last one.
  const older = await copied()
  const last = keys.at(-1) ?? new Uint8Array()
  await changed(join(older, 'data'), async (store) => {
    const stored = decodeStored(last, store.getSync(last) ?? new Uint8Array())
    if (typeof stored !== 'object') throw new Error('a row')
    const value = encodeStored(last, stored.stamp - 1, stored.payload)
    await store.write([{ key: last, value }])
  })
  expect(listTexts(await checked(older))).toEqual([rowsDiffer])
})

test('HASH-1: a check finds that all rows of a group are missing, and nothing where no hash is known', async () => {
  const copy = await copied()
  const keys = await rowsOf(copy)
  await changed(join(copy, 'data'), (store) => store.write(keys.map((key) => ({ key }))))
  expect(listTexts(await checked(copy))).toEqual([rowsDiffer])
  await changed(join(copy, 'data'), (store) => forgetHash(store, shard))
  expect(listTexts(await checked(copy))).toEqual([])
})

test('HASH-1: a check tells of a row that it cannot read, and not of the count as well', async () => {
  const copy = await copied()
  const [first = new Uint8Array()] = await rowsOf(copy)
  await changed(join(copy, 'data'), (store) => flipBit(store, first, -1))
  expect(listTexts(await checked(copy))).toEqual([
    'a row of the shard in data/ does not match its checksum',
  ])
})

test('LOG-7: a check finds a state record that knows less of the log than the mark says', async () => {
  const key = stateKey(groupPrefix(shard))
  const gone = await copied()
  await changed(join(gone, 'data'), (store) => store.write([{ key }]))
  expect(listTexts(await checked(gone))).toEqual(
    expect.arrayContaining([
      expect.stringMatching(
        /^data\/ has taken in flush \d+, which names the shard, and has no state record of it that can be read$/,
      ),
    ]),
  )
  const old = await copied()
  await changed(join(old, 'data'), async (store) => {
    const stored = decodeStored(key, store.getSync(key) ?? new Uint8Array())
    if (typeof stored !== 'object') throw new Error('a state record')
    await store.write([
      { key, value: encodeState(key, stored.stamp, { flush: 1, snapshot: 0 }, stored.payload) },
    ])
  })
  expect(listTexts(await checked(old))).toEqual([
    expect.stringMatching(
      /^the state record of the shard names flush 1 as the last one, and flush \d+ names it: an older record stands in its place$/,
    ),
  ])
})

test('LOG-15: a check finds a flush that does not lead to the one before of a group', async () => {
  const copy = await copied()
  const { log } = await checked(copy)
  // The flush that names the shard last, anew, with another way back.
  const found = await lastFlushOf(copy, shard, log.last)
  await changed(join(copy, 'log'), async (store) => {
    await store.write([{ key: flushKey(found.number), value: withPrevious(found, 1) }])
  })
  expect(listTexts(await checked(copy))).toEqual(
    expect.arrayContaining([
      expect.stringMatching(
        /^flush \d+ names flush 1 as the one before it of the shard, and flush \d+ is$/,
      ),
    ]),
  )
})

async function lastFlushOf(
  path: string,
  group: GroupId,
  last: number,
): Promise<{ readonly number: number; readonly bytes: Uint8Array; readonly previous: number }> {
  for (let number = last; number > 0; number--) {
    const bytes = await flushAt(path, number)
    const named = decodeFlush(bytes)?.groups.find((one) => one.group === group)
    if (named?.previous !== undefined) return { number, bytes, previous: named.previous }
  }
  throw new Error('no flush names it')
}

/** The flush with another one named before it, under a checksum that matches. */
function withPrevious(
  { bytes, previous }: { readonly bytes: Uint8Array; readonly previous: number },
  other: number,
): Buffer {
  const flush = Buffer.from(bytes)
  const named = Buffer.alloc(8)
  named.writeBigUInt64BE(BigInt(previous))
  const at = flush.indexOf(named, 37)
  flush.writeBigUInt64BE(BigInt(other), at)
  const crcAt = flush.readUInt32BE(33) - 4
  flush.writeUInt32BE(crc32(flush.subarray(0, crcAt)), crcAt)
  return flush
}

test('a check finds rows that do not match their checksums, or are of no kind', async () => {
  const copy = await copied()
  const state = stateKey(groupPrefix(groupOfBytes(Buffer.from('nobody'))))
  await changed(join(copy, 'data'), async (store) => {
    await flipBit(store, positionKey(shard, stretchPositions), -1)
    await store.write([
      { key: Buffer.from('zebra'), value: Buffer.from('what') },
      { key: state, value: encodeStored(state, 4, Buffer.from('no state')) },
      { key: markerKey(0) },
    ])
  })
  expect(listTexts(await checked(copy)).toSorted()).toEqual(
    [
      'a row in data/ has a key of no known kind, 7a65627261',
      "the log's row of positions of the shard in data/ does not match its checksum",
      'the state record of another group in data/ is of a format that this version does not know',
    ].toSorted(),
  )
  await changed(join(copy, 'data'), (store) => store.write([{ key: markerKey(2) }]))
  expect(listTexts(await checked(copy))).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^batch 2 of \d+ in data\/ is missing, or the marker that shows it$/),
    ]),
  )
})

test('a check reports that data/ is missing, or cannot be read at all', async () => {
  const copy = await copied()
  await rename(join(copy, 'data'), join(copy, 'data.damaged'))
  expect(await checked(copy)).toMatchObject({
    ...{ damages: 0, data: { rows: 0 } },
    notes: [
      'data.damaged/ holds what an earlier start found damaged',
      'there is no data/: the next start makes it out of the log',
    ],
  })
  await rename(join(copy, 'data.damaged'), join(copy, 'data'))
  await writeFile(join(copy, 'data', 'CURRENT'), 'MANIFEST-nonsense\n')
  expect(listTexts(await checked(copy))).toEqual(['data/CURRENT at byte 0: it names no manifest'])
})
