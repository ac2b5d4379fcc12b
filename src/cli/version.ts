/** This program's version, as its package names it. */
import { readFileSync } from 'node:fs'

export const version: string = readVersion()

/** Compiled files lie one folder deeper than sources; the nearest package.json above is ours. */
function readVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const found: unknown = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
      const isOurs = typeof found === 'object' && found !== null && 'version' in found
      if (isOurs && typeof found.version === 'string') return found.version
    } catch {
      // Not there: the next folder up has it.
    }
  }
  return 'unknown'
}
