/** Copies of the built program with a bug planted in them, and the programs run there. */
import { spawn } from 'node:child_process'
import { copyFile, mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Edit, Mutant } from './mutant.ts'

const planted = ['src', 'sim', 'schema']
const buildSecondsMax = 120
/**
 * Compiles to runnable output only: a mutant may leave a name unused, and no type check sees it.
 */
const outputOnly = { noCheck: true, declaration: false, isolatedDeclarations: false }
/** Each file by itself, whatever it imports. */
const alone = { noResolve: true, noLib: true, types: [], sourceMap: false }

/**
 * A copy of the built program with the mutant's edits: the files that it edits are compiled anew,
 * all others are as they were built. Fails when an edit does not fit exactly once, and where a
 * source has changed since it was built.
 */
export async function plant(mutant: Mutant, copy: string, signal?: AbortSignal): Promise<void> {
  const root = await packageRoot()
  await Promise.all(planted.map((folder) => copyBuilt(root, copy, folder)))
  await copyFile(join(root, 'package.json'), join(copy, 'package.json'))
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'))
  const files = await editedFiles(mutant, root, copy)
  if (files.length > 0) await compile(files, root, copy, signal)
}

/** Copies what was built of a folder of the sources. */
async function copyBuilt(root: string, copy: string, folder: string): Promise<void> {
  const built = join('dist', folder)
  await mkdir(join(copy, built), { recursive: true })
  const entries = await readdir(join(root, built), { withFileTypes: true })
  await Promise.all(
    entries.map(async (entry) => {
      const { name } = entry
      if (entry.isDirectory()) return copyBuilt(root, copy, join(folder, name))
      if (!name.endsWith('.js')) return
      const [source, file] = [join(folder, name.replace(/js$/, 'ts')), join(built, name)]
      await expectBuilt(join(root, source), join(root, file))
      await copyFile(join(root, file), join(copy, file))
    }),
  )
}

async function expectBuilt(source: string, file: string): Promise<void> {
  const [written, made] = await Promise.all([stat(source).catch(() => undefined), stat(file)])
  if (written !== undefined && written.mtimeMs <= made.mtimeMs) return
  throw new Error(`${source} has changed since it was built: npm run build`)
}

/** Writes the sources that the mutant edits, and gives their paths. */
async function editedFiles(mutant: Mutant, root: string, copy: string): Promise<string[]> {
  const sources = new Map<string, string>()
  for (const edit of mutant.edits) {
    const source = sources.get(edit.file) ?? (await readFile(join(root, edit.file), 'utf8'))
    sources.set(edit.file, applyEdit(source, edit))
  }
  for (const [file, source] of sources) {
    await mkdir(dirname(join(copy, file)), { recursive: true })
    await writeFile(join(copy, file), source)
  }
  return [...sources.keys()]
}

async function compile(
  files: readonly string[],
  root: string,
  copy: string,
  signal?: AbortSignal,
): Promise<void> {
  const compilerOptions = { ...outputOnly, ...alone, rootDir: copy, outDir: join(copy, 'dist') }
  const config = { extends: join(root, 'tsconfig.json'), compilerOptions, files, include: [] }
  await writeFile(join(copy, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const built = files.map((file) => join(copy, 'dist', file.replace(/ts$/, 'js')))
  const before = await Promise.all(built.map((file) => readFile(file, 'utf8')))
  await output([tsc, '-p', copy], copy, { secondsMax: buildSecondsMax, signal })
  const after = await Promise.all(built.map((file) => readFile(file, 'utf8')))
  if (after.some((text, i) => text === before[i])) throw new Error('a mutant does not build')
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
    if (isRoot && (await exists(join(folder, 'sim', 'mutants', 'mutants.ts')))) return folder
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

export interface OutputOptions {
  readonly secondsMax: number
  /** Ends the command, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined
}

/** The output of Node.js, given these words, until it ends, or until its time is up: then it is ended. */
export function output(
  words: readonly string[],
  folder: string,
  { secondsMax, signal }: OutputOptions,
): Promise<string> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const child = spawn(process.execPath, words, {
      ...{ cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] },
      ...{ timeout: secondsMax * 1000, killSignal: 'SIGKILL' },
    })
    // Not the option of that name: it rejects before the child has ended, and its folder is in use.
    const end = (): boolean => child.kill('SIGKILL')
    signal?.addEventListener('abort', end)
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', reject)
    child.on('close', () => {
      signal?.removeEventListener('abort', end)
      if (signal?.aborted === true) reject(signal.reason)
      else resolve(Buffer.concat(chunks).toString())
    })
  })
}
