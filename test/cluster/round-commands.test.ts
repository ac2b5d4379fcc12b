/**
 * `trilithon compare` and `trilithon scrub` as their users meet them: what the page shows, wrong rows that a round finds, a
 * group without a majority, nodes that are down, and refusals.
 */
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLevelStore } from '../../src/adapters/level-storage.ts'
import { connect } from '../../src/client/connect.ts'
import { nameInState } from '../../src/store/group-names.ts'
import { RowsSum } from '../../src/store/group-hash.ts'
import {
  afterRows,
  allStates,
  decodeStored,
  encodeState,
  encodeStored,
  groupPrefix,
  rowsPrefix,
  type Stored,
} from '../../src/store/row-format.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import {
  eventually,
  patienceMs,
  runProgram,
  startCluster,
  startProgram,
  type ProgramResult,
  type TestCluster,
} from './harness.ts'

const rowKey = 'c1d3a5e7-0000-4000-8000-000000000001'
const cell = { rowKey, column: 'BASE', refKey: 1 }
const limits = 'limits: { compare_again_ms: 50, history_ms: 1000 }'

let cluster: TestCluster
beforeAll(async () => {
  cluster = await startCluster({ extraYaml: limits })
  const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
  const cells = client.cells('trips')
  for (const refKey of [1, 2]) await cells.put({ ...cell, refKey, body: { city: 'Berlin' } })
  await client.close()
})
afterAll(() => cluster?.close())

function run(...words: readonly string[]): Promise<ProgramResult> {
  return runProgram(words, { environment: { TRILITHON_URL: cluster.urls.join(',') } })
}

interface Told {
  readonly ok: boolean
  readonly nodes: readonly (Readonly<Record<string, unknown>> & { readonly id: string })[]
}

async function told(...words: readonly string[]): Promise<Told & { readonly code?: number }> {
  const { stdout, code } = await run(...words, '--json')
  const parsed: Told = JSON.parse(stdout)
  return { ...parsed, ...(code !== undefined && { code }) }
}

function nodeOf({ nodes }: Told, id: string): Readonly<Record<string, unknown>> {
  return nodes.find((one) => one.id === id) ?? {}
}

/** All nodes have counted their groups by then. */
async function untilCompared(): Promise<void> {
  await eventually('a round finds all well', async () => {
    const { code } = await run('compare', 'now')
    return code === 0 || undefined
  })
}

interface Found {
  readonly key: Uint8Array
  readonly row: Stored
  readonly state: Uint8Array
  readonly record: Stored
}

async function findRow(store: OrderedStore): Promise<Found> {
  for await (const records of store.scan(allStates)) {
    for (const { key: state, value } of records) {
      const record = decodeStored(state, value)
      const prefix = groupPrefix(nameInState(state))
      for await (const rows of store.scan({ gte: rowsPrefix(prefix), lt: afterRows(prefix) })) {
        const found = rows.find((one) => Buffer.from(one.value).includes('Berlin'))
        const row = found && decodeStored(found.key, found.value)
        if (found === undefined || typeof row !== 'object' || typeof record !== 'object') continue
        return { key: found.key, row, state, record }
      }
    }
  }
  throw new Error('there is no such row')
}

/** Of a stopped node: a row is gone, or it and the hash beside it are others. */
async function damage(id: string, kind: 'lost' | 'another'): Promise<void> {
  const folder = join(cluster.node(id).dataFolder, 'data')
  const store = await openLevelStore(folder, { compresses: false, checkTables: false })
  try {
    const { key, row, state, record } = await findRow(store)
    if (kind === 'lost') return await store.write([{ key }])
    const payload = Buffer.from(row.payload)
    payload.write('Madrid', payload.indexOf('Berlin'))
    const { stamp, flush = 0, snapshot = 0, hash } = record
    const own = key.subarray(rowsPrefix(groupPrefix(nameInState(state))).length)
    const sum = new RowsSum(hash)
    sum.subtract(own, row.stamp, row.payload)
    sum.add(own, row.stamp, payload)
    const value = encodeState(state, stamp, { flush, snapshot }, record.payload, sum.hash)
    await store.write([
      { key, value: encodeStored(key, row.stamp, payload) },
      { key: state, value },
    ])
  } finally {
    await store.close()
  }
}

