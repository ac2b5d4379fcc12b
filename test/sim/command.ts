/** Runs the simulator's command line as a user does. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { packageRoot } from '../../sim/mutant-copy.ts'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export function sim(...args: readonly string[]): Promise<Ended> {
  return ended(args)
}

/** The same, with a signal to it and all that it has started after a while, as a terminal sends it. */
export function simUntil(
  ms: number,
  signal: NodeJS.Signals,
  ...args: readonly string[]
): Promise<Ended> {
  return ended(args, (pid) => {
    setTimeout(() => process.kill(-pid, signal), ms)
  })
}

async function ended(args: readonly string[], onStarted?: (pid: number) => void): Promise<Ended> {
  const root = await packageRoot()
  const command = ['--import', 'tsx', join(root, 'sim', 'main.ts'), ...args]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, command, { cwd: root, detached: onStarted !== undefined })
    if (child.pid !== undefined) onStarted?.(child.pid)
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.on('error', reject)
    child.on('close', (code) => {
      resolve({ code, stdout, stderr })
    })
  })
}
