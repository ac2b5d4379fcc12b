/** What a client process of a bench is told on stdin, and says on stdout: lines of JSON. */
import type { Load } from './load-process.ts'

export function say(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

export function loadOf(line: string): Load {
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
