/** A data folder stays with the nodes, and the sets and regions, it was first used with; its refusal says what can be done. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { keptText, readKept, type KeptSet } from '../../src/config/kept-sets.ts'
import { keepReplicaSets } from '../../src/config/replica-sets.ts'

/** `a b | w@eu: d e`: sets without a name have their numbers. */
function sets(text: string): readonly KeptSet[] {
  const read = readKept(text.replaceAll(' | ', '\n'))
  return read.map((set, number) => ({ name: `s${number}`, ...set }))
}

async function folderOf(first: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-sets-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await keepReplicaSets(folder, sets(first))
  return folder
}

test.each([
  ['a b c', 'c b a', 'name them in the order of the folder'],
  ['a b c | d e f', 'd e f | a b c', 'name them in the order of the folder'],
  ['a b c', 'a b d', 'name those, or give the node its own folder'],
  ['a b c', 'a b', 'name those, or give the node its own folder'],
  ['a b c | d e f', 'a b d | c e f', 'name those, or give the node its own folder'],
])('a folder of %s is refused to %s: %s', async (first, later, said) => {
  const folder = await folderOf(first)
  await expect(keepReplicaSets(folder, sets(later))).rejects.toMatchObject({
    code: 'invalid',
    message: `the data folder ${folder} is of nodes ${first}, and the configuration names ${later}; these are the nodes that the replica sets began with, and they stay so: ${said}; a node that comes later has joins: true, and trilithon nodes add makes it a member`,
  })
  const kept = await readFile(join(folder, 'replica-sets'), 'utf8')
  expect(kept).toBe(keptText(sets(first)))
  await keepReplicaSets(folder, sets(first))
})

test('the folder keeps a line for each set: its name, its region if it has one, its first nodes', async () => {
  const folder = await folderOf('main: a b c | east@eu: d e')
  const kept = await readFile(join(folder, 'replica-sets'), 'utf8')
  expect(kept).toBe('main: a b c\neast@eu: d e')
})

test('a folder of before names and regions is refused to other nodes, and gets names and regions at its first start', async () => {
  const folder = await folderOf('a b c')
  const path = join(folder, 'replica-sets')
  await writeFile(path, 'a b c\nd e')
  await expect(keepReplicaSets(folder, sets('main: a b | east: d e'))).rejects.toThrow(
    'they stay so',
  )
  expect(await readFile(path, 'utf8')).toBe('a b c\nd e')
  await keepReplicaSets(folder, sets('main: a b c | east@eu: d e'))
  expect(await readFile(path, 'utf8')).toBe('main: a b c\neast@eu: d e')
})

test.each([
  [
    'w: a | e: b',
    'x: a | e: b',
    'has set w in no region, and the configuration has set x in no region',
  ],
  [
    'w@us: a | e: b',
    'w@eu: a | e: b',
    'has set w in region us, and the configuration has set w in region eu',
  ],
  [
    'w@us: a | e: b',
    'w: a | e: b',
    'has set w in region us, and the configuration has set w in no region',
  ],
  [
    'w@us: a | e: b',
    'w@us: a | e@us: b',
    'has set e in no region, and the configuration has set e in region us',
  ],
])(
  'MOVE-8: a folder of %s does not start under %s, where groups would be in another set',
  async (first, later, said) => {
    const folder = await folderOf(first)
    await expect(keepReplicaSets(folder, sets(later))).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(
        `${said} for the same nodes; names and regions of replica sets say where groups are`,
      ),
    })
    await keepReplicaSets(folder, sets(first))
  },
)

test.each([
  ['w: a | e: b', 'w@us: a | e@us: b'],
  ['w@us: a | e: b', 'w@us: a | e@eu: b'],
  ['main@us: a b', 'all@eu: a b'],
])(
  'a folder of %s starts under %s: no group has its place there yet, or there is one set',
  async (first, later) => {
    const folder = await folderOf(first)
    await keepReplicaSets(folder, sets(later))
    expect(await readFile(join(folder, 'replica-sets'), 'utf8')).toBe(keptText(sets(later)))
  },
)
