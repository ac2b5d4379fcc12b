import { deflateRawSync } from 'node:zlib'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { pack } from '../../src/base/pack.ts'
import {
  checkBody,
  packBody,
  packedBodyBytesMax,
  unpackBody,
  type Json,
} from '../../src/cells/body.ts'
import {
  deflatedBodyBytesMin,
  packedBytes,
  storedBytes,
  unpackedBytes,
} from '../../src/cells/body-bytes.ts'
import { batchBytesMax } from '../../src/cells/limits.ts'
import { operationProblem } from '../../src/cells/operation-check.ts'
import { shardOf } from '../../src/client/row-shard.ts'
import { createBench, rowKey, settled } from './kit.ts'

function bodyOf(value: Json): { readonly bytes: Uint8Array; readonly hash: Uint8Array } {
  const packed = packBody(value)
  if (packed.kind === 'problem') throw new Error(packed.problem.message)
  return packed.body
}

/** Stored bytes that say of themselves what is given. */
function claimed(length: number, deflated: Uint8Array, format = 1): Uint8Array {
  const header = Buffer.from([0xc1, format, 0, 0, 0, 0])
  header.writeUInt32BE(length, 2)
  return Buffer.concat([header, deflated])
}

const row = { city: 'Berlin', kilometres: 4.2, tags: ['a', 'b'] }
const many: Json = Array.from({ length: 100 }, () => row)

test('CELL-6: large bodies are deflated, small and noisy ones are not, and all come back', () => {
  const large = bodyOf(many)
  expect(large.bytes.length).toBeLessThan(pack(many).length / 4)
  expect(unpackedBytes(large.bytes)).toBe(pack(many).length)
  expect(unpackBody(large.bytes)).toStrictEqual(many)
  const small = bodyOf(row)
  expect([small.bytes, unpackedBytes(small.bytes)]).toStrictEqual([pack(row), pack(row).length])
  const noise = Array.from({ length: 300 }, (_, i) => Math.sin(i))
  expect(bodyOf(noise).bytes).toStrictEqual(pack(noise))
  expect(bodyOf('x'.repeat(deflatedBodyBytesMin - 4)).bytes[0]).not.toBe(0xc1)
  expect(bodyOf('x'.repeat(deflatedBodyBytesMin)).bytes[0]).toBe(0xc1)
})

test('CELL-6: any body comes back as it was given, and has one hash however it is stored', () => {
  const texts = fc.array(fc.string({ unit: 'grapheme', maxLength: 40 }), { maxLength: 120 })
  fc.assert(
    fc.property(texts, fc.boolean(), (list, isTwice) => {
      const value = isTwice ? [...list, ...list, { __proto__: null, list }] : list
      const { bytes, hash } = bodyOf(value)
      expect(JSON.stringify(unpackBody(bytes))).toBe(JSON.stringify(value))
      const plain = checkBody(pack(value))
      const same = plain.kind === 'ok' && checkBody(bytes)
      expect(same).toStrictEqual({ kind: 'ok', body: { bytes, hash } })
      expect(plain.kind === 'ok' && Buffer.compare(plain.body.hash, hash)).toBe(0)
    }),
    { seed: 3, numRuns: 200 },
  )
})

test('bodies that were stored before any was deflated still read', () => {
  for (const value of [many, row, 'x'.repeat(5_000), null, [], 0]) {
    expect(unpackBody(pack(value))).toStrictEqual(value)
    expect(packedBytes(pack(value), packedBodyBytesMax)).toStrictEqual(pack(value))
  }
})

test('CELL-6: unpacking refuses a body that is damaged, of another format or of a false length', () => {
  const bytes = Buffer.from(bodyOf(many).bytes)
  const { length } = pack(many)
  const deflated = deflateRawSync(pack(many))
  const broken = [
    bytes.subarray(0, 5),
    bytes.subarray(0, bytes.length - 1),
    claimed(length + 1, deflated),
    claimed(length - 1, deflated),
    claimed(length, deflated, 2),
    claimed(length, Buffer.alloc(50, 0xff)),
    // Packed twice: the result is no MessagePack.
    storedBytes(Buffer.concat([bytes, Buffer.alloc(2_000)])),
    // Larger than what it holds: the rest would be hidden.
    claimed(3, Buffer.concat([deflateRawSync(pack('xy')), Buffer.alloc(100)])),
  ]
  for (const one of broken) {
    expect(unpackBody(one)).toBeUndefined()
    expect(checkBody(one)).toMatchObject({ kind: 'problem', problem: { code: 'invalid' } })
  }
})

test('CELL-6: a bomb is refused by its claimed size and unpacked no further', () => {
  const zeros = deflateRawSync(Buffer.alloc(200 * 1024 * 1024))
  expect(checkBody(claimed(200 * 1024 * 1024, zeros))).toMatchObject({
    ...{ kind: 'problem', problem: { code: 'too-large', detail: { limit: 'cellBytesMax' } } },
  })
  const before = process.memoryUsage().arrayBuffers
  expect(checkBody(claimed(1_000_000, zeros))).toMatchObject({ problem: { code: 'invalid' } })
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000)
})

test('CELL-6: the unpacked size bounds batches and answers', async () => {
  const text = 'x'.repeat(1024 * 1024 - 2)
  const body = bodyOf(text).bytes
  expect(body.length).toBeLessThan(10_000)
  const items = Array.from({ length: 9 }, (_, refKey) => {
    return { rowKey: rowKey(1), column: 'BASE', refKey, body }
  })
  expect(operationProblem({ kind: 'put', datastore: 'trips', items })).toMatchObject({
    ...{ code: 'too-large', detail: { limit: 'batchBytesMax', limitValue: batchBytesMax } },
  })
  const { world, node } = createBench()
  const { store } = node('n1')
  const options = { timeoutMs: 1_000 }
  for (const item of items) {
    const put = { kind: 'put', datastore: 'trips', items: [item] } as const
    await settled(world, store.execute(put, options))
  }
  const read = { level: 'current', atLeast: [] } as const
  const of = { datastore: 'trips', read }
  const found = await settled(world, store.execute({ kind: 'get', ...of, items }, options))
  const kinds = found.answer.kind === 'get' ? found.answer.items.map(({ kind }) => kind) : []
  // Four of them are a few bytes more than an answer's four mebibytes.
  expect(kinds.map((kind) => kind === 'ok')).toEqual(items.map((_, i) => i < 3))
  const shard = shardOf(rowKey(1))
  const place = { kind: 'after', shard, addedId: 0 } as const
  const log = { kind: 'log', ...of, items: [place], limit: 9, waitMs: 0 } as const
  const page = await settled(world, store.execute(log, options))
  expect(page.answer).toMatchObject({ items: [{ value: { next: 3 } }] })
})
