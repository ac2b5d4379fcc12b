/**
 * Indexes in real processes, by command line, HTTP and client library. With the real trips, where they
 * are present: an index by pick-up zone and time, filled while trips are loaded, answers what a plain
 * look through the file does. The first tests go side by side: each waits for long until all writers know its index.
 */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect } from '../../src/client/connect.ts'
import { eventually, patienceMs, runProgram, startCluster, type TestCluster } from './harness.ts'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..')
const folder = join(process.env['TRILITHON_DATA'] ?? join(root, '../shared/data'), 'trips')
const file = join(folder, 'nyc_yellow_2018-10_2019-09.csv.gz')
const isPresent = existsSync(file)

let cluster: TestCluster
beforeAll(async () => {
  // One node: a build writes to all shards, and several nodes build in other tests.
  cluster = await startCluster({ ids: ['a'] })
})
afterAll(() => cluster.close())

async function trilithon(
  ...args: readonly string[]
): Promise<{ code: unknown; stdout: string; stderr: string }> {
  // A build makes thousands of calls and ends with the first that is late.
  const time = args.includes('--timeout') ? [] : ['--timeout', '60']
  const flags = ['--url', cluster.urls.join(','), ...time]
  return runProgram([...args, ...flags], { timeoutMs: 240_000 })
}

async function save(name: string, text: string): Promise<string> {
  const path = join(cluster.folder, name)
  await writeFile(path, text)
  return path
}

const yaml = `
table: zone_index          # the name of the index
datastore: trips
column_defs:
  - column_key: BASE
    fields:
      - { field: zone, type: integer }
      - { field: at, type: datetime }
`

test.concurrent(
  'an index is declared from YAML, filled, asked over HTTP, and compared',
  async () => {
    const wrong = await save('wrong.yaml', yaml.replace('type: datetime', 'type: date'))
    const refused = await trilithon('index', 'apply', wrong)
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toContain('wrong.yaml:8:28: "date" is no type of a field')
    const put = (row: number, body: object): ReturnType<typeof trilithon> => {
      const key = `00000000-0000-0000-0000-00000000000${row}`
      return trilithon('cells', 'put', key, 'BASE', '1', JSON.stringify(body), '-d', 'trips')
    }
    await put(1, { zone: 7, at: '2026-01-02T00:00:00Z' })
    const good = await save('good.yaml', yaml)
    expect(await trilithon('index', 'apply', good)).toMatchObject({ code: 0 })
    const early = await trilithon(
      'index',
      'query',
      'zone_index',
      '-d',
      'trips',
      '--where',
      '{"zone":7}',
      '--timeout',
      '1',
    )
    expect(early).toMatchObject({ code: 4 })
    expect(early.stderr).toContain('index zone_index is known to writers')
    const built = await trilithon(
      'index',
      'build',
      'zone_index',
      '-d',
      'trips',
      '--grace',
      '11',
      '--json',
    )
    expect(built, built.stderr).toMatchObject({ code: 0 })
    expect(JSON.parse(built.stdout)).toEqual({ index: 'zone_index', shards: 1, rows: 1 })
    await put(2, { zone: 7, at: '2026-01-01T00:00:00Z' })
    const url = `${cluster.urls[0] ?? ''}/v1/datastores/trips/indexes/zone_index`
    const ask = async (query: string): Promise<unknown> => (await fetch(`${url}?${query}`)).json()
    await eventually('the index has both', async () => {
      const page = await ask('zone=7&select=at')
      const times = ['2026-01-01T00:00:00.000000Z', '2026-01-02T00:00:00.000000Z']
      const entries = times.map((at, i) => ({
        rowKey: `00000000-0000-0000-0000-00000000000${2 - i}`,
        fields: { at },
      }))
      return JSON.stringify(page) === JSON.stringify({ items: entries }) ? true : undefined
    })
    expect(await ask('zone=7&at.gte=2026-01-02&columns=BASE&limit=1')).toMatchObject({
      items: [{ cells: { BASE: { body: { zone: 7 } } } }],
    })
    // A number is written as JSON writes it, in a URL and by the command.
    expect(await ask('zone=70e-1&select=at')).toEqual(await ask('zone=7&select=at'))
    const same = ['index', 'query', 'zone_index', '-d', 'trips', '--where', '{"zone":70e-1}']
    expect((await trilithon(...same)).stdout).toContain('00000000-0000-0000-0000-000000000001')
    for (const text of ['eight', '%2B7', '07', '0x7']) {
      expect(await ask(`zone=${text}`)).toMatchObject({ code: 'invalid', status: 400 })
    }
    expect(await ask('at.gte=2026-01-02')).toMatchObject({ code: 'invalid' })
    const listed = await trilithon('index', 'list', '-d', 'trips')
    expect(listed.stdout).toBe('zone_index\tready\tBASE.zone, BASE.at\n')
    expect(await trilithon('index', 'check', 'zone_index', '-d', 'trips')).toMatchObject({
      code: 0,
    })
    expect(await trilithon('index', 'rebuild', 'zone_index', '-d', 'trips')).toMatchObject({
      code: 0,
    })
    const status = await trilithon('index', 'status', '-d', 'trips', '--json')
    expect(JSON.parse(status.stdout)).toMatchObject({ indexes: { zone_index: 'ready' }, relay: {} })
  },
  240_000,
)