async function cityAt(id: string): Promise<unknown> {
  const { url } = cluster.node(id)
  const path = `/v1/datastores/trips/cells/${rowKey}/BASE/1`
  const body: unknown = await (await fetch(`${url}${path}?read=snapshot`)).json()
  return body
}

/** Sizes are other ones each time, and what each node tells of itself. */
function masked(line: string): string {
  return line
    .replaceAll(/\(\d+(?:\.\d)? [KM]?i?B\)/g, 'SIZE')
    .replaceAll(/\d+ groups?/g, 'GROUPS')
    .replaceAll(/ {2,}/g, '  ')
}

test('checking.md shows what the commands print', { timeout: patienceMs }, async () => {
  await untilCompared()
  const url = new URL('../../src/docs/checking.md', import.meta.url)
  const blocks = [...readFileSync(url, 'utf8').matchAll(/```console\n([^]*?)```/g)]
  const steps = blocks.flatMap(([, block = '']) => block.split(/^\$ trilithon /m).slice(1))
  expect(steps).toHaveLength(3)
  for (const step of steps) {
    const [command = '', ...shown] = step.trimEnd().split('\n')
    const { code, stdout, stderr } = await run(...command.split(' '))
    const said = stderr.split('\n').filter((line) => line.startsWith('see '))
    const lines = [...stdout.trimEnd().split('\n'), ...said]
    expect(lines.map(masked), command).toEqual(shown.map(masked))
    expect(code, command).toBe(0)
  }
})

test('status begins no round, and prints the counts since the start of each node', async () => {
  const before = nodeOf(await told('compare', 'status'), 'a')
  const after = await told('compare', 'status')
  expect(after).toMatchObject({ ok: true, code: 0 })
  expect(nodeOf(after, 'a')).toMatchObject({
    ...{ ended: before['ended'], undecidedGroups: [], asideGroups: [], faults: [] },
  })
  const { stdout, code } = await run('scrub', 'status')
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^node +data\/ .*damage in log\/\na /)])
})

test(
  'HEAL-7: scrub now finds a row that is gone, and waits until a peer has mended it',
  { timeout: 2 * patienceMs },
  async () => {
    const node = cluster.node('b')
    await node.stop('SIGTERM')
    await damage('b', 'lost')
    await node.start()
    const { stdout, stderr, code } = await run('scrub', 'now')
    expect([code, stderr]).toEqual([0, expect.stringMatching(/a: data\/ .*; b: .*rows of/)])
    const [, , wrong] = stdout.split('\n').map((line) => line.split(/ {2,}/))
    // The columns: node, data/, log/, rows counted, wrong rows, aside, damage in log/.
    expect(wrong?.[0]).toBe('b')
    expect(wrong?.slice(4)).toEqual(['1', '0', '0'])
    expect(await cityAt('b')).toMatchObject({ body: { city: 'Berlin' } })
  },
)

