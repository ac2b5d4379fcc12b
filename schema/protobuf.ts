/**
 * Messages of Protocol Buffers as properties: `messageOf(ExifSchema)`, from the descriptor that
 * protoc-gen-es generates, or from one that was read from a file of descriptors at run time. Fields
 * go by their names in JavaScript (`focalLength`), and indexes reach them: `exif.place.latitude`.
 *
 * A field without presence is required and has its zero as default; one with presence, and each
 * member of a oneof, is optional; an enum is its number. What rows cannot hold is refused: maps,
 * numbers of 64 bits without a sign, messages inside themselves.
 */
import { ScalarType, type DescField, type DescMessage } from '@bufbuild/protobuf'
import { FeatureSet_FieldPresence as FieldPresence } from '@bufbuild/protobuf/wkt'
import { assert } from '../src/base/assert.ts'
import type { Declared, Properties } from './declared.ts'
import { checkDescriptor } from './given.ts'
import type { RowOf } from './infer.ts'
import type { ScalarKind } from './model.ts'
import { SchemaError, type SchemaProblem } from './problem.ts'
import { t, type RequiredProperty, type ScalarProperty } from './property.ts'
import type { FieldsOf } from './protobuf-types.ts'

export type { FieldValues } from './protobuf-types.ts'
export { fieldsOf, messageFrom } from './protobuf-values.ts'

/** The message as a property, which may be made optional or repeated. Throws `SchemaError`. */
export function messageOf<Desc extends DescMessage>(
  descriptor: Desc,
): RequiredProperty<'message', RowOf<FieldsOf<Desc>>, FieldsOf<Desc>> {
  checkDescriptor('messageOf', descriptor)
  const reader = new DescriptorReader()
  const properties = reader.readProperties(descriptor)
  const { problems } = reader
  if (problems.length > 0) throw new SchemaError(`message ${descriptor.typeName}`, problems)
  assert(areOf<FieldsOf<Desc>>(properties), 'schema: properties are those of their descriptor')
  return t.message(properties)
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- vouches for a type read off a descriptor
function areOf<Fields extends Properties>(properties: Properties): properties is Fields {
  return typeof properties === 'object'
}

class DescriptorReader {
  readonly problems: SchemaProblem[] = []
  /** The messages that what is read now is inside of. */
  readonly #around: DescMessage[] = []

  readProperties(descriptor: DescMessage): Properties {
    this.#around.push(descriptor)
    const properties = descriptor.fields.flatMap((field) => {
      const declared = this.#declared(field)
      return declared === undefined ? [] : [[field.localName, declared] as const]
    })
    this.#around.pop()
    return Object.fromEntries(properties)
  }

  #declared(field: DescField): Declared | undefined {
    if (field.fieldKind === 'map') {
      return this.#refuse(field, 'is a map; declare a repeated message of key and value')
    }
    const { message } = field
    if (message === undefined) return this.#scalar(field)
    if (this.#around.includes(message)) {
      return this.#refuse(field, `is a ${message.name} inside itself; keep it as bytes`)
    }
    const property = t.message(this.readProperties(message))
    if (field.fieldKind === 'list') return property.repeated()
    return field.presence === FieldPresence.LEGACY_REQUIRED ? property : property.optional()
  }

  #scalar(field: DescField): Declared | undefined {
    const { scalar } = field
    switch (scalar) {
      // An enum.
      case undefined:
      case ScalarType.INT32:
      case ScalarType.SINT32:
      case ScalarType.SFIXED32:
        return presentAs(field, t.int32(), 0)
      case ScalarType.UINT32:
      case ScalarType.FIXED32:
        return presentAs(field, t.integer(), 0)
      case ScalarType.INT64:
      case ScalarType.SINT64:
      case ScalarType.SFIXED64:
        return presentAs(field, t.int64(), 0n)
      case ScalarType.FLOAT:
        return presentAs(field, t.float(), 0)
      case ScalarType.DOUBLE:
        return presentAs(field, t.double(), 0)
      case ScalarType.STRING:
        return presentAs(field, t.string(), '')
      case ScalarType.BYTES:
        return presentAs(field, t.bytes(), new Uint8Array())
      case ScalarType.BOOL:
        return presentAs(field, t.bool(), false)
      default:
        return this.#refuse(field, 'has 64 bits without a sign; rows have int64, with one')
    }
  }

  #refuse(field: DescField, why: string): undefined {
    const message = `field ${field.parent.typeName}.${field.name} ${why}`
    this.problems.push({ kind: 'unknown-type', message, at: [field.name] })
    return undefined
  }
}

function presentAs<Kind extends ScalarKind, Value>(
  field: DescField,
  property: ScalarProperty<Kind, Value>,
  zero: Value,
): Declared {
  if (field.fieldKind === 'list') return property.repeated()
  switch (field.presence) {
    case FieldPresence.IMPLICIT:
      return property.default(zero)
    case FieldPresence.LEGACY_REQUIRED:
      return property
    default:
      return property.optional()
  }
}
