/** Schemas as programs give them to a client: what `defineSchema` made, or its model, and nothing else. */
import { readGiven, wrongArgument } from '../base/arguments.ts'
import { StoreError } from '../base/errors.ts'
import { isList, isReadable } from '../base/readable.ts'
import { wordsFor } from '../base/words.ts'
import { decodeSchema } from '../../schema/decode.ts'
import type { Schema } from '../../schema/model.ts'
import { problemText } from '../../schema/problem.ts'
import { nameProblem } from '../../schema/words.ts'

/** Throws `invalid` for what no schema is called. */
export function checkSchemaName(call: string, name: unknown): void {
  if (typeof name === 'string' && nameProblem(name) === undefined) return
  const words = 'the name of a schema: a letter and then letters, digits and _'
  throw wrongArgument(call, 'the name of a schema', name, words)
}

/** Throws `invalid` for what is none that `defineSchema` gave. */
export function checkDefined(schema: unknown): void {
  const model = readMember(schema, 'model')
  const isDefined = model !== undefined && isList(readMember(schema, 'tables'))
  // The client asks the cluster for it by its name.
  if (isDefined && readMember(schema, 'name') === readMember(model, 'name')) {
    return void checkForm('client.tables', model)
  }
  throw new StoreError(
    'invalid',
    `client.tables: the schema is ${wordsFor(schema)}; expected what defineSchema gives`,
  )
}

/** The model of a schema: of what `defineSchema` gives, or the given model itself. Throws `invalid` for other values. */
export function checkModel(schema: unknown): Schema {
  const call = 'client.applySchema'
  const model = readMember(schema, 'model')
  if (model !== undefined) return checkForm(call, model)
  if (typeof schema === 'object' && schema !== null && isReadable(schema))
    return checkForm(call, schema)
  const words = 'what defineSchema gives, or the model of a schema as parseSchema gives it'
  throw new StoreError('invalid', `${call}: the schema is ${wordsFor(schema)}; expected ${words}`)
}

/** Those that were found to be schemas: they are frozen, and need no second look. */
const sound = new WeakMap<object, Schema>()

function checkForm(call: string, model: unknown): Schema {
  const known = typeof model === 'object' && model !== null ? sound.get(model) : undefined
  if (known !== undefined) return known
  // The rules of defaults are for what a cluster has not stored yet, which the registry knows.
  const result = decodeSchema(model, 'stored')
  if (!result.ok) {
    const [first] = result.problems
    const why = first === undefined ? '' : `: ${problemText(first)}`
    throw new StoreError('invalid', `${call}: this is no schema${why}`)
  }
  if (typeof model === 'object' && model !== null && Object.isFrozen(model)) {
    sound.set(model, result.schema)
  }
  return result.schema
}

function readMember(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !isReadable(value)) return undefined
  return readGiven('the schema', (): unknown =>
    Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined,
  )
}
