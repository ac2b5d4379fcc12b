/** The module that a service is declared in: loaded, and found to be one, or refused in one sentence. */
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoreError } from '../base/errors.ts'
import { fileFailure } from '../adapters/file-failure.ts'
import { isService, type Service } from '../triggers/definition.ts'
import { CliError, complain, exitFailure, exitUsage } from './exit.ts'

/** A module that awaits something at its top level, such as a first answer of a database, has it by then. */
const loadMsMax = 30_000

/** The service that the module exports: as `service`, or as its default. */
export async function loadService(path: string, loadMs: number = loadMsMax): Promise<Service> {
  const file = resolve(path)
  try {
    const found = await stat(file)
    if (found.isDirectory()) throw new CliError(`${path} is a folder`, exitUsage)
    if (!found.isFile()) throw new CliError(`${path} is a pipe or a device`, exitUsage)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(`${path} cannot be read: ${fileFailure(error)}`, exitUsage)
  }
  // One may be exported by two names.
  const found = new Set(Object.values(await loadInTime(path, file, loadMs)).filter(isService))
  if (found.size > 1) {
    const names = [...found].map(({ service }) => service).join(', ')
    throw new CliError(`${path} has ${found.size} services, ${names}; export one`, exitUsage)
  }
  for (const service of found) return service
  const message = `${path} has no triggers: export what defineTriggers of 'trilithon/triggers' gives`
  throw new CliError(message, exitUsage)
}

/** The timer also keeps the process up: without anything to wait for, Node.js would end it without a word. */
async function loadInTime(
  path: string,
  file: string,
  loadMs: number,
): Promise<Readonly<Record<string, unknown>>> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const text = `${path} has not come to its end in ${loadMs / 1000} s: an await at its top level waits for something that does not come`
      reject(new CliError(text, exitFailure))
    }, loadMs)
  })
  const onExit = (): void => {
    complain(`${path} ended the process while it was loaded: take process.exit out of it`)
    process.exitCode = exitFailure
  }
  process.on('exit', onExit)
  try {
    return await Promise.race([load(path, file), late])
  } finally {
    process.off('exit', onExit)
    clearTimeout(timer)
  }
}

async function load(path: string, file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const module: Readonly<Record<string, unknown>> = await import(pathToFileURL(file).href)
    return module
  } catch (error) {
    if (error instanceof StoreError) throw new CliError(`${path}: ${error.message}`, exitUsage)
    const text = error instanceof Error ? error.message : String(error)
    const hint = /\.[cm]?ts$/.test(path) ? ' (compile it first, and name the .js file)' : ''
    throw new CliError(`${path} does not run: ${text}${hint}`, exitFailure)
  }
}
