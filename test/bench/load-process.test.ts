/** How a bench gets on with its client processes: here ones that do as they are told. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { LoadProcess } from '../../bench/load-process.ts'
import { withFolder } from '../cluster/harness.ts'

const load = { clients: 1, seconds: 1, warmUpSeconds: 0, operation: 'commits' } as const
const onWarm = (): Promise<void> => Promise.resolve()

/** Is ready, and gives a result some time after it was told of a load. */
const obedient = `
  const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n')
  say({ kind: 'ready' })
  process.stdin.on('data', () => {
    say({ kind: 'warm' })
    setTimeout(() => say({ kind: 'result', operations: 7 }), 1500)
  })
`

async function withClient(
  script: string,
  use: (client: LoadProcess) => Promise<void>,
): Promise<void> {
  await withFolder(async (folder) => {
    const path = join(folder, 'client.js')
    await writeFile(path, script)
    await use(await LoadProcess.start(path, []))
  })
}

test('a look at the system that fails does not end the load', () =>
  withClient(obedient, async (client) => {
    let looks = 0
    const onSecond = async (): Promise<void> => {
      looks += 1
      throw new Error('a node does not answer')
    }
    expect(await client.run(load, { onWarm, onSecond })).toMatchObject({ operations: 7 })
    expect(looks).toBe(1)
    await client.stop()
  }))
