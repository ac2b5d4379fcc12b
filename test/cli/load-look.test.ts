/** Fields that a command names: found by their own name or by a path, and told when no line has them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Json } from '../../src/cells/body.ts'
import { unfoundSources } from '../../src/cli/load-look.ts'
import { fieldAt, fieldSource, readMembers } from '../../src/cli/row-sources.ts'
import { present } from '../../src/base/assert.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-look-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function unfound(
  name: string,
  bytes: string | Uint8Array,
  places: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<readonly string[]> {
  const path = join(folder, name)
  await writeFile(path, bytes)
  const sources = new Map(places.map((text) => [text, present(fieldSource(text), 'test: a place')]))
  const file = { path, format: name.includes('.csv') ? 'csv' : 'jsonl', blank: null } as const
  const isGzip = name.endsWith('.gz')
  return (await unfoundSources({ ...file, isGzip }, sources, signal)).map(({ text }) => text)
}

const strange: { readonly [name: string]: Json } = JSON.parse('{"__proto__":{"c":5},"a..b":6}')
const fields: { readonly [name: string]: Json } = {
  ...{ 'geo.lat': 1.5, geo: { lat: 2, 'a.b': 3 }, '007': 'x', 7: 'y', list: [[4], { b: null }] },
  ...strange,
}

test.each([
  ['geo.lat', 'geo.lat', 1.5],
  ['geo', 'geo', { lat: 2, 'a.b': 3 }],
  ['007', '007', 'x'],
  ['7', '7', 'y'],
  ['list.0.0', 'list', 4],
  ['list.1.b', 'list', null],
  ['__proto__.c', '__proto__', 5],
  ['a..b', 'a..b', 6],
])('%s is found in field %s', (text, field, value) => {
  const members = present(readMembers(fields), 'test: an object')
  const source = present(fieldSource(text), 'test: a place')
  expect(fieldAt(members, source)).toEqual({ field, value })
})

test.each([
  ...['constructor', 'toString', 'constructor.name', 'geo.constructor', 'list.length', 'list.00'],
  ...['list.0.00', 'list.2', 'geo.a.b', 'geo.lat.0', '0', 'a.', '.a', '', 'list.-1', 'list.1e0'],
  ...['geo.__proto__', 'list.push'],
])('%j is in no field', (text) => {
  const source = fieldSource(text)
  const members = present(readMembers(fields), 'test: an object')
  expect(source === undefined ? undefined : fieldAt(members, source)).toBeUndefined()
})

test('the scan names each field that no line has, even if the other fields come late', async () => {
  const rows = Array.from({ length: 3000 }, (_, i) => `{"id":${i},"a":{"b":null}}`)
  const text = `${rows.join('\n')}\n[1]\nbad\n{"id":1,"late":{"constructor":1}}\n`
  const places = ['id', 'a.b', 'late.constructor', 'a.c', 'constructor', 'lat']
  for (const [name, bytes] of [
    ['a.jsonl', text],
    ['a.jsonl.gz', gzipSync(text)],
  ] as const) {
    expect(await unfound(name, bytes, places)).toEqual(['a.c', 'constructor', 'lat'])
  }
})

test('the header of a CSV names all fields', async () => {
  const text = 'id,geo.lat,007,__proto__\n1,2,3,4\n'
  const places = ['id', 'geo.lat', '007', '__proto__', 'geo', 'id.length', 'id.0', '7']
  expect(await unfound('a.csv', text, places)).toEqual(['geo', 'id.length', 'id.0', '7'])
})

test('without rows nothing is missing, nor behind a damage, nor when told to stop', async () => {
  expect(await unfound('none.jsonl', '', ['a'])).toEqual([])
  expect(await unfound('header.csv', 'id\n', ['a'])).toEqual([])
  expect(await unfound('bad.jsonl', 'x\n5\n', ['a'])).toEqual([])
  const cut = gzipSync(`{"b":1}\n`.repeat(1000)).subarray(0, -9)
  expect(await unfound('cut.jsonl.gz', cut, ['a'])).toEqual([])
  expect(await unfound('stop.jsonl', '{"b":1}\n', ['a'], AbortSignal.abort())).toEqual([])
})
