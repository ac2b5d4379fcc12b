/** Schemas as programs give them to a client: what `defineSchema` made, or its model, and nothing else. */
import { StoreError } from '../base/errors.ts'
import { isList, isReadable } from '../base/readable.ts'
import { wordsFor } from '../base/words.ts'
import { decodeSchema } from '../../schema/decode.ts'
import { problemText } from '../../schema/problem.ts'

/** Throws `invalid` for what is none that `defineSchema` gave. */
export function checkDefined(schema: unknown): void {
  const model = memberOf(schema, 'model')
  const isDefined = model !== undefined && isList(memberOf(schema, 'tables'))
  // By its name the cluster is asked for it.
  if (isDefined && memberOf(schema, 'name') === memberOf(model, 'name')) {
    return checkForm('client.tables', model)
  }
  throw new StoreError(
    'invalid',
    `client.tables: the schema is ${wordsFor(schema)}; expected what defineSchema gives`,
  )
}

/** Throws `invalid` for what is no model of a schema. */
export function checkModel(schema: unknown): void {
  const call = 'client.applySchema'
  if (memberOf(schema, 'model') !== undefined) {
    throw new StoreError('invalid', `${call}: give the model of the schema: schema.model`)
  }
  if (typeof schema === 'object' && schema !== null && isReadable(schema))
    return checkForm(call, schema)
  const words = 'the model of a schema, as defineSchema and parseSchema give it'
  throw new StoreError('invalid', `${call}: the schema is ${wordsFor(schema)}; expected ${words}`)
}

/** Those that were found to be schemas: they are frozen, and need no second look. */
const sound = new WeakSet<object>()

function checkForm(call: string, model: unknown): void {
  if (typeof model === 'object' && model !== null && sound.has(model)) return
  // The rules of defaults are for what a cluster has not stored yet, which the registry knows.
  const result = decodeSchema(model, 'stored')
  if (!result.ok) {
    const [first] = result.problems
    const why = first === undefined ? '' : `: ${problemText(first)}`
    throw new StoreError('invalid', `${call}: this is no schema${why}`)
  }
  if (typeof model === 'object' && model !== null && Object.isFrozen(model)) sound.add(model)
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !isReadable(value)) return undefined
  const member: unknown = Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
  return member
}
