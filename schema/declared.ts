/** The parts that the type of a declared property carries. Types only: `property.ts` makes the values. */
import type { Presence, PropertyDefault, PropertyKind, PropertyType } from './model.ts'

/** A property as it was declared: what the text `optional string name` says. */
export interface Declared<
  Kind extends PropertyKind = PropertyKind,
  Has extends Presence = Presence,
  Value = unknown,
  Fields = unknown,
  Filled extends boolean = boolean,
> {
  readonly kind: Kind
  readonly presence: Has
  readonly type: PropertyType
  readonly fields: Fields
  /** Whether there is a default. */
  readonly isFilled: Filled
  readonly '~default': PropertyDefault | undefined
  readonly '~value'?: Value
}

/** The properties of a table, or the fields of a message, by name. */
export type Properties = Readonly<Record<string, Declared>>