test(
  'HEAL-8: a group without a majority ends compare now with a fault, until an operator decides',
  { timeout: 3 * patienceMs },
  async () => {
    await cluster.node('c').stop('SIGTERM')
    await cluster.node('b').stop('SIGTERM')
    await damage('b', 'another')
    await cluster.node('b').start()
    const group = await eventually('both nodes know that they differ', async () => {
      const found = await told('compare', 'now')
      expect(found).toMatchObject({ ok: false, code: 4 })
      const names = ['a', 'b'].map((id) => nodeOf(found, id)['undecidedGroups'])
      const [name] = Array.isArray(names[1]) ? names[1] : []
      return JSON.stringify(names[0]) === JSON.stringify(names[1]) && typeof name === 'string'
        ? name
        : undefined
    })
    const shown = await run('compare', 'status')
    expect(shown.stderr).toMatch(/b: 1 group without a majority for any rows: start the nodes/)
    expect(shown.stderr).toContain('error: no answer of c')
    const resolve = (...words: readonly string[]): Promise<ProgramResult> =>
      run('compare', 'resolve', ...words)
    for (const [words, code, text] of [
      [[group, '--from', 'z', '--yes'], 2, 'there is no node "z", only a, b, c'],
      [[group, '--from', 'c', '--yes'], 4, 'start it, or name another'],
      [
        ['6162', '--from', 'a', '--yes'],
        1,
        `is not undecided at a node beside a; these are: ${group}`,
      ],
      [[group, '--from', 'a'], 2, `at b would be replaced by those of a, for good; add --yes`],
      [[group, '--yes'], 2, "required option '--from <NODE>' not specified"],
    ] as const) {
      const refused = await resolve(...words)
      expect([refused.code, refused.stderr]).toEqual([code, expect.stringContaining(text)])
    }
    const done = await resolve(group, '--from', 'a', '--yes')
    expect([done.code, done.stdout]).toEqual([0, 'b takes the rows of a\n'])
    await eventually('the nodes agree', async () => {
      const { nodes } = await told('compare', 'status')
      const [atA, atB] = nodes
      const areWell = [atA, atB].every((one) => one?.['undecided'] === 0 && one['aside'] === 0)
      return areWell || undefined
    })
    expect(await cityAt('b')).toMatchObject({ body: { city: 'Berlin' } })
    await cluster.node('c').start()
    await untilCompared()
    const again = await resolve(group, '--from', 'a', '--yes')
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('no group is')])
  },
)

test(
  'a round goes on after Ctrl-C, begins only with the secret, and is joined by the next call',
  { timeout: patienceMs },
  async () => {
    const secret = 'a secret of sufficient length'
    const file = join(cluster.folder, 'secret')
    await writeFile(file, secret)
    const slow = 'limits: { scrub_bytes_per_second: 100 }'
    const guarded = await startCluster({ ids: ['a'], extraYaml: `secret_file: ${file}\n${slow}` })
    try {
      const environment = { TRILITHON_URL: guarded.urls.join(',') }
      const ask = (...words: readonly string[]): Promise<ProgramResult> =>
        runProgram(words, { environment })
      for (const verb of ['compare', 'scrub']) {
        const { code, stderr } = await ask(verb, 'now')
        expect([code, stderr]).toEqual([1, expect.stringContaining('refused by a: this cluster')])
      }
      const unnamed = await ask('compare', 'resolve', '6162', '--from', 'a')
      expect([unnamed.code, unnamed.stderr]).toEqual([1, expect.stringContaining('--secret-file')])
      const trusted = ['--secret-file', file]
      const { code, stdout } = await ask('compare', 'now', ...trusted)
      expect([code, stdout]).toEqual([0, expect.stringContaining('the nodes have the same rows')])
      const client = await connect({ endpoints: guarded.urls, secret, timeoutMs: patienceMs })
      // A count of its rows takes a minute.
      await client.cells('trips').put({ ...cell, body: 'x'.repeat(6_000) })
      await client.close()
      // A scrub that finds no rows in data/ yet is at its end before the signal: then the next one counts them.
      const told = await eventually('a scrub is under way at the signal', async () => {
        const program = startProgram(['scrub', 'now', ...trusted], { environment })
        await eventually('it tells of its progress', async () => {
          return program.stderr().includes('a: data/') || undefined
        })
        program.child.kill('SIGINT')
        const { code: ended } = await program.exited()
        return ended === 1 ? program.stderr() : undefined
      })
      expect(told).toContain('SIGINT: the scrub goes on at the nodes; see trilithon')
      // A scrub that was at its end just then is followed by one that this call begins, and the next one joins.
      await eventually('a call joins the scrub', async () => {
        const joined = await ask('scrub', 'now', '--no-wait', ...trusted)
        expect(joined.code).toBe(0)
        return joined.stdout === 'a: under way\n' || undefined
      })
    } finally {
      await guarded.close()
    }
  },
)
