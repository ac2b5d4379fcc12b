/** Runs the simulator's command line as a user does. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { runCommand } from '../../sim/commands/program.ts'
import { packageRoot } from '../../sim/mutants/mutant-copy.ts'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export function sim(...args: readonly string[]): Promise<Ended> {
  return ended(args)
}

/** The same without a process of its own, whose start takes seconds: for what a command says and how it ends. */
export async function simHere(...args: readonly string[]): Promise<Ended> {
  const stdout = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const said = ({ mock }: typeof stdout): string => mock.calls.map(([text]) => text).join('')
  try {
    const code = await runCommand(args)
    return { code, stdout: said(stdout), stderr: said(stderr) }
  } finally {
    stdout.mockRestore()
    stderr.mockRestore()
  }
}

/** In a process, with signals to its group, as a terminal sends them, once it has said something. */
export function simInterrupted(
  signals: readonly NodeJS.Signals[],
  ...args: readonly string[]
): Promise<Ended> {
  return ended(args, signals)
}

async function ended(
  args: readonly string[],
  signals: readonly NodeJS.Signals[] = [],
): Promise<Ended> {
  const root = await packageRoot()
  const command = [join(root, 'dist', 'sim', 'main.js'), ...args]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, command, { cwd: root, detached: signals.length > 0 })
    child.stdout.once('data', () => {
      for (const signal of signals) process.kill(-(child.pid ?? expect.fail()), signal)
    })
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
