/** The lock of a store is held without opening the store. */
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lockStore } from '../../src/adapters/level-lock.ts'
import { openLevelStore } from '../../src/adapters/level-storage.ts'

const classicLevel = import.meta.resolve('classic-level')

/** Another process opens the store, says how that went, and closes it when its input ends. */
function openElsewhere(path: string): {
  readonly said: Promise<string>
  close(): Promise<void>
} {
  const program = `
    import { ClassicLevel } from ${JSON.stringify(classicLevel)}
    const level = new ClassicLevel(${JSON.stringify(path)})
    const said = await level.open().then(() => 'open', (error) => error.cause?.code ?? error.code)
    process.stdout.write(said)
    process.stdin.resume().on('end', () => process.exit())`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  return {
    said: new Promise((resolve) => child.stdout.once('data', (text) => resolve(String(text)))),
    close: () => {
      child.stdin.end()
      return ended
    },
  }
}

async function readTimes(folder: string): Promise<readonly (readonly [string, number])[]> {
  const names = (await readdir(folder)).toSorted()
  return Promise.all(names.map(async (name) => [name, (await stat(join(folder, name))).ctimeMs]))
}

test('a store that another process has open is in use; one that is locked opens nowhere else', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-locks-'))
  try {
    await (await openLevelStore(folder)).close()
    const other = openElsewhere(folder)
    expect(await other.said).toBe('open')
    expect((await lockStore(folder)).state).toBe('in use')
    await other.close()
    const before = await readTimes(folder)
    const lock = await lockStore(folder)
    expect(lock.state).toBe('held')
    expect(await readTimes(folder)).toEqual(before)
    const late = openElsewhere(folder)
    expect(await late.said).toBe('LEVEL_LOCKED')
    await late.close()
    await lock.release()
    const free = openElsewhere(folder)
    expect(await free.said).toBe('open')
    await free.close()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('a folder that has no lock cannot be locked, and gets none', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-locks-'))
  expect((await lockStore(folder)).state).toBe('unknown')
  expect(await readdir(folder)).toEqual([])
  await rm(folder, { recursive: true, force: true })
})
