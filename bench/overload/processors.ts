/**
 * Which processors the nodes of a bench have, and which those who ask them. Clients of real nodes run on other
 * machines; here a client that sends ten times too much would take from the nodes what they need to serve it,
 * and the bench would measure that.
 */
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

export interface Processors {
  /** As `taskset -c` has them. */
  readonly nodes: string
  readonly senders: string
}

/** Undefined: they cannot be shared out here, and all use all of them. */
export function shareProcessors(): Processors | undefined {
  const count = availableParallelism()
  if (count < 2) return undefined
  const half = Math.floor(count / 2)
  const shares = { nodes: `0-${half - 1}`, senders: `${half}-${count - 1}` }
  const isPossible = Object.values(shares).every(
    (of) => spawnSync('taskset', ['-c', of, 'true'], { stdio: 'ignore' }).status === 0,
  )
  return isPossible ? shares : undefined
}

/** For all threads of a process that runs, and for what it starts from now on. */
export function moveTo(processors: string, pid: number): void {
  spawnSync('taskset', ['-a', '-p', '-c', processors, String(pid)], { stdio: 'ignore' })
}
