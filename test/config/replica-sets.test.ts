/** A data folder stays with the nodes it was first used with; its refusal says what can be done. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { nodeId, type NodeId } from '../../src/base/ids.ts'
import { keepReplicaSets } from '../../src/config/replica-sets.ts'

function sets(text: string): readonly (readonly NodeId[])[] {
  return text.split(' | ').map((set) => set.split(' ').map((id) => nodeId(id)))
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
  expect(kept).toBe(first.replaceAll(' | ', '\n'))
  await keepReplicaSets(folder, sets(first))
})
