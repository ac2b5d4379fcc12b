/**
 * Starts the built program in a fraction of its time, for tests, which start hundreds of processes. Each test
 * process puts this file before the programs that it starts (`NODE_OPTIONS`). Where the program is one of dist/ that
 * `join.ts` has joined into one file, this file runs that one, with the code that V8 compiled for an earlier process.
 * Every other program starts as ever.
 *
 * It runs as dist/joined/start.cjs: Node.js lets a script that it requires first take the place of what runs a program.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import Module, { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { Script } from 'node:vm'

const joined: string = __dirname
const dist: string = dirname(joined)
const runMain: unknown = Reflect.get(Module, 'runMain')
/** In this time a process compiles most of the code that it uses. Most nodes of tests live longer. */
const compiledMs = 2_000

/** The joined file of this program; undefined where there is none. */
function findJoined(program: string): string | undefined {
  if (!program.startsWith(dist)) return undefined
  const file = join(joined, relative(dist, program).replace(/\.js$/, '.cjs'))
  return existsSync(file) ? file : undefined
}

/** Undefined where no process has kept it. */
function readCode(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

/** Keeps the code that this process has compiled so far. A process that cannot write it goes on without. */
function keepCode(script: Script, path: string): void {
  if (existsSync(path)) return
  const fresh = `${path}.${process.pid}`
  try {
    writeFileSync(fresh, script.createCachedData())
    renameSync(fresh, path)
  } catch {
    // The next process tries again.
  }
}

function runJoined(file: string): void {
  // Each command has code of its own, so that no process loads that of all others.
  const [verb = ''] = /^[a-z]+$/.exec(process.argv[2] ?? '') ?? []
  const [full, first] = [`${file}.${verb}.full.code`, `${file}.${verb}.code`] as const
  const cachedData = readCode(full) ?? readCode(first)
  const names = ['exports', 'require', 'module', '__filename', '__dirname', 'importOther']
  const source = `(function (${names.join(', ')}) {${readFileSync(file, 'utf8')}\n})`
  const script = new Script(source, {
    filename: file,
    ...(cachedData !== undefined && { cachedData }),
  })
  if (cachedData === undefined) process.on('exit', () => keepCode(script, first))
  if (!existsSync(full)) setTimeout(() => keepCode(script, full), compiledMs).unref()
  const module = { exports: {} }
  const run: unknown = script.runInThisContext()
  if (typeof run !== 'function') throw new Error(`${file} is no script`)
  // Of a script with kept code, an import of another file finds no loader.
  const importOther = (url: string): Promise<unknown> => import(url)
  const place = [file, dirname(file), importOther]
  Reflect.apply(run, module, [module.exports, createRequire(file), module, ...place])
}

Reflect.set(Module, 'runMain', (program: string = process.argv[1] ?? ''): void => {
  const file = findJoined(program)
  if (file !== undefined) runJoined(file)
  else if (typeof runMain === 'function') Reflect.apply(runMain, Module, [program])
})
