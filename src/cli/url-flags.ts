/** Where a command finds its cluster: `--url`, else TRILITHON_URL, else the nodes of `npm start`. */
import type { Command } from 'commander'
import { secretProblem } from '../base/secret-text.ts'
import { CliError, exitUsage } from './exit.ts'
import { readInputBytes } from './input-file.ts'
import type { Options } from './options.ts'

/** The nodes that `npm start` begins. */
const urlsDefault = ['http://127.0.0.1:4700', 'http://127.0.0.1:4701', 'http://127.0.0.1:4702']

export function addUrlFlag(command: Command): Command {
  const text = `nodes to ask, with commas between (default: ${urlsDefault.join(',')})`
  return command.option('--url <URL,…>', text)
}

/** Scheme, host and port of each. */
export function parseUrls(options: Options): readonly string[] {
  const flag = options['url']
  const variable = process.env['TRILITHON_URL']
  const given = typeof flag === 'string' ? flag : variable
  if (given === undefined || given.trim() === '') return urlsDefault
  return given.split(',').map((text) => {
    const url = text.trim()
    if (/^https?:\/\/[^/?#@]+\/?$/.test(url) && URL.canParse(url)) return new URL(url).origin
    const source = typeof flag === 'string' ? '--url' : 'TRILITHON_URL'
    throw new CliError(`${source}: "${url}" is no URL such as http://127.0.0.1:4700`, exitUsage)
  })
}

/** The cluster's secret, when a file is named by `--secret-file` or TRILITHON_SECRET_FILE. */
export async function readSecret(options: Options): Promise<string | undefined> {
  const flag = options['secretFile']
  const file = typeof flag === 'string' ? flag : process.env['TRILITHON_SECRET_FILE']
  if (file === undefined || file === '') return undefined
  const secret = (await readInputBytes(file, 'the secret file')).toString('utf8').trim()
  const problem = secretProblem(secret)
  if (problem !== undefined) throw new CliError(`the secret in ${file} ${problem}`, exitUsage)
  return secret
}
