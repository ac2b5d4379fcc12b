/** Parses values of flags, or says what to give instead. */
import { InvalidArgumentError } from 'commander'
import { shardCountMax } from '../src/cells/datastore-form.ts'
import { defaultClientLimits } from '../src/client/client-limits.ts'
import { peers, type PeerName } from './compare/compare.ts'
import { stepNames, type StepName } from './damage/damage.ts'
import type { Load } from './load-process.ts'
import { unknownWord } from '../src/base/suggest.ts'
import { accountsMax, entriesMax } from './scale/accounts.ts'
import { workloadNames, type WorkloadName } from './ycsb/workloads.ts'

const knownOperations = ['commits', 'reads'] as const satisfies readonly Load['operation'][]

export function positive(text: string): number {
  return wholeNumber(text, 1)
}

export function fours(text: string): number {
  const value = wholeNumber(text, 4)
  if (value % 4 === 0) return value
  throw new InvalidArgumentError('a multiple of 4 is wanted')
}

/** More than none, and parts of one as well. */
export function seconds(text: string): number {
  if (isDecimal(text) && Number(text) > 0) return Number(text)
  throw new InvalidArgumentError('a number of seconds above 0 is wanted')
}

/** The same, and none. */
export function warmUp(text: string): number {
  if (isDecimal(text)) return Number(text)
  throw new InvalidArgumentError('a number of seconds of 0 or more is wanted')
}

/** From 0, and below 1. */
export function part(text: string): number {
  if (isDecimal(text) && Number(text) < 1) return Number(text)
  throw new InvalidArgumentError('a part from 0 and below 1 is wanted, such as 0.5')
}

function isDecimal(text: string): boolean {
  return /^\d+(?:\.\d+)?$/.test(text)
}

/** Requests that one client library has under way. */
export function clientCount(text: string): number {
  return wholeNumber(text, 1, defaultClientLimits.callsMax)
}

export function shardsOf(text: string): number {
  return wholeNumber(text, 1, shardCountMax)
}

function wholeNumber(text: string, least: number, most: number = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  const bound =
    most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
  throw new InvalidArgumentError(`a whole number ${bound} is wanted`)
}

/** Each once, in the order in which they are named. */
export function clientCounts(text: string): number[] {
  return [...new Set(text.split(',').map(clientCount))]
}

/** Sizes, each once, ascending. */
export function groupCounts(text: string): number[] {
  const sizes = text.split(',').map((one) => wholeNumber(one, 1, accountsMax))
  return [...new Set(sizes)].sort((a, b) => a - b)
}

export function rowsPerGroup(text: string): number {
  return wholeNumber(text, 1, entriesMax)
}

/** Each once, in the order in which they are named. */
export function peerNames(text: string): PeerName[] {
  const named = text.split(',').map((name) => {
    if (isPeer(name)) return name
    throw new InvalidArgumentError(unknownWord('system', name, Object.keys(peers)))
  })
  return [...new Set(named)]
}

function isPeer(name: string): name is PeerName {
  return Object.hasOwn(peers, name)
}

/** Each once; commits come first, since they write what takes its time to settle. */
export function operations(text: string): Load['operation'][] {
  const named = text.split(',')
  const wrong = named.find((name) => !knownOperations.some((known) => known === name))
  if (wrong !== undefined) {
    throw new InvalidArgumentError(unknownWord('operation', wrong, knownOperations))
  }
  return knownOperations.filter((known) => named.includes(known))
}

/** Each once, in the order in which they are named. */
export function workloads(text: string): WorkloadName[] {
  const named = text.split(',').map((one) => {
    const name = workloadNames.find((known) => known === one.toLowerCase())
    if (name !== undefined) return name
    throw new InvalidArgumentError(unknownWord('workload', one, workloadNames))
  })
  return [...new Set(named)]
}

/** Each once, in the order in which they are named. */
export function damageSteps(text: string): StepName[] {
  const named = text.split(',').map((name) => {
    const step = stepNames.find((known) => known === name)
    if (step !== undefined) return step
    throw new InvalidArgumentError(unknownWord('step', name, stepNames))
  })
  return [...new Set(named)]
}
