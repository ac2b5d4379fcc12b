/** Copies of the sources with a bug planted in them, and what is run there. */
import { spawn } from 'node:child_process'
import { cp, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Edit, Mutant } from './mutant.ts'

/** A copy of the sources with the mutant's edits. Fails when an edit does not fit exactly once. */
export async function plant(mutant: Mutant, copy: string): Promise<void> {
  const root = await packageRoot()
  for (const name of ['src', 'sim', 'schema', 'package.json', 'tsconfig.json']) {
    // A link would be copied as one, and the bug planted in what it leads to.
    await cp(join(root, name), join(copy, name), { recursive: true, dereference: true })
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

const buildSecondsMax = 120
/** What is run, and nothing else: a mutant may leave a name unused, and is checked by nobody. */
const outputOnly = ['--noCheck', '--sourceMap', 'false']
const noDeclarations = ['--declaration', 'false', '--isolatedDeclarations', 'false']

export async function build(copy: string, signal?: AbortSignal): Promise<void> {
  const tsc = join(copy, 'node_modules', 'typescript', 'bin', 'tsc')
  const words = [tsc, '-p', join(copy, 'tsconfig.json'), ...outputOnly, ...noDeclarations]
  await output(words, copy, { secondsMax: buildSecondsMax, signal })
  if (!(await exists(join(copy, 'dist', 'sim', 'main.js')))) {
    throw new Error('a mutant does not build')
  }
}

export interface OutputOptions {
  readonly secondsMax: number
  /** Ends the command, and rejects with its reason. */
  readonly signal?: AbortSignal | undefined
}

/** What Node.js prints, given these words, until it ends, or until its time is up: then it is ended. */
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
