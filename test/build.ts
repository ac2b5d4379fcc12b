/** Before all tests: dist/ is what they test, so it is made anew where a source has changed since. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const prepare = fileURLToPath(new URL('../.ci/prepare.mjs', import.meta.url))

export function setup(): void {
  execFileSync(process.execPath, [prepare, '--build'], { stdio: 'inherit' })
}
