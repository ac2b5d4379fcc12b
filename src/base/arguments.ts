/**
 * Checks the arguments of calls of the library before anything is done. Types show TypeScript programs what a
 * call takes; programs in JavaScript learn it here. A call refuses an argument that it does not understand:
 * if it passed over it, it would answer another question.
 */
import { errorText } from './error-text.ts'
import { StoreError, type StoreErrorDetail } from './errors.ts'
import { readElements, hiddenIn, isList, isReadable } from './readable.ts'
import { unknownWord } from './suggest.ts'
import { isPlain, wordsFor } from './words.ts'

/** The rule for the values of one option. */
export interface Rule {
  readonly accepts: (value: unknown) => boolean
  /** The accepted values, in words. */
  readonly words: string
  /** Of a number that is beyond a limit. */
  readonly detail?: (value: number) => StoreErrorDetail
}

/** One rule for each option of a type, and none beside them: the compiler sees to it. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: Rule }

export const text: Rule = { accepts: (value) => typeof value === 'string', words: 'a string' }
export const flag: Rule = {
  accepts: (value) => typeof value === 'boolean',
  words: 'true or false',
}
/** A number whose bounds the call itself looks at. */
export const number: Rule = { accepts: (value) => typeof value === 'number', words: 'a number' }
export const callback: Rule = {
  accepts: (value) => typeof value === 'function' && isCallable(value),
  words: 'a function that is no class, and no generator, whose body would never run',
}

/** A generator's body does not run when it is called, and a class throws. */
function isCallable(value: object): boolean {
  return isReadable(value) && wordsFor(value) === 'a function'
}

export function oneOf(...known: readonly string[]): Rule {
  const words = known.map((one) => `'${one}'`).join(' or ')
  return { accepts: (value) => known.some((one) => one === value), words }
}

