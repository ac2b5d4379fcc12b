/** The notes of a node whose log must not be used: a process may end between any two steps. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { markUnfit, readUnfit, removeSeat, settleSeat, takeSeat } from '../../src/node/seat-note.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'trilithon-seat-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function makeStore(name: string, content: string): Promise<void> {
  await mkdir(join(folder, name))
  await writeFile(join(folder, name, 'file'), content)
}

function contentOf(name: string): Promise<string> {
  return readFile(join(folder, name, 'file'), 'utf8')
}

async function noteMoving(seat: number): Promise<void> {
  await writeFile(join(folder, 'seat.json'), JSON.stringify({ seat, phase: 'moving' }))
}

test('SEAT-2: a node with a seat moves both stores aside, over older ones, and keeps the seat until a new store is made', async () => {
  for (const name of ['log', 'data', 'log.damaged', 'data.damaged']) await makeStore(name, name)
  expect(await settleSeat(folder)).toBeUndefined()
  await takeSeat(folder, 4_097)
  expect((await readdir(folder)).toSorted()).toEqual(['data.damaged', 'log.damaged', 'seat.json'])
  expect([await contentOf('log.damaged'), await contentOf('data.damaged')]).toEqual(['log', 'data'])
  expect(await settleSeat(folder)).toBe(4_097)
  await removeSeat(folder)
  expect(await settleSeat(folder)).toBeUndefined()
})

test.each([
  ['before the first move', ['log', 'data']],
  ['between the moves', ['log.damaged', 'data']],
  ['after both moves', ['log.damaged', 'data.damaged']],
])('SEAT-2: a start after an end %s loses none of the old stores', async (_, names) => {
  for (const name of names) await makeStore(name, name.slice(0, 3))
  await noteMoving(9)
  expect(await settleSeat(folder)).toBe(9)
  expect(await contentOf('log.damaged')).toBe('log')
  expect(await contentOf('data.damaged')).toBe('dat')
  // The new store is made from here on: a later start leaves it in its place.
  for (const name of ['log', 'data']) await makeStore(name, 'new')
  expect(await settleSeat(folder)).toBe(9)
  expect(await contentOf('log')).toBe('new')
  expect(await contentOf('log.damaged')).toBe('log')
})

test.each(['', '{', '[]', '{"seat":0,"phase":"moving"}', '{"seat":5,"phase":"x"}'])(
  'a file %j gives no seat, and moves nothing',
  async (text) => {
    await makeStore('log', 'log')
    await writeFile(join(folder, 'seat.json'), text)
    expect(await settleSeat(folder)).toBeUndefined()
    expect(await contentOf('log')).toBe('log')
  },
)

test('a log that a peer has proven cut says so, and another one in its place does not', async () => {
  await makeStore('log', 'cut')
  expect(await readUnfit(folder)).toBeUndefined()
  await markUnfit(folder, 'stale-disk: a once had flush 9')
  expect(await readUnfit(folder)).toBe('stale-disk: a once had flush 9')
  await rm(join(folder, 'log'), { recursive: true })
  await makeStore('log', 'whole')
  expect(await readUnfit(folder)).toBeUndefined()
})
