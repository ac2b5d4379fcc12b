/** Reads and writes scenario files for the commands. */
import { constants } from 'node:fs'
import { access, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  decodeScenario,
  encodeScenario,
  type ReadScenario,
  type Scenario,
} from '../scenarios/scenario.ts'

/** Far more than any scenario takes; a larger file is something else. */
const fileBytesMax = 64 * 1024 * 1024

export async function readScenario(path: string): Promise<ReadScenario> {
  let text: string
  try {
    const { size } = await stat(path)
    if (size > fileBytesMax) return { ok: false, reason: `${path}: it is too large for a scenario` }
    text = await readFile(path, 'utf8')
  } catch (error) {
    return { ok: false, reason: `${path}: ${describeProblem(error)}` }
  }
  const read = decodeScenario(text)
  return read.ok ? read : { ok: false, reason: `${path}: ${read.reason}` }
}

/** The reason why a scenario could not be written there: checked before the work, not after it. */
export async function obstacleTo(path: string): Promise<string | undefined> {
  try {
    await access(dirname(path), constants.W_OK)
    const before = await stat(path).catch(() => undefined)
    if (before === undefined) return undefined
    if (before.isDirectory()) return `${path}: it is a folder`
    await access(path, constants.W_OK)
    return undefined
  } catch (error) {
    return `${path}: ${describeProblem(error)}`
  }
}

export async function writeScenario(path: string, scenario: Scenario): Promise<void> {
  await writeFile(path, encodeScenario(scenario))
}

const problems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  EACCES: 'access is denied',
  EROFS: 'the file system is read-only',
}

function describeProblem(error: unknown): string {
  if (!(error instanceof Error)) return 'it cannot be used'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return problems[code] ?? error.message
}
