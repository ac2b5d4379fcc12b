/** The benches as a program of their own, built as the command line is. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { programPath, type ProgramResult } from '../cluster/harness.ts'

/** The built bench; its other programs lie around it. */
export const benchPath: string = join(dirname(programPath), '../../bench/main.js')

export interface RunOptions {
  /** Where it makes its temporary folders. */
  readonly folder?: string
  /** Where it looks for other programs. Default: where this process does. */
  readonly path?: string
  /** As a command of a terminal is: a signal for its group meets all its processes. */
  readonly inOwnGroup?: boolean
  /** Is given the process when it has started. */
  readonly meanwhile?: (child: ChildProcess) => Promise<void>
}

/** Runs a bench to its end, which `meanwhile` may bring about. */
export async function runBench(
  arguments_: readonly string[],
  { folder, path, inOwnGroup = false, meanwhile }: RunOptions = {},
): Promise<ProgramResult> {
  if (!existsSync(benchPath)) throw new Error(`${benchPath} is missing: npm run build`)
  const child = spawn(process.execPath, [benchPath, ...arguments_], {
    env: {
      PATH: path ?? process.env['PATH'],
      NODE_OPTIONS: process.env['NODE_OPTIONS'],
      // Tests wait for no checkpoint.
      TRILITHON_LIMITS_CHECKPOINT_MS: '50',
      ...(folder !== undefined && { TMPDIR: folder }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: inOwnGroup,
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
