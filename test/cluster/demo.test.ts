/** `npm start`, on other ports: it does what it says, twice, and says what to do when it cannot. */
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freePorts, isFree } from '../../sim/processes/free-ports.ts'
import { eventually, runProgram, startProgram, withFolder } from './harness.ts'

/** The first of three ports in a row that are free. */
async function threePorts(): Promise<number> {
  return eventually('three free ports in a row', async () => {
    const [first = 0] = await freePorts(1)
    const taken = await Promise.all([0, 1, 2].map((i) => isFree(first + i)))
    return taken.every(Boolean) ? first : undefined
  })
}

/** The figures of a step. */
function step(stdout: string, name: string): unknown {
  const lines = stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
  return lines.find(
    (line) => typeof line === 'object' && line !== null && 'step' in line && line.step === name,
  )
}

test(
  'it shows three replicas that agree, and ends with 0; the second start finds its data',
  () =>
    withFolder(async (folder) => {
      const port = await threePorts()
      const words = [
        'demo',
        '--data',
        folder,
        '--port',
        String(port),
        '--trips',
        '300',
        '--exit',
        '--json',
      ]
      const first = await runProgram(words, { timeoutMs: 120_000 })
      expect(first, first.stderr).toMatchObject({ code: 0, stderr: '' })
      expect(step(first.stdout, 'loaded')).toMatchObject({ created: 300, alreadyThere: 0 })
      expect(step(first.stdout, 'read')).toMatchObject({ a: 300, b: 300, c: 300 })
      expect(step(first.stdout, 'killed')).toMatchObject({ node: 'c', created: 500 })
      expect(step(first.stdout, 'agree')).toMatchObject({ cells: 800 })
      const second = await runProgram(words, { timeoutMs: 120_000 })
      expect(second, second.stderr).toMatchObject({ code: 0 })
      expect(step(second.stdout, 'loaded')).toMatchObject({ created: 0, alreadyThere: 300 })
      expect(step(second.stdout, 'agree')).toMatchObject({ cells: 1300 })
    }),
  300_000,
)

test(
  'it stays up, the addresses it names answer, and Ctrl-C ends it with 0',
  () =>
    withFolder(async (folder) => {
      const port = await threePorts()
      const program = startProgram([
        'demo',
        '--data',
        folder,
        '--port',
        String(port),
        '--trips',
        '20',
      ])
      await eventually(
        'it has shown everything',
        async () => {
          return program.stdout().includes('until Ctrl-C') ? true : undefined
        },
        120_000,
      ).catch((error: unknown) => {
        const said = `${program.stdout()}\n${program.stderr()}`
        throw new Error(`it said:\n${said}`, { cause: error })
      })
      const [, readUrl = ''] = /curl (\S+\/cells\/\S+\/BASE)/.exec(program.stdout()) ?? []
      expect(await (await fetch(readUrl)).json()).toMatchObject({
        column: 'BASE',
        body: { trip: 0 },
      })
      const put = /curl -X PUT (\S+) -H 'content-type: application\/json' -d '(.*)'/.exec(
        program.stdout(),
      )
      const headers = { 'content-type': 'application/json' }
      const written = await fetch(put?.[1] ?? '', { method: 'PUT', headers, body: put?.[2] ?? '' })
      expect(written.status).toBe(201)
      program.child.kill('SIGINT')
      expect(await program.exited()).toEqual({ code: 0, signal: undefined })
    }),
  180_000,
)

test('demo names the flag that chooses another port when one is busy', () =>
  withFolder(async (folder) => {
    const port = await threePorts()
    const busy = createServer()
    await new Promise<void>((resolve) => busy.listen(port + 1, '127.0.0.1', () => resolve()))
    const result = await runProgram(['demo', '--data', folder, '--port', String(port), '--exit'])
    busy.close()
    expect(result).toMatchObject({ code: 1, stdout: '' })
    expect(result.stderr).toMatch(
      /^error: node b: port \d+ .* in use .* --port \(npm start -- --port 4710\)\n$/,
    )
  }))
