/** `npm start`, on other ports: it does what it says, twice, and says what to do when it cannot. */
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freePorts, isFree } from '../../sim/processes/free-ports.ts'
import { eventually, runProgram, startProgram, withFolder } from './harness.ts'

/** Loads, a kill and a comparison of all replicas. */
const startedMs = 120_000

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
  'it shows three replicas that agree, and ends with 0; the second start finds its data, and stays up until Ctrl-C',
  () =>
    withFolder(async (folder) => {
      const port = String(await threePorts())
      const words = ['demo', '--data', folder, '--port', port, '--trips', '300']
      const first = await runProgram([...words, '--exit', '--json'], { timeoutMs: startedMs })
      expect(first, first.stderr).toMatchObject({ code: 0, stderr: '' })
      expect(step(first.stdout, 'loaded')).toMatchObject({ created: 300, alreadyThere: 0 })
      expect(step(first.stdout, 'read')).toMatchObject({ a: 300, b: 300, c: 300 })
      expect(step(first.stdout, 'killed')).toMatchObject({ node: 'c', created: 500 })
      expect(step(first.stdout, 'agree')).toMatchObject({ cells: 800 })
      const program = startProgram(words)
      const isShown = async (): Promise<true | undefined> =>
        program.stdout().includes('until Ctrl-C') ? true : undefined
      await eventually('it has shown everything', isShown, startedMs).catch((error: unknown) => {
        throw new Error(`it said:\n${program.stdout()}\n${program.stderr()}`, { cause: error })
      })
      const shown = program.stdout()
      expect(shown).toContain('Found 300 trips from a start before.')
      expect(shown).toMatch(/1,?300 cells/)
      const [, readUrl = ''] = /curl (\S+\/cells\/\S+\/BASE)/.exec(shown) ?? []
      expect(await (await fetch(readUrl)).json()).toMatchObject({
        column: 'BASE',
        body: { trip: 0 },
      })
      const put = /curl -X PUT (\S+) -H 'content-type: application\/json' -d '(.*)'/.exec(shown)
      const headers = { 'content-type': 'application/json' }
      const written = await fetch(put?.[1] ?? '', { method: 'PUT', headers, body: put?.[2] ?? '' })
      expect(written.status).toBe(201)
      program.child.kill('SIGINT')
      expect(await program.exited()).toEqual({ code: 0, signal: undefined })
    }),
  300_000,
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
