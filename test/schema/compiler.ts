/** The compiler, run on a project: its errors, and those that the files there expect. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root: string = fileURLToPath(new URL('../..', import.meta.url))
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')

export function compile(project: string, ...flags: readonly string[]): string {
  const settings = ['-p', project, '--pretty', 'false', ...flags]
  return spawnSync(process.execPath, [tsc, ...settings], { cwd: root, encoding: 'utf8' }).stdout
}

/** `values.ts:9` and what tsc says there, its further lines joined. */
export function errorsOf(output: string): ReadonlyMap<string, string> {
  const errors = output.split(/\n(?=\S)/).map((text): [string, string] => {
    const [, file = '', line = ''] = /([\w-]+\.ts)\((\d+),\d+\): error/.exec(text) ?? []
    return [`${file}:${line}`, text.replaceAll(/\s+/g, ' ')]
  })
  return new Map(errors)
}

/** Places below a comment `// error: …`, with its words. */
export function expectedErrors(folder: string): readonly (readonly [string, string])[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const lines = readFileSync(join(folder, file), 'utf8').split('\n')
      return lines.flatMap((line, index): readonly (readonly [string, string])[] => {
        const words = /^\/\/ error: (.*)/.exec(line)?.[1]
        return words === undefined ? [] : [[`${file}:${index + 2}`, words]]
      })
    })
}
