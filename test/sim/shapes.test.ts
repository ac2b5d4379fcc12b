/**
 * V8 keeps a shape for each way that objects were made. Code that makes a new one each time it runs is
 * slow itself, and so is code that reads these objects.
 */
import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { programPath } from '../cluster/harness.ts'

const simPath = fileURLToPath(new URL('../../sim/main.js', pathToFileURL(programPath)))

/**
 * An object made in 400 ns, and 300 more at each read of it, at every event: they are not forgotten. By seed there are 0.41 to 0.54
 * shapes an event.
 */
const shapesAnEventMax = 0.6

test('a run makes objects of shapes that there are', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'trilithon-test-'))
  try {
    const logFile = join(folder, 'maps.log')
    const told = ['--log-maps', '--no-log-maps-details', '--no-logfile-per-isolate']
    const args = [...told, `--logfile=${logFile}`, simPath, 'run', '--seed', '7', '--json']
    const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    const events = Number(/"events":(\d+)/.exec(stdout)?.[1])
    expect(events).toBeGreaterThan(10_000)
    const shapes = (await readFile(logFile, 'utf8')).split('\nmap,Transition,').length - 1
    // Those of the program itself and of Node.js are among them: some thousands, once.
    expect(shapes).toBeGreaterThan(1_000)
    expect(shapes / events).toBeLessThan(shapesAnEventMax)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
