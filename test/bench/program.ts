/** The benches as a program of their own, built as the command line is. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { programPath, type ProgramResult } from '../cluster/harness.ts'

const benchPath = join(dirname(programPath), '../../bench/main.js')

export interface RunOptions {
  /** Where it makes its temporary folders. */
  readonly folder?: string
  /** Is given the process when it has started. */
  readonly meanwhile?: (child: ChildProcess) => Promise<void>
}

/** Runs a bench to its end, which `meanwhile` may bring about. */
export async function runBench(
  arguments_: readonly string[],
  { folder, meanwhile }: RunOptions = {},
): Promise<ProgramResult> {
  if (!existsSync(benchPath)) throw new Error(`${benchPath} is missing: npm run build`)
  const child = spawn(process.execPath, [benchPath, ...arguments_], {
    env: { PATH: process.env['PATH'], ...(folder !== undefined && { TMPDIR: folder }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (piece: string) => (said[name] += piece))
  }
  const ended = new Promise<ProgramResult>((resolve) => {
    child.once('close', (code, signal) => {
      resolve({ code: code ?? undefined, signal: signal ?? undefined, ...said })
    })
  })
  try {
    await meanwhile?.(child)
    return await ended
  } finally {
    // Nothing when it has ended; else its own nodes end with it in order.
    child.kill('SIGTERM')
  }
}
