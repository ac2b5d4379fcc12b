/** Modules of services as people write them, and what a worker's process may send beside its reports. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CliError, exitFailure } from '../../src/cli/exit.ts'
import { loadService } from '../../src/cli/trigger-file.ts'
import { isReport } from '../../src/cli/trigger-worker.ts'

async function module(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'trigger-file-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'service.mjs')
  await writeFile(path, text)
  return path
}

const service = (name: string): string =>
  `{ service: '${name}', datastore: 'd', triggers: [{ name: 't', column: 'B', handle: () => {} }] }`

test('a module has one service, by one name or two', async () => {
  const one = await module(`export const service = ${service('a')}; export default service`)
  expect(await loadService(one)).toMatchObject({ service: 'a' })
  const two = await module(`export const a = ${service('a')}; export const b = ${service('b')}`)
  await expect(loadService(two)).rejects.toThrow('has 2 services, a, b; export one')
  const none = await module(`export const s = { service: 's', datastore: 'd', triggers: [] }`)
  await expect(loadService(none)).rejects.toThrow('has no triggers')
})

test('a module that does not come to its end is refused by its name, in a bounded time', async () => {
  const path = await module(`await new Promise(() => {}); export const s = ${service('a')}`)
  await expect(loadService(path, 200)).rejects.toThrow(
    new CliError(
      `${path} has not come to its end in 0.2 s: an await at its top level waits for something that does not come`,
      exitFailure,
    ),
  )
  const slow = await module(
    `await new Promise((resolve) => setTimeout(resolve, 50)); export const s = ${service('a')}`,
  )
  expect(await loadService(slow)).toMatchObject({ service: 'a' })
})

test.runIf(process.platform === 'linux')('a device is no module', async () => {
  await expect(loadService('/dev/zero')).rejects.toThrow('/dev/zero is a pipe or a device')
})

test('a message of the application to its parent process is no report', () => {
  expect(['ready', { kind: 'stop', x: 1 }, null, 1, { says: [] }].filter(isReport)).toEqual([])
  const counts = { worker: 'w', handled: 0, failed: 0, marked: 0, shards: 0 }
  expect(isReport({ kind: 'trilithon worker', ...counts, says: [] })).toBe(true)
})
