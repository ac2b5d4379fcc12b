/** A client made from a command's flags, given to `use` and closed whatever happens. */
import type { Command } from 'commander'
import { parseTimestamp } from '../base/datetime.ts'
import { stalenessMsMin } from '../base/limits.ts'
import { toStoreError } from '../base/problem.ts'
import { datastoreProblem } from '../cells/cell.ts'
import { shardCountOf } from '../cells/datastore-form.ts'
import { callTimeoutMsMax } from '../txn/limits.ts'
import type { ClientLimits } from '../client/client-limits.ts'
import type { Client } from '../client/client.ts'
import { CliError, exitUsage } from './exit.ts'
import type { Options } from './options.ts'
import { addUrlFlag, readSecret, parseUrls } from './url-flags.ts'

/** Flags of every command that speaks to a cluster's cells. */
export function addCellFlags(command: Command, timeoutSeconds = 10): Command {
  return addClusterFlags(command, timeoutSeconds).requiredOption(
    '-d, --datastore <NAME>',
    'the datastore',
  )
}

/** Flags of every command that asks a cluster. */
export function addClusterFlags(command: Command, timeoutSeconds = 10): Command {
  return addUrlFlag(command)
    .option('--secret-file <FILE>', "the cluster's secret (or TRILITHON_SECRET_FILE)")
    .option(
      '--timeout <SECONDS>',
      'how long to try, at one node after another',
      String(timeoutSeconds),
    )
    .option('--json', 'whole answers as JSON')
}

/**
 * How long a call of a command waits in its client where nodes have too much to do: for its whole time-out, whether few calls
 * wait or many. A program with other work is served better by an early refusal. A command has no other work: `trilithon index build`
 * makes thousands of calls, and one busy second is no reason to end it.
 */
export function commandLimits(
  timeoutMs: number,
): Pick<ClientLimits, 'standingMs' | 'fewStandingMs'> {
  return { standingMs: timeoutMs, fewStandingMs: timeoutMs }
}

/** The command loads the client library here: a command line that is refused does without it. */
export async function withClient<T>(
  options: Options,
  use: (client: Client) => Promise<T>,
  limits: Partial<ClientLimits> = {},
): Promise<T> {
  const secret = await readSecret(options)
  const timeoutMs = readTimeoutMs(options)
  const nodes = parseUrls(options)
  const { dial } = await import('../client/connect.ts')
  const client = dial(
    { endpoints: nodes, ...(secret !== undefined && { secret }), timeoutMs },
    { ...commandLimits(timeoutMs), ...limits },
  )
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

/** `--timeout` in milliseconds. */
export function readTimeoutMs(options: Options): number {
  return 1000 * parseNumber('--timeout', options['timeout'], 0.001, callTimeoutMsMax / 1000)
}

/** Throws `invalid` where the flag names no datastore: a node would answer so, too. */
export function readDatastore(options: Options): string {
  const datastore = String(options['datastore'])
  const wrong = datastoreProblem(datastore)
  if (wrong !== undefined) throw toStoreError(wrong)
  return datastore
}

/** `--shard`, of the datastore that the flags name. */
export function parseShard(options: Options): number {
  return parseCount('--shard', options['shard'], 0, shardCountOf(readDatastore(options)) - 1)
}

/** A number from a flag or argument, in digits (`0x10`, `1e3` and `+7` are none), or a usage error that names it. */
export function parseNumber(name: string, text: unknown, min: number, max: number): number {
  const isPlain = typeof text === 'string' && /^-?\d+(?:\.\d+)?$/.test(text)
  const value = isPlain ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw new CliError(
    `${name} wants a number from ${min} to ${max}, not "${String(text)}"`,
    exitUsage,
  )
}

/** As `parseNumber`, a whole one. */
export function parseCount(name: string, text: unknown, min: number, max: number): number {
  const value = parseNumber(name, text, min, max)
  if (Number.isInteger(value) && /^\d+$/.test(String(text))) return value
  throw new CliError(`${name} wants a whole number, not "${String(text)}"`, exitUsage)
}

/** Milliseconds, of `--max-staleness`. */
export function parseStaleness(text: unknown): number {
  return parseCount('--max-staleness', text, stalenessMsMin, Number.MAX_SAFE_INTEGER)
}

/** Microseconds since 1970 from a flag that is a time in words, or a usage error. Logs have times of after 1970. */
export function parseTime(flag: string, text: string): number {
  const timestamp = parseTimestamp(text)
  if (timestamp !== undefined) return timestamp
  const message = `${flag}: "${text}" is no time from 1970 to 2255 such as 2026-01-31T12:00:00Z`
  throw new CliError(message, exitUsage)
}
