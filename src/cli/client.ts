/** A client made from a command's flags, given to `use` and closed whatever happens. */
import type { Command } from 'commander'
import { parseTimestamp } from '../base/datetime.ts'
import { stalenessMsMin } from '../base/limits.ts'
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
 * The command loads the client library here: a command line that is refused does without it. A call waits for as long as
 * `--timeout` says, also where nodes refuse for load: `trilithon index build` makes thousands of calls, a few at a time, and
 * one busy second is no reason to end it.
 */
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
    { fewStandingMs: timeoutMs, ...limits },
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

export function readDatastore(options: Options): string {
  return String(options['datastore'])
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