const ddl = (index: string): string => `
CREATE SCHEMA Fleet;
CREATE TABLE Car { required integer car; required string city; repeated string tag; }
  PRIMARY KEY(car), ENTITY GROUP ROOT;
${index}`

test.concurrent(
  'a global index on rows that are there is built, compared and made anew by command line',
  async () => {
    await trilithon('schema', 'apply', await save('fleet1.ddl', ddl('')))
    const rows = Array.from({ length: 40 }, (_, car) =>
      JSON.stringify({ car, city: car % 2 === 0 ? 'Oslo' : 'Rome', tag: ['x'] }),
    )
    const cars = await save('cars.jsonl', rows.join('\n'))
    expect(await trilithon('load', cars, '--schema', 'Fleet', '--table', 'Car')).toMatchObject({
      code: 0,
    })
    const unique = ddl('CREATE UNIQUE GLOBAL INDEX CarsByCity ON Car(city);')
    const refused = await trilithon('schema', 'apply', await save('fleet2.ddl', unique))
    expect(refused.stderr).toContain(
      'index CarsByCity on Car is unique and global, which needs transactions over several groups',
    )
    const global = ddl('CREATE GLOBAL INDEX CarsByCity ON Car(city) SHARDS 4;')
    expect(await trilithon('schema', 'apply', await save('fleet3.ddl', global))).toMatchObject({
      code: 0,
    })
    const list = await trilithon('index', 'list', '--schema', 'Fleet', '--json')
    expect(JSON.parse(list.stdout)).toEqual([
      { name: 'CarsByCity', state: 'known', over: 'Car(city)' },
    ])
    expect((await trilithon('index', 'check', 'CarsByCity', '--schema', 'Fleet')).code).toBe(4)
    const built = await trilithon(
      'index',
      'build',
      'CarsByCity',
      '--schema',
      'Fleet',
      '--grace',
      '0',
    )
    expect(built.stdout).toBe('CarsByCity: ready, 40 rows filled in\n')
    const check = await trilithon('index', 'check', 'CarsByCity', '--schema', 'Fleet', '--json')
    expect(JSON.parse(check.stdout)).toEqual({
      ...{ index: 'CarsByCity', groups: 40, rows: 40, entries: 40, faults: [] },
      misfits: { count: 0, rows: [] },
    })
    expect(await trilithon('index', 'rebuild', 'CarsByCity', '--schema', 'Fleet')).toMatchObject({
      code: 0,
    })
    expect((await trilithon('index', 'build', 'CarsBy', '--schema', 'Fleet')).stderr).toContain(
      'CarsByCity',
    )
    const drop = (name: string, ...more: readonly string[]): ReturnType<typeof trilithon> =>
      trilithon('index', 'drop', name, '--schema', 'Fleet', '--grace', '0', ...more)
    const tagged = `CREATE GLOBAL INDEX CarsByCity ON Car(city) SHARDS 4;
CREATE GLOBAL INDEX CarsByTag ON Car(tag) SHARDS 2;
CREATE LOCAL INDEX TagsOfCar ON Car(car, tag) STORING (city);`
    await trilithon('schema', 'apply', await save('fleet4.ddl', ddl(tagged)))
    expect((await drop('CarsByTag')).stderr).toContain('add --yes')
    expect(await drop('CarsByTag', '--yes')).toMatchObject({
      code: 0,
      stdout: 'CarsByTag: dropped\n',
    })
    // Again, it goes on where it ended.
    expect(await drop('CarsByTag', '--yes')).toMatchObject({ code: 0 })
    const local = await trilithon(
      'index',
      'build',
      'TagsOfCar',
      '--schema',
      'Fleet',
      '--grace',
      '0',
    )
    expect(local.stdout).toBe('TagsOfCar: ready, 40 rows filled in\n')
    const left = await trilithon('index', 'list', '--schema', 'Fleet')
    expect(left.stdout).toBe('TagsOfCar\tready\tCar(car, tag)\nCarsByCity\tready\tCar(city)\n')
    const checked = await trilithon('index', 'check', 'TagsOfCar', '--schema', 'Fleet', '--json')
    expect(JSON.parse(checked.stdout)).toMatchObject({ rows: 40, entries: 40, faults: [] })
    for (const name of ['TagsOfCar', 'CarsByCity']) {
      expect(await drop(name, '--yes')).toMatchObject({ code: 0, stdout: `${name}: dropped\n` })
    }
    expect((await trilithon('index', 'list', '--schema', 'Fleet')).stdout).toBe('')
  },
  240_000,
)

