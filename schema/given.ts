/**
 * Step by step checks of the values that programs give to the builder. Types tell TypeScript; JavaScript
 * hears of it here.
 */
import { optionsProblem, type Rules } from '../src/base/arguments.ts'
import { errorText } from '../src/base/error-text.ts'
import { readElements, hiddenIn, isList, isReadable } from '../src/base/readable.ts'
import { isPlain, wordsFor } from '../src/base/words.ts'
import { messageDepthMax } from './limits.ts'
import { checkMessage, SchemaError } from './problem.ts'

/** `t.string({ … })` would be taken for `t.string()`. */
export function checkNothing(subject: string, given: readonly unknown[]): void {
  if (given.length === 0) return
  throw wrong(subject, `it takes nothing, and is given ${wordsFor(given[0])}`)
}

/** The result of a check; an error of a getter, or of a proxy's handler, becomes words. */
function reading<Value>(subject: string, check: () => Value): Value {
  try {
    return check()
  } catch (error) {
    if (error instanceof SchemaError) throw error
    throw wrong(subject, `what it is given cannot be read: ${errorText(error)}`)
  }
}

export function checkText(subject: string, value: unknown): void {
  if (typeof value === 'string') return
  throw wrong(subject, `its name is ${wordsFor(value)}; expected a string`)
}

export function checkBuilderOptions<Options>(
  subject: string,
  given: unknown,
  rules: Rules<Options>,
): void {
  const found = optionsProblem(given, rules)
  if (found !== undefined) throw wrong(subject, found.words)
}

/** Properties by name, each of them one of `t`. */
export function checkProperties(subject: string, given: unknown): void {
  reading(subject, () => readPropertiesGiven(subject, given))
}

function readPropertiesGiven(subject: string, given: unknown): void {
  if (typeof given !== 'object' || given === null || !isPlain(given)) {
    throw wrong(subject, `its properties are ${wordsFor(given)}; expected { name: t.string(), … }`)
  }
  const hidden = hiddenIn(given)
  if (hidden !== undefined) throw wrong(subject, `its properties have ${hidden}; leave it out`)
  for (const [name, property] of Object.entries(given)) {
    const value: unknown = property
    if (isDeclared(value)) continue
    const called = typeof value === 'function' ? ' that is not called' : ''
    throw wrong(
      subject,
      `${name} is ${wordsFor(value)}${called}; expected a property such as t.string()`,
    )
  }
}

function isDeclared(value: unknown): boolean {
  if (!isReadable(value)) return false
  return typeof value === 'object' && value !== null && 'kind' in value && '~default' in value
}

/** Names, some of them turned round by `desc(…)`. */
export function checkParts(subject: string, given: unknown): void {
  reading(subject, () => readPartsGiven(subject, given))
}

function readPartsGiven(subject: string, given: unknown): void {
  if (!isList(given)) {
    throw wrong(subject, `its parts are ${wordsFor(given)}; expected a list of names`)
  }
  for (const part of Array.from<unknown>(given)) {
    const name: unknown =
      typeof part === 'object' && part !== null && isReadable(part) && 'desc' in part
        ? part.desc
        : part
    if (typeof name === 'string') continue
    throw wrong(subject, `a part is ${wordsFor(part)}; expected a name, or desc(name)`)
  }
}

/** A whole schema as data: of its form, by which it can be read. Its rules were checked when it was made. */
export function checkModel(call: string, given: unknown): void {
  reading(call, () => readModelGiven(call, given))
}

function readModelGiven(call: string, given: unknown): void {
  if (isModel(given)) return
  const words = 'a schema as defineSchema(…).model and parseSchema give it'
  const isForm = isObject(given) && isList(given['tables'])
  const what = isForm ? 'has not the form of one' : `is ${wordsFor(given)}`
  throw wrong(call, `the schema ${what}; expected ${words}`)
}

/** The descriptor of a message of Protocol Buffers. */
export function checkDescriptor(call: string, given: unknown): void {
  reading(call, () => readDescriptorGiven(call, given))
}

function readDescriptorGiven(call: string, given: unknown): void {
  const isOne = isObject(given) && given['kind'] === 'message' && isList(given['fields'])
  if (isOne && typeof given['typeName'] === 'string') return
  const words = 'one that protoc-gen-es generates, or that was read from a file of descriptors'
  throw wrong(call, `the descriptor is ${wordsFor(given)}; expected ${words}`)
}

/** Checks the object that holds the fields of a message: `what` names it. */
export function checkFieldsIn(call: string, what: string, given: unknown): void {
  if (isObject(given)) return
  throw wrong(call, `${what} ${wordsFor(given)}; expected an object of fields`)
}

