/**
 * Properties in TypeScript: `t.string()`, `t.int64().optional()`, `t.message({ … }).repeated()`.
 * Required unless said otherwise. The type of the value is carried along for inference only: the
 * member `~value` is never there when the program runs.
 */
import { isBytes } from '../src/base/readable.ts'
import { microsOfGiven } from '../src/base/given-time.ts'
import type { Declared, Properties } from './declared.ts'
import { findGivenDefault, givenValue, keepGiven, toLiteral, noLiteral } from './default.ts'
import { checkNothing, checkProperties } from './given.ts'
import type {
  MessageType,
  Presence,
  Property,
  PropertyDefault,
  PropertyKind,
  PropertyType,
  ScalarKind,
} from './model.ts'
import type { JsonMembers, JsonValue, Timestamp, Uuid } from './values.ts'
import type { RowOf } from './infer.ts'

/** A property that can still be made optional or repeated. */
export interface RequiredProperty<
  Kind extends PropertyKind,
  Value,
  Fields = undefined,
> extends Declared<Kind, 'required', Value, Fields, false> {
  /** Rows may be without it. */
  optional(): Declared<Kind, 'optional', Value, Fields, false>
  /** Rows have a list of it, maybe an empty one. */
  repeated(): Declared<Kind, 'repeated', Value, Fields, false>
}

/** One that can have a default as well. */
export interface ScalarProperty<
  Kind extends ScalarKind,
  Value,
  Given = Value,
> extends RequiredProperty<Kind, Value> {
  /** The value of rows that are written without one: an insert may leave the property out. */
  default(value: Given): Declared<Kind, 'required', Value, undefined, true>
}

function declare<Kind extends PropertyKind, Has extends Presence, Value, Fields>(
  kind: Kind,
  presence: Has,
  type: PropertyType,
  fields: Fields,
): Declared<Kind, Has, Value, Fields, false> {
  return { kind, presence, type, fields, isFilled: false, '~default': undefined }
}

function required<Kind extends PropertyKind, Value, Fields>(
  kind: Kind,
  type: PropertyType,
  fields: Fields,
): RequiredProperty<Kind, Value, Fields> {
  return {
    ...declare<Kind, 'required', Value, Fields>(kind, 'required', type, fields),
    optional: (...given: readonly unknown[]) => {
      checkNothing('optional', given)
      return declare(kind, 'optional', type, fields)
    },
    repeated: (...given: readonly unknown[]) => {
      checkNothing('repeated', given)
      return declare(kind, 'repeated', type, fields)
    },
  }
}

function scalar<Kind extends ScalarKind, Value, Given = Value>(
  kind: Kind,
): ScalarProperty<Kind, Value, Given> {
  const type = { kind }
  const plain = declare<Kind, 'required', Value, undefined>(kind, 'required', type, undefined)
  return {
    ...required<Kind, Value, undefined>(kind, type, undefined),
    default: (value) => {
      const literal = literalFor(kind, value)
      const declared = { ...plain, isFilled: true as const, '~default': literal }
      keepGiven(declared, givenValue(kind, value, literal))
      return declared
    },
  }
}

/**
 * A value that no property of its type takes is no default either, even where its literal would fit the type.
 */
function literalFor(kind: ScalarKind, value: unknown): PropertyDefault {
  if (kind !== 'timestamp') {
    const isOfOther =
      (typeof value === 'bigint' && kind !== 'int64') ||
      (typeof value === 'string' && kind === 'int64') ||
      (value instanceof Uint8Array && (kind !== 'bytes' || !isBytes(value)))
    return isOfOther ? noLiteral : toLiteral(value)
  }
  return microsOfGiven(value) ?? noLiteral
}

/** Every type a property can have. */
export interface PropertyTypes {
  string(): ScalarProperty<'string', string>
  bytes(): ScalarProperty<'bytes', Uint8Array>
  bool(): ScalarProperty<'bool', boolean>
  /** A whole number of 32 bits, with its sign. */
  int32(): ScalarProperty<'int32', number>
  /** A whole number of 64 bits: a bigint. */
  int64(): ScalarProperty<'int64', bigint>
  /** A whole number that JavaScript can hold exactly (53 bits). */
  integer(): ScalarProperty<'integer', number>
  float(): ScalarProperty<'float', number>
  double(): ScalarProperty<'double', number>
  /** A moment: given as a Date or as microseconds since 1970, read as microseconds. */
  timestamp(): ScalarProperty<'timestamp', Timestamp, Timestamp | bigint | Date>
  uuid(): ScalarProperty<'uuid', Uuid>
  /** Any JSON, or JSON of the type given: `t.json<Trip>()`. That it is JSON is checked, not its type. */
  json(): RequiredProperty<'json', JsonValue>
  json<Value extends JsonMembers<Value>>(): RequiredProperty<'json', Value>
  /** 1, 2, 3 … in a group and table, without gaps, given when a row is committed. */
  sequence(): Declared<'sequence', 'required', number, undefined, false>
  /** Named fields, which indexes reach by their path: `exif.camera`. */
  message<Fields extends Properties>(
    fields: Fields,
  ): RequiredProperty<'message', RowOf<Fields>, Fields>
}

export const t: PropertyTypes = {
  string: (...given: readonly unknown[]) => buildScalar('string', given),
  bytes: (...given: readonly unknown[]) => buildScalar('bytes', given),
  bool: (...given: readonly unknown[]) => buildScalar('bool', given),
  int32: (...given: readonly unknown[]) => buildScalar('int32', given),
  int64: (...given: readonly unknown[]) => buildScalar('int64', given),
  integer: (...given: readonly unknown[]) => buildScalar('integer', given),
  float: (...given: readonly unknown[]) => buildScalar('float', given),
  double: (...given: readonly unknown[]) => buildScalar('double', given),
  timestamp: (...given: readonly unknown[]) => buildScalar('timestamp', given),
  uuid: (...given: readonly unknown[]) => buildScalar('uuid', given),
  json: <Value>(...given: readonly unknown[]) => {
    checkNothing('t.json', given)
    return required<'json', Value, undefined>('json', { kind: 'json' }, undefined)
  },
  sequence: (...given: readonly unknown[]) => {
    checkNothing('t.sequence', given)
    return declare('sequence', 'required', { kind: 'sequence' }, undefined)
  },
  message: (fields) => {
    checkProperties('t.message', fields)
    return required('message', messageType(fields), fields)
  },
}

function buildScalar<Kind extends ScalarKind, Value, Given = Value>(
  kind: Kind,
  given: readonly unknown[],
): ScalarProperty<Kind, Value, Given> {
  checkNothing(`t.${kind}`, given)
  return scalar(kind)
}

function messageType(fields: Properties): MessageType {
  return { kind: 'message', properties: propertyList(fields) }
}

/** Declared properties as the model has them, in the order in which they were written. */
export function propertyList(properties: Properties): readonly Property[] {
  return Object.entries(properties).map(([name, declared]) => {
    const { presence, type, '~default': given } = declared
    const property = { name, presence, type, ...(given !== undefined && { default: given }) }
    keepGiven(property, findGivenDefault(declared))
    return property
  })
}
