/** Reads and writes scenario files for the commands. */
import { readFile, writeFile } from 'node:fs/promises'
import { decodeScenario, encodeScenario, type ReadScenario, type Scenario } from '../scenario.ts'

export async function readScenario(path: string): Promise<ReadScenario> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : 'it cannot be read' }
  }
  const read = decodeScenario(text)
  return read.ok ? read : { ok: false, reason: `${path}: ${read.reason}` }
}

export async function writeScenario(path: string, scenario: Scenario): Promise<void> {
  await writeFile(path, encodeScenario(scenario))
}