/** A schema as text. */
export function checkSource(call: string, given: unknown): void {
  if (typeof given === 'string') return
  throw wrong(call, `the text is ${wordsFor(given)}; expected a string`)
}

export function checkVersion(call: string, given: unknown): void {
  reading(call, () => readVersionGiven(call, given))
}

function readVersionGiven(call: string, given: unknown): void {
  if (isObject(given) && isModel(given['schema']) && isObject(given['numbers'])) {
    const { stored, properties } = given['numbers']
    const isNumbered = typeof given['version'] === 'number' && isObject(stored)
    if (isNumbered && isObject(properties) && typeof given['fingerprint'] === 'string') return
  }
  const words = 'a version as firstVersion and nextVersion give it'
  throw wrong(call, `the current version is ${wordsFor(given)}; expected ${words}`)
}

export function checkReport(call: string, problems: unknown, source: unknown): void {
  reading(call, () => readReport(call, problems, source))
}

function readReport(call: string, problems: unknown, source: unknown): void {
  if (!isList(problems)) {
    throw wrong(call, `the problems are ${wordsFor(problems)}; expected a list of them`)
  }
  for (const problem of Array.from<unknown>(problems)) {
    checkMessage(call, problem)
    const span = isObject(problem) ? problem['span'] : undefined
    if (span === undefined) continue
    if (isObject(span) && typeof span['start'] === 'number' && typeof span['end'] === 'number') {
      continue
    }
    throw wrong(call, `the span of a problem is ${wordsFor(span)}; expected { start, end }`)
  }
  const isSource = isObject(source) && typeof source['file'] === 'string'
  if (isSource && ['undefined', 'string'].includes(typeof source['text'])) return
  throw wrong(call, `the source is ${wordsFor(source)}; expected { file: 'a name', text: '…' }`)
}

type Members = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Members {
  if (!isReadable(value)) return false
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isListOf(value: unknown, isOne: (one: Members) => boolean): boolean {
  return isList(value) && Array.from<unknown>(value).every((one) => isObject(one) && isOne(one))
}

function isTexts(value: unknown): boolean {
  return isList(value) && Array.from<unknown>(value).every((one) => typeof one === 'string')
}

function isModel(given: unknown): boolean {
  if (!isObject(given) || typeof given['name'] !== 'string') return false
  return isListOf(given['tables'], isTableForm) && isListOf(given['indexes'], isIndexForm)
}

function isTableForm({ name, kind, properties, key, groupKey }: Members): boolean {
  if (typeof name !== 'string' || !isProperties(properties, 0) || !isObject(key)) return false
  if (!isListOf(key['parts'], ({ property }) => typeof property === 'string')) return false
  return kind === 'root' || (kind === 'child' && isTexts(groupKey))
}

function isProperties(value: unknown, depth: number): boolean {
  return isListOf(value, ({ name, presence, type }) => {
    if (typeof name !== 'string' || typeof presence !== 'string' || !isObject(type)) return false
    if (type['kind'] !== 'message') return typeof type['kind'] === 'string'
    return depth < messageDepthMax && isProperties(type['properties'], depth + 1)
  })
}

function isIndexForm({ name, kind, table, parts, storing }: Members): boolean {
  if (typeof name !== 'string' || typeof table !== 'string' || !isTexts(storing)) return false
  if (!['local', 'global', 'inline'].some((one) => one === kind)) return false
  return isListOf(parts, ({ path }) => typeof path === 'string')
}

/** The tables of a list, which is read once. */
export function checkTables<Of>(subject: string, given: readonly Of[]): readonly Of[] {
  if (!isList(given)) {
    throw wrong(subject, `its tables are ${wordsFor(given)}; expected a list of tables`)
  }
  const tables = reading(subject, () => readElements(given))
  if (tables === undefined) throw wrong(subject, 'its tables are a list of no length')
  for (const one of tables) checkTable(subject, one)
  return tables
}

export function checkTable(subject: string, given: unknown): void {
  reading(subject, () => readTableGiven(subject, given))
}

function readTableGiven(subject: string, given: unknown): void {
  const isObject = typeof given === 'object' && given !== null && isReadable(given)
  if (isObject && '~draft' in given) return
  const words = 'a table with its place, such as table(…).key(…).root()'
  throw wrong(subject, `a table is ${wordsFor(given)}; expected ${words}`)
}

export function wrong(subject: string, message: string): SchemaError {
  return new SchemaError(subject, [{ kind: 'bad-option', message, at: [] }])
}
