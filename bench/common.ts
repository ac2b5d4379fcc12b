/** Common parts of benches: the machine, a client that ends with them, loops, and the text of an error. */
import { randomBytes } from 'node:crypto'
import { cpus } from 'node:os'
import type { Client } from '../src/client/client.ts'
import { connect } from '../src/client/connect.ts'

export interface Machine {
  readonly cpus: number
  readonly model: string
}

export function machine(): Machine {
  const [cpu] = cpus()
  return { cpus: cpus().length, model: cpu?.model ?? '' }
}

/** A busy machine is slow, and a call that is given up would count as one that failed. */
const timeoutMs = 60_000

/** A client that closes when the bench is stopped: nothing that is under way is waited for then. */
export async function openClient(nodes: readonly string[], signal: AbortSignal): Promise<Client> {
  const client = await connect({ endpoints: nodes, timeoutMs })
  signal.addEventListener('abort', () => void client.close(), { once: true })
  return client
}

/** Runs `work` for each number below `count`, `underWay` at once; begins none once `signal` is aborted. */
export async function forEachBelow(
  count: number,
  underWay: number,
  signal: AbortSignal,
  work: (n: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const loop = async (): Promise<void> => {
    while (next < count && !signal.aborted) await work(next++)
  }
  await Promise.all(Array.from({ length: underWay }, loop))
}

/** Text that cannot be compressed by much; `chars` is a multiple of 4. */
export function randomText(chars: number): string {
  return randomBytes((chars * 3) / 4).toString('base64')
}

/** The text of an error. */
export function readReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** An error that one sentence explains, without a stack: the operator of a bench can mend it. */
export class BenchError extends Error {}
