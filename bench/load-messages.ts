/** What a client process of a bench is told on stdin, and says on stdout: lines of JSON. */
import { createInterface } from 'node:readline'
import type { Load } from './load-process.ts'

export function say(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

/** A client that has nothing under way closes within this when it is told no more. */
const closeWaitMs = 1_000

/**
 * The loads it is told of, until the bench ends it or has ended itself: then also the one under way,
 * since no terminal and nobody else knows of this process.
 */
export async function* loads(): AsyncGenerator<Load> {
  const lines = createInterface({ input: process.stdin })
  lines.once('close', () => setTimeout(() => process.exit(), closeWaitMs).unref())
  for await (const line of lines) yield loadOf(line)
}

function loadOf(line: string): Load {
  const given: unknown = JSON.parse(line)
  if (!isLoad(given)) throw new Error(`this is no load: ${line}`)
  return given
}

function isLoad(given: unknown): given is Load {
  return (
    typeof given === 'object' &&
    given !== null &&
    ['clients', 'seconds', 'warmUpSeconds', 'operation'].every((name) => name in given)
  )
}
