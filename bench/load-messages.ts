/**
 * The messages of a client process of a bench: it reads lines of JSON on stdin, and writes lines of
 * JSON on stdout.
 */
import { createInterface } from 'node:readline'
import type { Load } from './load-process.ts'

export function say(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

/** A client that has nothing under way closes within this once its stdin has ended. */
const closeWaitMs = 1_000

/**
 * The loads that stdin brings, until the bench ends this process or has itself ended. Then the load
 * under way ends too, since no terminal and no other process knows of this one.
 */
export async function* loads(): AsyncGenerator<Load> {
  const lines = createInterface({ input: process.stdin })
  lines.once('close', () => setTimeout(() => process.exit(), closeWaitMs).unref())
  for await (const line of lines) yield parseLoad(line)
}

function parseLoad(line: string): Load {
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
