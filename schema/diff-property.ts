/** Differences between the properties of two tables of one name, or the fields of two messages. */
import type { SchemaChange } from './change.ts'
import type { Presence, Property } from './model.ts'

/** `owner` is the path of what they are in: `Photo`, `Photo.exif`. */
export function propertyChanges(
  owner: string,
  earlier: readonly Property[],
  later: readonly Property[],
): readonly SchemaChange[] {
  const gone = earlier.filter(({ name }) => !later.some((property) => property.name === name))
  return [
    ...later.flatMap((property) => {
      const before = earlier.find(({ name }) => name === property.name)
      const subject = `${owner}.${property.name}`
      return before === undefined ? [added(subject, property)] : changes(subject, before, property)
    }),
    ...gone.map(({ name }) => dropped(`${owner}.${name}`)),
  ]
}

function added(subject: string, { presence, type, default: literal }: Property): SchemaChange {
  const change = { kind: 'add-property', subject, message: `property ${subject} is new` } as const
  if (presence !== 'required' || literal !== undefined) return change
  const refusal = 'it is required, and the rows that are there are without it'
  const hint =
    type.kind === 'sequence'
      ? 'a sequence is declared together with its table'
      : 'make it optional, or give it a DEFAULT'
  return { ...change, refusal, hint }
}

function dropped(subject: string): SchemaChange {
  const message = `property ${subject} is gone`
  const refusal = 'rows have it, and programs of the earlier version use it'
  return {
    kind: 'drop-property',
    subject,
    message,
    refusal,
    hint: 'leave it, and write it no more',
  }
}

function changes(subject: string, earlier: Property, later: Property): readonly SchemaChange[] {
  return [
    ...typeChanges(subject, earlier, later),
    ...presenceChanges(subject, earlier, later),
    ...defaultChanges(subject, earlier, later),
  ]
}

function typeChanges(subject: string, earlier: Property, later: Property): readonly SchemaChange[] {
  if (earlier.type.kind === 'message' && later.type.kind === 'message') {
    return propertyChanges(subject, earlier.type.properties, later.type.properties)
  }
  if (earlier.type.kind === later.type.kind) return []
  const message = `property ${subject} would change from ${earlier.type.kind} to ${later.type.kind}`
  const refusal = `rows that are there hold values of ${earlier.type.kind}`
  return [{ kind: 'change-type', subject, message, refusal, hint: 'add an optional property' }]
}

const refusalByPresence: Readonly<Record<Presence, string>> = {
  required: 'programs of the earlier version count on its being there',
  optional: 'rows that are there may be without it',
  repeated: 'rows that are there hold lists',
}

function presenceChanges(
  subject: string,
  { presence: before }: Property,
  { presence: after }: Property,
): readonly SchemaChange[] {
  if (before === after) return []
  const message = `property ${subject} would change from ${before} to ${after}`
  const refusal =
    after === 'repeated' ? 'rows that are there hold single values' : refusalByPresence[before]
  return [{ kind: 'change-presence', subject, message, refusal }]
}

/** Every row that is there has what was required all along, so a first default changes none of them. */
function defaultChanges(
  subject: string,
  { default: before }: Property,
  { default: after, presence }: Property,
): readonly SchemaChange[] {
  if (before === after || presence !== 'required') return []
  const [was, is] = [JSON.stringify(before), JSON.stringify(after)]
  if (was === undefined) {
    return [{ kind: 'add-default', subject, message: `property ${subject} gets the default ${is}` }]
  }
  const change = is === undefined ? `lose its default ${was}` : `change its default ${was} to ${is}`
  const message = `property ${subject} would ${change}`
  const refusal = 'rows that were written without it would change with it'
  return [{ kind: 'change-default', subject, message, refusal }]
}