export function wholeFrom(least: number, most: number = Number.MAX_SAFE_INTEGER): Rule {
  const end = most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`
  return {
    accepts: (value) =>
      typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most,
    words: `a whole number from ${least}${end}`,
  }
}

/** How many of something are wanted at most. */
export const upperLimit: Rule = {
  accepts: (value) => value === Infinity || wholeFrom(1).accepts(value),
  words: 'a whole number from 1, or Infinity',
}

/** Milliseconds, of which parts are as good as whole ones. */
export function numberWithin(least: number, most: number, unit: string = ''): Rule {
  return {
    accepts: (value) => typeof value === 'number' && value >= least && value <= most,
    words: `a number${unit} from ${least} to ${most}`,
  }
}

/** `most`: a longer list is refused before an element of it is looked at. */
export function listOf({ accepts, words }: Rule, most?: number): Rule {
  const bound = most === undefined ? '' : ` of at most ${most}`
  return {
    // `every` would pass over holes.
    accepts: (value) => isList(value) && readElements(value, most)?.every(accepts) === true,
    words: `a list${bound}, each of it ${words}`,
  }
}

export interface OptionProblem {
  readonly words: string
  readonly detail: StoreErrorDetail
  /** The error that reading them threw. */
  readonly cause?: unknown
}

/** Why these are no options of a call; undefined when they are. One that is undefined is absent. */
export function optionsProblem<Options>(
  given: unknown,
  rules: Rules<Options>,
): OptionProblem | undefined {
  if (given === undefined) return undefined
  if (typeof given !== 'object' || given === null || !isReadable(given) || !mayHold(given, rules)) {
    const words = `the options are ${wordsFor(given)}; expected an object of ${listNames(rules)}`
    return { words, detail: {} }
  }
  try {
    return membersProblem(given, rules)
  } catch (error) {
    // A getter, or the handler of a proxy, threw.
    return { words: `the options cannot be read: ${errorText(error)}`, detail: {}, cause: error }
  }
}

function membersProblem(given: object, rules: object): OptionProblem | undefined {
  for (const name in given) {
    const wrong = optionProblem(name, Reflect.get(given, name), rules)
    if (wrong !== undefined) return wrong
  }
  const hidden = hiddenIn(given)
  return hidden === undefined ? undefined : { words: `the options have ${hidden}`, detail: {} }
}

function optionProblem(name: string, value: unknown, rules: object): OptionProblem | undefined {
  const rule = findRule(rules, name)
  if (rule === undefined) {
    return { words: unknownWord('option', name, Object.keys(rules)), detail: {} }
  }
  if (value === undefined) return undefined
  if (isReadable(value) && rule.accepts(value)) {
    const hidden = isList(value) ? hiddenIn(value) : undefined
    return hidden === undefined
      ? undefined
      : { words: `${name}: the list has ${hidden}`, detail: {} }
  }
  const words = `${name} is ${wordsFor(value)}; expected ${rule.words}`
  const isNumber = typeof value === 'number' && Number.isFinite(value)
  return { words, detail: (isNumber && rule.detail?.(value)) || {} }
}

/**
 * Whether this object may hold options. An instance of a class may, if each option is its own member: copying options
 * loses inherited members and getters.
 */
function mayHold(given: object, rules: object): boolean {
  if (isPlain(given)) return true
  const names = Object.keys(rules).filter((name) => name in given)
  return names.length > 0 && names.every((name) => Object.hasOwn(given, name))
}

/** Throws `invalid`. `call` names the method in the message: 'cells.put'. */
export function checkOptions<Options>(call: string, given: unknown, rules: Rules<Options>): void {
  if (given === undefined) return
  const wrong = optionsProblem(given, rules)
  if (wrong === undefined) return
  const { words, detail, cause } = wrong
  const more = 'cause' in wrong ? { cause } : {}
  throw new StoreError('invalid', `${call}: ${words}`, detail, more)
}

/** Throws `invalid` for an argument that is not what the call takes. */
export function checkArgument(call: string, name: string, value: unknown, rule: Rule): void {
  const where = `${call}: ${name}`
  const isTaken = isReadable(value) && readGiven(where, () => rule.accepts(value))
  if (!isTaken) throw wrongArgument(call, name, value, rule.words)
  checkList(where, value)
}

/**
 * The result of `read` on a caller's value. Throws `invalid` where a getter, or the handler of a proxy,
 * throws.
 */
export function readGiven<Value>(where: string, read: () => Value): Value {
  try {
    return read()
  } catch (cause) {
    if (cause instanceof StoreError) throw cause
    throw new StoreError('invalid', `${where} cannot be read: ${errorText(cause)}`, {}, { cause })
  }
}

/**
 * The members of an object that a program gives, each read once; those that are absent are not there. Throws `invalid`
 * for a value that is no object, for an unknown member, and for members that a copy would lose.
 * `words` names the expected value.
 */
export function givenMembers(
  call: string,
  name: string,
  value: unknown,
  { known, words }: { readonly known: readonly string[]; readonly words: string },
): Readonly<Record<string, unknown>> {
  const isObject = typeof value === 'object' && value !== null && isReadable(value)
  if (!isObject || Array.isArray(value)) throw wrongArgument(call, name, value, words)
  const where = `${call}: ${name}`
  return readGiven(where, () => {
    for (const one in value) {
      if (known.includes(one)) continue
      throw new StoreError('invalid', `${where}: ${unknownWord('property', one, known)}`)
    }
    const hidden = hiddenIn(value)
    if (hidden === undefined) return readMembers(value, known)
    throw new StoreError('invalid', `${where} has ${hidden}; leave it out`)
  })
}

/** Those members, own or of its class, that are there; each is read once. */
export function readMembers(
  value: object,
  names: readonly string[],
): Readonly<Record<string, unknown>> {
  const members = names.map((name): [string, unknown] => [name, Reflect.get(value, name)])
  return Object.fromEntries(members.filter(([, member]) => member !== undefined))
}

/** One member of an object that a program gives, own or inherited. */
export function givenMember(where: string, value: object, name: string): unknown {
  return readGiven(where, (): unknown => Reflect.get(value, name))
}

/** Throws `invalid` for a list that has more than its elements. */
export function checkList(where: string, value: unknown): void {
  const hidden = isList(value) ? readGiven(where, () => hiddenIn(value)) : undefined
  if (hidden === undefined) return
  throw new StoreError('invalid', `${where}: the list has ${hidden}; leave it out`)
}

export function wrongArgument(
  call: string,
  name: string,
  value: unknown,
  words: string,
): StoreError {
  return new StoreError('invalid', `${call}: ${name} is ${wordsFor(value)}; expected ${words}`)
}

/** Places of entries, from one to before another as in `slice`. */
export function checkPlaces(call: string, from: unknown, to: unknown): void {
  for (const [name, place] of [
    ['from', from],
    ['to', to],
  ] as const) {
    const isEnd = place === Infinity || place === -Infinity
    if (place === undefined || Number.isSafeInteger(place) || isEnd) continue
    throw wrongArgument(call, name, place, 'a whole number or Infinity, as slice takes it')
  }
}

function findRule(rules: object, name: string): Rule | undefined {
  const rule: unknown = Object.hasOwn(rules, name) ? Reflect.get(rules, name) : undefined
  return isRule(rule) ? rule : undefined
}

function isRule(value: unknown): value is Rule {
  return typeof value === 'object' && value !== null && 'accepts' in value
}

function listNames(rules: object): string {
  return Object.keys(rules).join(', ')
}
