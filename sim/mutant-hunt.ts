/** Plants a bug in a copy of the sources, builds the copy, and runs seeds on it until it is found. */
import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Edit, Mutant } from './mutant.ts'

export interface HuntOptions {
  readonly from: number
  readonly to: number
  readonly secondsMax: number
}

export interface HuntResult {
  readonly id: string
  readonly title: string
  /** Found, or, for a harmless one, not found. */
  readonly isAsExpected: boolean
  readonly foundAtSeed?: number
  /** The rule that the finder named. */
  readonly foundBy?: string
  readonly sentence?: string
  readonly seedsTried: number
  readonly seconds: number
}

/** What `run --json` prints, as far as it is needed here. */
interface Report {
  readonly seeds: number
  readonly failed: readonly {
    readonly seed: number
    readonly violations: readonly { readonly rule: string; readonly sentence: string }[]
  }[]
}

export async function hunt(mutant: Mutant, options: HuntOptions): Promise<HuntResult> {
  const copy = await mkdtemp(join(tmpdir(), `trilithon-${mutant.id}-`))
  try {
    await plant(mutant, copy)
    await build(copy)
    const startedAt = process.hrtime.bigint()
    const report = await runSeeds(copy, mutant, options)
    const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9
    return resultOf(mutant, report, seconds)
  } finally {
    await rm(copy, { recursive: true, force: true })
  }
}

/** A copy of the sources with the mutant's edits. Fails when an edit does not fit exactly once. */
export async function plant(mutant: Mutant, copy: string): Promise<void> {
  const root = await packageRoot()
  for (const name of ['src', 'sim', 'package.json', 'tsconfig.json']) {
    await cp(join(root, name), join(copy, name), { recursive: true })
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const edit of mutant.edits) {
    const path = join(copy, edit.file)
    await writeFile(path, applyEdit(await readFile(path, 'utf8'), edit))
  }
}

export function applyEdit(source: string, edit: Edit): string {
  const at = source.indexOf(edit.find)
  if (at < 0) throw new Error(`a mutant no longer fits: not found in ${edit.file}: ${edit.find}`)
  if (source.indexOf(edit.find, at + 1) >= 0) {
    throw new Error(`a mutant no longer fits: twice in ${edit.file}: ${edit.find}`)
  }
  return source.slice(0, at) + edit.replace + source.slice(at + edit.find.length)
}

/** The folder with package.json and the sources; built files alone cannot be mutated. */
export async function packageRoot(): Promise<string> {
  let folder = dirname(fileURLToPath(import.meta.url))
  for (;;) {
    const isRoot = await exists(join(folder, 'package.json'))
    if (isRoot && (await exists(join(folder, 'sim', 'mutants.ts')))) return folder
    const parent = dirname(folder)
    if (parent === folder) throw new Error('mutants need the sources: run this in the repository')
    folder = parent
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function build(copy: string): Promise<void> {
  const tsc = join(copy, 'node_modules', 'typescript', 'bin', 'tsc')
  // A mutant may leave a name unused, which is an error of style only: what counts is the output.
  await output(process.execPath, [tsc, '-p', join(copy, 'tsconfig.json')], copy, 120)
  if (!(await exists(join(copy, 'dist', 'sim', 'main.js')))) {
    throw new Error('a mutant does not build')
  }
}

async function runSeeds(copy: string, mutant: Mutant, options: HuntOptions): Promise<Report> {
  const { from, secondsMax } = options
  const to = Math.min(options.to, from + (mutant.seedsMax ?? Number.MAX_SAFE_INTEGER) - 1)
  const main = join(copy, 'dist', 'sim', 'main.js')
  const rules = mutant.rules === undefined ? [] : ['--rules', ...mutant.rules]
  const flags = ['run', '--seeds', `${from}..${to}`, '--stop', '--json', ...rules]
  const printed = await output(process.execPath, [main, ...flags], copy, secondsMax)
  const report: Report = printed === '' ? { seeds: 0, failed: [] } : JSON.parse(printed)
  return report
}

/** What a command prints until it ends, or until its time is up: then it is ended. */
function output(
  command: string,
  args: readonly string[],
  folder: string,
  secondsMax: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), secondsMax * 1000)
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks).toString())
    })
  })
}

function resultOf(mutant: Mutant, report: Report, seconds: number): HuntResult {
  const { id, title } = mutant
  const found = report.failed[0]
  const violation = found?.violations[0]
  const common = { id, title, seedsTried: report.seeds, seconds }
  if (found === undefined) {
    return { ...common, isAsExpected: mutant.isHarmless === true && report.seeds > 0 }
  }
  return {
    ...common,
    isAsExpected: mutant.isHarmless !== true,
    foundAtSeed: found.seed,
    ...(violation === undefined ? {} : { foundBy: violation.rule, sentence: violation.sentence }),
  }
}
