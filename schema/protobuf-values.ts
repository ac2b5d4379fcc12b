/**
 * Between messages and the values of rows: the same fields, without what makes a message one. Fields
 * that a program does not know (`$unknown`) stay behind; a program that needs them keeps the bytes.
 */
import { create, type DescField, type DescMessage, type MessageShape } from '@bufbuild/protobuf'
import { assert } from '../src/base/assert.ts'
import { checkDescriptor, checkFieldsIn } from './given.ts'
import type { FieldValues } from './protobuf-types.ts'

/** A message as the value of a property made with `messageOf`. */
export function fieldsOf<Desc extends DescMessage>(
  descriptor: Desc,
  message: MessageShape<Desc>,
): FieldValues<Desc> {
  checkDescriptor('fieldsOf', descriptor)
  checkFieldsIn('fieldsOf', 'the message is', message)
  const fields = plainFields(descriptor, message)
  assert(isOf<FieldValues<Desc>>(fields), 'schema: values are those of their descriptor')
  return fields
}

/** The message of such a value, with all that the message's own type has. */
export function messageFrom<Desc extends DescMessage>(
  descriptor: Desc,
  fields: FieldValues<Desc>,
): MessageShape<Desc> {
  checkDescriptor('messageFrom', descriptor)
  checkFieldsIn('messageFrom', 'the fields are', fields)
  return build(descriptor, fields)
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- vouches for a type read off a descriptor
function isOf<Value>(value: unknown): value is Value {
  return typeof value === 'object'
}

function plainFields(descriptor: DescMessage, message: object): Readonly<Record<string, unknown>> {
  const fields: Record<string, unknown> = {}
  for (const field of descriptor.fields) {
    const value = valueIn(message, field)
    if (value !== undefined) fields[field.localName] = converted(field, value, plainFields)
  }
  return fields
}

/** The value of a field that is set: of a oneof, only one member is. */
function valueIn(message: object, field: DescField): unknown {
  const { oneof, localName } = field
  if (oneof === undefined) return readMember(message, localName)
  const group = readMember(message, oneof.localName)
  return readMember(group, 'case') === localName ? readMember(group, 'value') : undefined
}

/** The value, or each of a list; a value that is itself a message goes through `convert`. */
function converted(
  { fieldKind, message }: DescField,
  value: unknown,
  convert: (descriptor: DescMessage, value: object) => unknown,
): unknown {
  const one = (item: unknown): unknown =>
    message !== undefined && typeof item === 'object' && item !== null
      ? convert(message, item)
      : item
  return fieldKind === 'list' && Array.isArray(value) ? value.map(one) : one(value)
}

function build<Desc extends DescMessage>(descriptor: Desc, fields: object): MessageShape<Desc> {
  const message = create(descriptor)
  for (const field of descriptor.fields) {
    const given = readMember(fields, field.localName)
    if (given === undefined) continue
    const value = converted(field, given, build)
    const { oneof, localName } = field
    if (oneof === undefined) Reflect.set(message, localName, value)
    else Reflect.set(message, oneof.localName, { case: localName, value })
  }
  return message
}

function readMember(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const member: unknown = Reflect.get(value, name)
  return member
}
