/** Flags of the commands that ask nodes about themselves, and the secret that these flags name. */
import type { Command } from 'commander'
import type { NodeRequest } from '../adapters/node-asks.ts'
import type { Options } from './options.ts'
import { addUrlFlag, readSecret } from './url-flags.ts'

/** Flags of every command that asks nodes about themselves. */
export function addAskFlags(command: Command): Command {
  return addUrlFlag(command)
    .option('--secret-file <FILE>', "the cluster's secret (or TRILITHON_SECRET_FILE)")
    .option('--json', 'as JSON')
}

/** Headers with the secret that the flags name; none without one. */
export async function readHeaders(options: Options): Promise<NodeRequest['headers']> {
  const secret = await readSecret(options)
  return secret === undefined ? {} : { authorization: `Bearer ${secret}` }
}
