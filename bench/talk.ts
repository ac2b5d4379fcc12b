/** The output of benches on stderr while they run: a bar on a terminal, and a line for what is done. */
import { counted, duration, grouped, say } from '../src/cli/output.ts'
import { progressBar, type Progress as Bar } from '../src/cli/progress.ts'
import type { BuildsWatcher } from './builds.ts'
import type { CommitsWatcher } from './commits.ts'
import type { Watcher } from './compare/compare.ts'
import type { ScaleWatcher } from './scale/scale.ts'
import { workWords } from './describe.ts'
import type { YcsbWatcher } from './ycsb/ycsb.ts'

export const commitsTalk: Omit<CommitsWatcher, 'signal'> = {
  onSecond: (second, backlog) => {
    const text = backlog.map((bytes) => `${Math.round(bytes / 1024)} KiB`).join(' ')
    say(`second ${second}: backlog ${text}`)
  },
}

export const buildsTalk: Omit<BuildsWatcher, 'signal'> = {
  onPair: (done, all, ratio) => {
    say(`${done} of ${all}: ${ratio.toFixed(3)} times the commits of the other build`)
  },
}

export const compareTalk: Omit<Watcher, 'signal'> = {
  onMissing: (name, install) => {
    say(`${name} is not on this machine and is left out: ${install}`)
  },
  onFailed: ({ system, during, reason }) => {
    say(`${system} failed in ${during}, and is left out from now on: ${reason}`)
  },
  onRun: ({ done, all, run }) => {
    const { round, system, clients, operation, perSecond, backlogBytes } = run
    const backlog = Math.max(0, ...backlogBytes) / 1024
    const most = backlog > 0 ? `, backlog at most ${backlog.toFixed(0)} KiB` : ''
    say(
      `${done} of ${all}: round ${round + 1}, ${clients} clients, ${system} ${perSecond.toFixed(0)} ${operation}/s${most}`,
    )
  },
}

export function scaleTalk(signal: AbortSignal): ScaleWatcher {
  const bar = new OneBar()
  signal.addEventListener('abort', () => bar.stop(), { once: true })
  return {
    signal,
    onFill: (groups, done) => bar.update(groups, done),
    onFilled: ({ groups, seconds }) => {
      bar.stop()
      say(`${counted(groups, 'group')} filled in ${duration(seconds * 1000)}`)
    },
    onStart: (groups, { seconds, memory }) => {
      say(
        `${counted(groups, 'group')}: ready in ${seconds.toFixed(2)} s with ${mib(memory.resident)}`,
      )
    },
    onSlice: (done, all, { groups, work, perSecond, cpuMicros }) => {
      const figures = `${grouped(perSecond)}/s, ${cpuMicros.toFixed(0)} µs of CPU each`
      say(`${done} of ${all}: ${counted(groups, 'group')}, ${workWords[work]}: ${figures}`)
    },
  }
}

export function ycsbTalk(signal: AbortSignal): YcsbWatcher {
  const bar = new OneBar()
  signal.addEventListener('abort', () => bar.stop(), { once: true })
  return {
    signal,
    onLoad: (_, rows, done) => bar.update(rows, done),
    onLoaded: ({ table, rows, seconds }) => {
      bar.stop()
      say(`${counted(rows, 'row')} of ${table} loaded in ${duration(seconds * 1000)}`)
    },
    onWorkload: ({ workload, perSecond }) => {
      say(`workload ${workload.toUpperCase()}: ${grouped(perSecond)} operations/s`)
    },
  }
}

function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`
}

/** The bar of what is under way, begun with the first word of it. */
class OneBar {
  #bar: Bar | undefined

  update(all: number, done: number): void {
    this.#bar ??= progressBar(all, performance.now())
    this.#bar.update(done, done)
  }

  stop(): void {
    this.#bar?.stop()
    this.#bar = undefined
  }
}
