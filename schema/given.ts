/** What programs give to the builder, looked at step by step. Types tell TypeScript; JavaScript hears of it here. */
import { optionsProblem, type Rules } from '../src/base/arguments.ts'
import { isPlain, wordsFor } from '../src/base/words.ts'
import { SchemaError } from './problem.ts'

/** `t.string({ … })` would be taken for `t.string()`. */
export function checkNothing(subject: string, given: readonly unknown[]): void {
  if (given.length === 0) return
  throw wrong(subject, `it takes nothing, and is given ${wordsFor(given[0])}`)
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
  if (typeof given !== 'object' || given === null || !isPlain(given)) {
    throw wrong(subject, `its properties are ${wordsFor(given)}; expected { name: t.string(), … }`)
  }
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
  return typeof value === 'object' && value !== null && 'kind' in value && '~default' in value
}

/** Names, some of them turned round by `desc(…)`. */
export function checkParts(subject: string, given: unknown): void {
  if (!Array.isArray(given)) {
    throw wrong(subject, `its parts are ${wordsFor(given)}; expected a list of names`)
  }
  for (const part of Array.from<unknown>(given)) {
    const name: unknown =
      typeof part === 'object' && part !== null && 'desc' in part ? part.desc : part
    if (typeof name === 'string') continue
    throw wrong(subject, `a part is ${wordsFor(part)}; expected a name, or desc(name)`)
  }
}

/** A whole schema as data. */
export function checkModel(call: string, given: unknown): void {
  const isObject = typeof given === 'object' && given !== null
  if (isObject && 'tables' in given && Array.isArray(given.tables) && 'indexes' in given) return
  const words = 'a schema as defineSchema(…).model and parseSchema give it'
  throw wrong(call, `the schema is ${wordsFor(given)}; expected ${words}`)
}

export function checkTable(subject: string, given: unknown): void {
  if (typeof given === 'object' && given !== null && '~draft' in given) return
  const words = 'a table with its place, such as table(…).key(…).root()'
  throw wrong(subject, `a table is ${wordsFor(given)}; expected ${words}`)
}

export function wrong(subject: string, message: string): SchemaError {
  return new SchemaError(subject, [{ kind: 'bad-option', message, at: [] }])
}
