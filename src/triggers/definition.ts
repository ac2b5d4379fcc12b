/**
 * The declarations of a program: functions that are called for the cells of a column, and the service whose
 * workers share the shards. Plain data and functions; checked once, when it is defined.
 */
import { readElements, isList, isReadable } from '../base/readable.ts'
import { StoreError } from '../base/errors.ts'
import type { Timestamp } from '../base/ids.ts'
import {
  callback,
  checkOptions,
  givenMember,
  number,
  readGiven,
  text,
  wrongArgument,
  type Rule,
  type Rules,
} from '../base/arguments.ts'
import { microsOfGiven, storeTime, type GivenTime } from '../base/given-time.ts'
import { wordsFor } from '../base/words.ts'
import { datastoreProblem, nameProblem, type Cell } from '../cells/cell.ts'
import type { Cells } from '../client/cells.ts'
import {
  attemptsDefault,
  handlerMsDefault,
  handlerMsMax,
  marksMaxDefault,
  nameCharsMax,
  retryMaxMsDefault,
  retryMsDefault,
  triggersMax,
} from './limits.ts'

export interface TriggerCell extends Cell {
  readonly shard: number
}

export interface TriggerContext {
  /** The datastore that the cell is of. */
  readonly cells: Cells
  /** 1, 2, 3 …: which try of this cell this worker makes. */
  readonly attempt: number
}

/**
 * Called at least once for each cell of the column, in the order of each shard. It may be called again
 * for a cell that it has handled: let it find its work done. When it throws, it is called again later.
 */
export type Handler<Of = Cells> = (
  cell: TriggerCell,
  context: Omit<TriggerContext, 'cells'> & { readonly cells: Of },
) => Promise<void> | void

export interface TriggerOptions {
  readonly name: string
  readonly column: string
  readonly handle: Handler
  /**
   * Where a trigger that is new begins: cells of this time or later, a Date or microseconds since 1970.
   * Default: the first cell.
   */
  readonly since?: GivenTime
  /**
   * A cell that failed this number of times is marked, and the next one taken; default 8. `Infinity`: never.
   */
  readonly attemptsMax?: number
  /** Before the second try; doubled at each further one, up to the maximum. Default 1 s and 60 s. */
  readonly retryMs?: number
  readonly retryMaxMs?: number
  /** A call that takes longer has failed; default 60 s. */
  readonly timeoutMs?: number
  /** With more marked cells than this the trigger stops until it is resumed; default 100. */
  readonly marksMax?: number
}

export type Trigger = Required<Omit<TriggerOptions, 'since'>> & { readonly since: Timestamp }

export interface ServiceOptions {
  /** Names the workers that share the work, and where they are kept: in every program the same. */
  readonly service: string
  readonly datastore: string
  readonly triggers: readonly TriggerOptions[]
}

export interface Service {
  readonly service: string
  readonly datastore: string
  readonly triggers: readonly Trigger[]
}

/** Throws `invalid` with what is wrong, in one sentence. */
export function defineTriggers(options: ServiceOptions): Service {
  const given: unknown = options
  const words = 'an object of service, datastore and triggers'
  if (given === undefined) throw wrongArgument('defineTriggers', 'the service', given, words)
  checkOptions('defineTriggers', options, serviceRules)
  const { service, datastore } = options
  checkName('service', service)
  const wrong = datastoreProblem(datastore)
  if (wrong !== undefined) throw invalid(`service ${service}: ${wrong.message}`)
  const triggers = checkTriggers(service, options.triggers).map(checkTrigger)
  const names = triggers.map(({ name }) => name)
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) throw invalid(`service ${service} has two triggers named ${twice}`)
  return { service, datastore, triggers }
}