interface Trip {
  readonly pickup_location_id: string
  readonly pickup_datetime: string
  readonly total_amount: string
}

test.runIf(isPresent).concurrent(
  'real trips: by pick-up zone and time an index answers what the file says',
  async () => {
    const lines = gunzipSync(await readFile(file))
      .toString('utf8')
      .split('\n')
      .slice(0, 3_001)
    const trips: Trip[] = parse(lines.join('\n'), { columns: true })
    const [header = ''] = lines
    const first = await save('first.csv', lines.slice(0, 1_501).join('\n'))
    const second = await save('second.csv', [header, ...lines.slice(1_501)].join('\n'))
    const load = (path: string): ReturnType<typeof trilithon> =>
      trilithon('cells', 'load', path, '--datastore', 'taxi', '--column', 'BASE')
    expect(await load(first)).toMatchObject({ code: 0 })
    const path = await save(
      'taxi.yaml',
      yaml
        .replace('zone_index ', 'by_zone ')
        .replace('datastore: trips', 'datastore: taxi')
        .replace('field: zone, type: integer', 'field: pickup_location_id, type: string')
        .replace(
          'field: at, type: datetime',
          'field: pickup_datetime, type: string }\n      - { field: total_amount, type: string',
        ),
    )
    expect(await trilithon('index', 'apply', path)).toMatchObject({ code: 0 })
    // For as long as a node may go by earlier definitions, and a put that it began may take.
    const building = trilithon('index', 'build', 'by_zone', '-d', 'taxi', '--grace', '22')
    expect(await load(second)).toMatchObject({ code: 0 })
    expect(await building).toMatchObject({ code: 0 })
    const client = await connect({ endpoints: cluster.urls, timeoutMs: patienceMs })
    const index = client.cells('taxi').index('by_zone')
    await eventually('all is relayed', async () => {
      const page = await index.query({ pickup_location_id: trips.at(-1)?.pickup_location_id ?? '' })
      const zone = trips.filter(
        (one) => one.pickup_location_id === trips.at(-1)?.pickup_location_id,
      )
      return page.items.length === Math.min(zone.length, 1000) ? true : undefined
    })
    const [from, to] = ['2018-10-01 08:00:00', '2018-10-01 20:00:00']
    for (const zone of new Set(trips.map((one) => one.pickup_location_id))) {
      const said = trips
        .filter((one) => one.pickup_location_id === zone)
        .filter((one) => one.pickup_datetime >= from && one.pickup_datetime < to)
        .map((one) => `${one.pickup_datetime} ${one.total_amount}`)
      const found: string[] = []
      for (let cursor: string | undefined; ;) {
        const where = { pickup_location_id: zone, pickup_datetime: { gte: from, lt: to } }
        const page = await index.query(where, {
          limit: 300,
          ...(cursor !== undefined && { cursor }),
        })
        for (const { fields } of page.items) {
          found.push(`${String(fields['pickup_datetime'])} ${String(fields['total_amount'])}`)
        }
        cursor = page.cursor
        if (cursor === undefined) break
      }
      expect(found.toSorted(), zone).toEqual(said.toSorted())
    }
    await client.close()
  },
  240_000,
)

test('IDX-9: an index is dropped, by a command that goes on where one was killed, and declared anew as something else', async () => {
  const place = ['-d', 'trips']
  const unsure = await trilithon('index', 'drop', 'zone_index', ...place)
  expect(unsure).toMatchObject({ code: 2 })
  expect(unsure.stderr).toContain('add --yes')
  // Its client gives up in the midst of it.
  const ended = await runProgram(
    [
      ...['index', 'drop', 'zone_index', ...place, '--grace', '11', '--yes'],
      ...['--url', cluster.urls.join(',')],
    ],
    { timeoutMs: 3_000 },
  ).catch(() => undefined)
  expect(ended?.code).not.toBe(0)
  const again = await trilithon('index', 'apply', await save('again.yaml', yaml))
  expect(again.stderr).toContain('is being dropped')
  const listed = await trilithon('index', 'list', ...place, '--json')
  expect(JSON.parse(listed.stdout)).toMatchObject([{ name: 'zone_index', state: 'dropping' }])
  const url = `${cluster.urls[0] ?? ''}/v1/datastores/trips/indexes/zone_index`
  await eventually('it is not asked any more', async () => {
    const { status } = await fetch(`${url}?zone=7`)
    return status === 404 ? true : undefined
  })
  const gone = await trilithon('index', 'drop', 'zone_index', ...place, '--grace', '11', '--yes')
  expect(gone).toMatchObject({ code: 0 })
  expect((await fetch(url, { method: 'DELETE' })).status).toBe(404)
  const other = yaml.replace('integer', 'string')
  expect(await trilithon('index', 'apply', await save('other.yaml', other))).toMatchObject({
    code: 0,
  })
})
