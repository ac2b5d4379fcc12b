/**
 * Joins each program of dist/ into one file in dist/joined/, which `start.ts` runs in its place. Loading four hundred
 * files of modules takes a process most of a second; loading one file, with its compiled code, takes a tenth of that.
 */
import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type BuildOptions, type Plugin } from 'esbuild'

const dist = fileURLToPath(new URL('../../dist/', import.meta.url))
const programs = ['src/cli/main.js', 'sim/main.js', 'sim/campaign-worker.js', 'bench/main.js']

const startSource: string = fileURLToPath(new URL('start.ts', import.meta.url))
const joined = join(dist, 'joined')
const startFile = join(joined, 'start.cjs')

/** For processes that the tests start. */
export const nodeOptions: string = `--require "${startFile}"`

/**
 * A module keeps its own address, by which it finds files beside it, and imports a user's file by the function that
 * `start.ts` gives it. A module that awaits as it is loaded is a program's: it exports nothing, and its statements can be
 * those of a function.
 */
const asScripts: Plugin = {
  name: 'as-scripts',
  setup({ onLoad }) {
    onLoad({ filter: /\/dist\/(src|sim|bench|schema)\/.*\.js$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      const url = JSON.stringify(pathToFileURL(path).href)
      const addressed = text
        .replaceAll('import.meta.url', url)
        .replaceAll(/\bimport\((?!['"])/g, 'importOther(')
      const isProgram = !/^export /m.test(text) && /\bawait\b/.test(text)
      return { contents: isProgram ? inFunction(addressed) : addressed }
    })
  },
}

function inFunction(text: string): string {
  const imports = text.match(/^import [^;]*;$/gm) ?? []
  const rest = text.replaceAll(/^import [^;]*;$/gm, '').replace(/^#!.*\n/, '')
  return `${imports.join('\n')}\nvoid (async () => {${rest}\n})()`
}

const settings = {
  ...{ bundle: true, format: 'cjs', platform: 'node', target: 'node20' },
  ...{ outExtension: { '.js': '.cjs' }, legalComments: 'none', logLevel: 'error' },
  // Its binary lies beside its source.
  ...{ external: ['classic-level'], plugins: [asScripts] },
} as const satisfies BuildOptions

/** Whether the joined programs are of this file and of `start.ts` as they are now; a build of dist/ removes them all. */
function isJoined(): boolean {
  const made = statSync(startFile, { throwIfNoEntry: false })
  const sources = [startSource, fileURLToPath(import.meta.url)]
  return made !== undefined && sources.every((path) => statSync(path).mtimeMs <= made.mtimeMs)
}

/** Does nothing where the programs of this dist/ are joined already. */
export async function joinPrograms(): Promise<void> {
  if (isJoined()) return
  rmSync(joined, { recursive: true, force: true })
  const fresh = join(dist, `joined-${process.pid}`)
  const entryPoints = programs.map((path) => join(dist, path))
  await Promise.all([
    build({ ...settings, entryPoints, outbase: dist, outdir: fresh }),
    build({ ...settings, entryPoints: [startSource], outfile: join(fresh, 'start.cjs') }),
  ])
  try {
    renameSync(fresh, joined)
  } catch (error) {
    // A run that started at the same time was sooner.
    if (!existsSync(joined)) throw error
    rmSync(fresh, { recursive: true })
  }
}