function checkTriggers(
  service: string,
  list: readonly TriggerOptions[],
): readonly TriggerOptions[] {
  const given: unknown = list
  if (!isList(given)) {
    throw wrongArgument('defineTriggers', 'triggers', given, 'a list of triggers')
  }
  const where = `service ${service}: its triggers`
  const { length } = list
  if (length === 0) throw invalid(`service ${service} has no triggers; give it one`)
  if (length > triggersMax)
    throw invalid(`service ${service} has ${length} triggers, at most ${triggersMax}`)
  const elements = readGiven(where, () => readElements(list))
  if (elements !== undefined) return elements
  throw invalid(`${where} are a list of a length that no list has`)
}

/** Whether a value that a module gave is a service; its functions are taken on trust. */
export function isService(value: unknown): value is Service {
  if (typeof value !== 'object' || value === null || !isReadable(value)) return false
  if (!('service' in value) || !('datastore' in value) || !('triggers' in value)) return false
  const { service, datastore, triggers } = value
  const areNamed = typeof service === 'string' && typeof datastore === 'string'
  return areNamed && isList(triggers) && triggers.length > 0
}

const serviceRules: Rules<ServiceOptions> = {
  service: text,
  datastore: text,
  triggers: { accepts: Array.isArray, words: 'a list of triggers' },
}
const time: Rule = {
  accepts: (value) => microsOfGiven(value) !== undefined,
  words: 'a Date, or microseconds since 1970',
}
const triggerRules: Rules<TriggerOptions> = {
  name: text,
  column: text,
  handle: callback,
  since: time,
  attemptsMax: number,
  retryMs: number,
  retryMaxMs: number,
  timeoutMs: number,
  marksMax: number,
}

function checkTrigger(options: TriggerOptions): Trigger {
  const given: unknown = options
  if (typeof given !== 'object' || given === null || !isReadable(given)) {
    throw wrongArgument(
      'defineTriggers',
      'a trigger',
      given,
      'an object of name, column and handle',
    )
  }
  const called = describeName(givenMember('defineTriggers: the name of a trigger', given, 'name'))
  checkOptions(`trigger ${called}`, options, triggerRules)
  const { name, column } = options
  checkName('trigger', name)
  const wrong = nameProblem({ column })
  if (wrong !== undefined) throw invalid(`trigger ${name}: ${wrong.message}`)
  if (typeof options.handle !== 'function') {
    throw invalid(
      `trigger ${name}: handle is the function to be called, not ${typeof options.handle}`,
    )
  }
  const { retryMs = retryMsDefault, attemptsMax = attemptsDefault } = options
  const since = storeTime(options.since ?? 0, `trigger ${name}: since`)
  const { retryMaxMs = Math.max(retryMs, retryMaxMsDefault) } = options
  const { timeoutMs = handlerMsDefault, marksMax = marksMaxDefault } = options
  const within = (what: string, value: number, least: number, most: number): void => {
    const isWhole = Number.isSafeInteger(value) || value === most
    if (isWhole && value >= least && value <= most) return
    throw invalid(
      `trigger ${name}: ${what} is a whole number from ${least} to ${most}, not ${value}`,
    )
  }
  within('attemptsMax', attemptsMax, 1, Infinity)
  within('retryMs', retryMs, 1, handlerMsMax)
  within('retryMaxMs', retryMaxMs, retryMs, handlerMsMax)
  within('timeoutMs', timeoutMs, 1, handlerMsMax)
  within('marksMax', marksMax, 0, Number.MAX_SAFE_INTEGER)
  return { ...options, since, attemptsMax, retryMs, retryMaxMs, timeoutMs, marksMax }
}

function describeName(name: unknown): string {
  return typeof name === 'string' ? name : wordsFor(name)
}

const namePattern = /^[a-z][a-z0-9_-]*$/

function checkName(what: string, name: string): void {
  if (typeof name === 'string' && name.length <= nameCharsMax && namePattern.test(name)) return
  const rule = `1 to ${nameCharsMax} of a-z, 0-9, _ and -, starting with a letter`
  throw invalid(`the name of a ${what} is ${rule}, not ${wordsFor(name)}`)
}

function invalid(message: string): StoreError {
  return new StoreError('invalid', message)
}
