/** The meaning of flags that several commands have, and the words for those that are not understood. */
import { InvalidArgumentError, type Command } from 'commander'
import { unknownWord } from '../../src/base/suggest.ts'
import { ruleNames } from '../scenarios/explain-rules.ts'
import { switchNames } from '../faults/swarm-faults.ts'

export const usageExitCode = 2

export interface SeedRange {
  readonly from: number
  readonly to: number
}

/** Adds a command to the program; what the command returns is the exit code of the process. */
export type AddCommand = (program: Command, finish: (exitCode: number) => void) => void

export function parseCount(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw new InvalidArgumentError('expected a whole number')
}

/** As `parseCount`, and not none: of none of a thing nothing is learned. */
export function parsePositive(text: string): number {
  const value = parseCount(text)
  if (value >= 1) return value
  throw new InvalidArgumentError('expected a whole number of 1 or more')
}

export function parseJobs(text: string): number {
  const value = parseCount(text)
  if (value >= 1 && value <= 256) return value
  throw new InvalidArgumentError('expected 1 to 256 processes')
}

/** Seeds of one campaign, which keeps a list of those that are left. */
const seedsMax = 1_000_000

export function parseSeeds(text: string): SeedRange {
  const parts = /^(\d{1,15})\.\.(\d{1,15})$/.exec(text)
  const from = parts?.[1] === undefined ? Number.NaN : parseCount(parts[1])
  const to = parts?.[2] === undefined ? Number.NaN : parseCount(parts[2])
  if (from <= to && to - from < seedsMax) return { from, to }
  throw new InvalidArgumentError(`expected a range such as 1..200, of ${seedsMax} seeds at most`)
}

const secondsByUnit: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 }

/** A length of real time such as `90s`, `10m` or `8h`, in seconds. */
export function parseTime(text: string): number {
  const parts = /^(\d{1,6})([smh])$/.exec(text)
  const unit = secondsByUnit[parts?.[2] ?? '']
  const seconds = unit === undefined ? 0 : Number(parts?.[1]) * unit
  if (seconds > 0) return seconds
  throw new InvalidArgumentError('expected a time such as 90s, 10m or 8h')
}

/** Names of faults, separated by commas. */
export function parseFaults(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim())
  for (const name of names) knownName('fault', name, switchNames)
  return names
}

/**
 * Rules that a run can break, one argument each; a rule that nothing checks would always be kept.
 */
export function parseRule(text: string, before: readonly string[] = []): readonly string[] {
  knownName('rule', text, ruleNames)
  return [...before, text]
}

export function knownName(kind: string, name: string, known: readonly string[]): void {
  if (!known.includes(name)) throw new InvalidArgumentError(unknownWord(kind, name, known))
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** One line about a mistake in the use of a command. */
export function refuse(reason: string): number {
  say(`error: ${reason}`)
  return usageExitCode
}
