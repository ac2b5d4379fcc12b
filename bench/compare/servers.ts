/** Server processes of other makers: started, their processor time with that of their children, stopped. */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pause } from '../processes.ts'

const ticksPerSecond = 100
const stopWaitMs = 20_000

/** A program by its name on PATH or in one of `folders`; undefined when it is nowhere. */
export async function findProgram(
  name: string,
  folders: readonly string[] = [],
): Promise<string | undefined> {
  for (const folder of [...folders, ...(process.env['PATH'] ?? '').split(':')]) {
    const path = join(folder, name)
    if (await isProgram(path)) return path
  }
  return undefined
}

function isProgram(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

export interface RunAs {
  readonly uid: number
  readonly gid: number
}

/** The output of a program that has ended well; rejects with what it said otherwise. */
export async function output(
  program: string,
  args: readonly string[],
  as: Partial<RunAs> & { readonly signal?: AbortSignal } = {},
): Promise<string> {
  const options = { ...as, cwd: '/', maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await promisify(execFile)(program, [...args], options)
  return stdout
}

/** Says nothing as long as it runs. */
export function startServer(
  program: string,
  args: readonly string[],
  as: Partial<RunAs> = {},
): ChildProcess {
  return spawn(program, [...args], { ...as, cwd: '/', stdio: 'ignore' })
}

export async function stopServer(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  const timer = setTimeout(() => child.kill('SIGKILL'), stopWaitMs)
  await ended
  clearTimeout(timer)
}

/** Tries until it succeeds; rejects with the last reason when that takes too long. `signal` ends it. */
export async function until<Value>(
  what: () => Promise<Value>,
  waitMs: number,
  signal: AbortSignal,
): Promise<Value> {
  const end = performance.now() + waitMs
  for (;;) {
    try {
      return await what()
    } catch (error) {
      signal.throwIfAborted()
      if (performance.now() >= end) throw error
      await pause(100)
    }
  }
}

/** User and system seconds of a process and all below it, those that have ended included. */
export async function treeCpuSeconds(pid: number): Promise<number> {
  const stats = await allStats()
  const below = (one: Stat): number =>
    stats
      .filter(({ parent }) => parent === one.pid)
      .reduce((sum, child) => sum + below(child), one.ticks)
  const root = stats.find((one) => one.pid === pid)
  return root === undefined ? 0 : below(root) / ticksPerSecond
}

interface Stat {
  readonly pid: number
  readonly parent: number
  /** Its own, and those of children that it has waited for. */
  readonly ticks: number
}

export async function treesCpuSeconds(pids: readonly number[]): Promise<number> {
  const used = await Promise.all(pids.map(treeCpuSeconds))
  return used.reduce((sum, one) => sum + one, 0)
}

/** User and system seconds of programs that this process has run and waited for. */
export async function waitedCpuSeconds(): Promise<number> {
  const fields = splitStat(await readFile('/proc/self/stat', 'utf8'))
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
}

/** Of a line of accounting those behind the name: 11 and 12 are user and system ticks, 13 and 14 those of children. */
function splitStat(stat: string): readonly string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

async function allStats(): Promise<Stat[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const stats = await Promise.all(names.map(readStat))
  return stats.filter((one) => one !== undefined)
}

async function readStat(name: string): Promise<Stat | undefined> {
  // A process that has ended since the listing.
  const text = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const fields = splitStat(text)
  const ticks = [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field]), 0)
  return { pid: Number(name), parent: Number(fields[1]), ticks }
}
