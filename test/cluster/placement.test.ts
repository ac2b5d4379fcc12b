/** Two real processes, each a replica set in a region of its own: groups are where the application says. */
import { readFile, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineSchema } from '../../schema/define.ts'
import { t } from '../../schema/property.ts'
import { table } from '../../schema/table.ts'
import { connect } from '../../src/client/connect.ts'
import { rootKey } from '../../src/index.ts'
import { patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'

const User = table('User', { region: t.string(), id: t.integer(), name: t.string() })
  .key('region', 'id')
  .root({ placement: { by: 'region' } })
  .globalIndex('UsersByName', ['name'], { shards: 4 })
const Flag = table('Flag', { id: t.integer(), text: t.string() })
  .key('id')
  .root({ placement: { set: 'west' } })
  .globalIndex('FlagsByText', ['text'], { shards: 4 })
const users = defineSchema('Users', [User, Flag])

let cluster: TestCluster
beforeAll(async () => {
  const setOf = (id: string): string => (id === 'a' ? 'east' : 'west')
  const siteOf = (id: string): object => ({ region: id === 'a' ? 'eu' : 'us', zone: `${id}1` })
  cluster = await startCluster({ ids: ['a', 'b'], setOf, siteOf })
})
afterAll(() => cluster?.close())

function where(flags: readonly string[], id = 'a'): ReturnType<typeof runProgram> {
  return runProgram(['groups', 'where', ...flags, '--json', '--url', cluster.node(id).url])
}

test('any node takes groups of all regions, and each group is in the set of its region', async () => {
  const client = await connect({ endpoints: [cluster.node('a').url], timeoutMs: patienceMs })
  try {
    await client.applySchema(users)
    const db = await client.tables(users)
    for (const region of ['eu', 'us']) {
      for (const id of [1, 2, 3]) {
        const key = rootKey(User, { region, id })
        await db.transaction(key, (tx) => tx.put(User, { region, id, name: `${region} ${id}` }))
        const { value } = await db.read(key, 'current', (rows) => rows.get(User, { region, id }))
        expect(value?.name).toBe(`${region} ${id}`)
      }
    }
    await db.transaction(rootKey(Flag, { id: 7 }), (tx) => tx.put(Flag, { id: 7, text: 'x' }))
  } finally {
    await client.close()
  }
  for (const [region, set, id] of [
    ['eu', 'east', 'a'],
    ['us', 'west', 'b'],
  ]) {
    for (const from of ['a', 'b']) {
      const told = await where(
        ['--schema', 'Users', '--key', `{"region":"${region}","id":2}`],
        from,
      )
      expect({ ...told, stdout: JSON.parse(told.stdout) }).toMatchObject({
        code: 0,
        stdout: {
          ...{ place: `region ${region}`, set, region, leader: id },
          nodes: [{ id, url: cluster.node(id ?? '').url, region, zone: `${id}1` }],
        },
      })
    }
  }
  const flag = await where(['--schema', 'Users', '--key', '{"id":7}'])
  expect(JSON.parse(flag.stdout)).toMatchObject({ place: 'set west', set: 'west', leader: 'b' })
  const row = '5f1d7e0c-8a52-4d7c-9a1f-0f2f6f6a1a11'
  const cell: unknown = JSON.parse((await where(['--datastore', 'trips', '--row', row])).stdout)
  expect(cell).not.toHaveProperty('place')
  expect(cell).toMatchObject({ set: expect.stringMatching(/^(east|west)$/) })
})

test('a region without a set is refused in words, to writes and to reads, at each node', async () => {
  for (const id of ['a', 'b']) {
    const client = await connect({ endpoints: [cluster.node(id).url], timeoutMs: patienceMs })
    try {
      const db = await client.tables(users)
      const key = rootKey(User, { region: 'asia', id: 1 })
      const refused = {
        code: 'invalid',
        message: expect.stringContaining(
          'no replica set is in region "asia"; of regions, there are eu, us',
        ),
      }
      const put = db.transaction(key, (tx) => tx.put(User, { region: 'asia', id: 1, name: 'n' }))
      await expect(put).rejects.toMatchObject(refused)
      const read = db.read(key, 'current', (rows) => rows.get(User, { region: 'asia', id: 1 }))
      await expect(read).rejects.toMatchObject(refused)
      const wrong = rootKey(User, { region: 'No region', id: 1 })
      expect(() => db.group(wrong)).toThrow('region "No region" is the name of no region')
    } finally {
      await client.close()
    }
  }
  const told = await where(['--schema', 'Users', '--key', '{"region":"asia","id":2}'])
  expect(told).toMatchObject({ code: 1, stderr: expect.stringContaining('there are eu, us') })
})

test('a set that is away takes its regions with it, and leaves the others and their indexes as they are', async () => {
  const client = await connect({ endpoints: [cluster.node('a').url], timeoutMs: 2_000 })
  try {
    const db = await client.tables(users)
    await cluster.node('b').stop('SIGKILL')
    const eu = { region: 'eu', id: 9 }
    await db.transaction(rootKey(User, eu), (tx) => tx.put(User, { ...eu, name: 'alone' }))
    const us = { region: 'us', id: 9 }
    const lost = db.transaction(rootKey(User, us), (tx) => tx.put(User, { ...us, name: 'lost' }))
    await expect(lost).rejects.toMatchObject({
      code: expect.stringMatching(/^(unavailable|timeout|unknown-outcome)$/),
    })
    await cluster.node('b').start()
    const all = await db.index(Flag, 'FlagsByText', { text: 'x' })
    expect(all.items.map(({ id }) => id)).toEqual([7])
  } finally {
    await client.close()
  }
})

test('nodes list and status tell region and zone, and a node does not start in another region', async () => {
  const { url, configPath } = cluster.node('b')
  const list = await runProgram(['nodes', 'list', '--url', url])
  expect(list.stdout).toMatch(/^node +standing +epoch +alive +region +zone +store$/m)
  expect(list.stdout).toMatch(/^b +voting +1 +yes +us +b1 +[0-9a-f-]{36}$/m)
  const status: unknown = await (await fetch(`${url}/status`)).json()
  expect(status).toMatchObject({ set: 'west', nodes: [{ id: 'b', region: 'us', zone: 'b1' }] })
  await cluster.node('b').stop()
  const yaml = await readFile(configPath, 'utf8')
  await writeFile(configPath, yaml.replace('"region":"us"', '"region":"eu"'))
  const { code, stderr } = await runProgram(['node', '--config', configPath])
  expect(code).toBe(1)
  expect(stderr).toContain(
    'has set west in region us, and the configuration has set west in region eu for the same nodes',
  )
  await writeFile(configPath, yaml)
  await cluster.node('b').start()
})
