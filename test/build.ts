/**
 * Before all tests: dist/ is what they test, so it is made anew where a source has changed since.
 * Processes of tests start programs that are joined into one file each.
 */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { joinPrograms } from './joined/join.ts'

const prepare = fileURLToPath(new URL('../.ci/prepare.mjs', import.meta.url))

export async function setup(): Promise<void> {
  execFileSync(process.execPath, [prepare, '--build'], { stdio: 'inherit' })
  await joinPrograms()
}
