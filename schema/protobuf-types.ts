/**
 * Types of fields, read off the types that protoc-gen-es generates. All of it happens in the compiler.
 * Of a descriptor that was read at run time no more is known than that it has fields.
 */
import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf'
import type { Declared, Properties } from './declared.ts'
import type { Flat, RowOf } from './infer.ts'
import type { Presence } from './model.ts'

/** The fields of a message by their names in JavaScript. */
export type FieldsOf<Desc extends DescMessage> = FieldsIn<MessageShape<Desc>>

/** Its value in a row: the fields, and nothing of what makes it a message. */
export type FieldValues<Desc extends DescMessage> = RowOf<FieldsOf<Desc>>

type FieldsIn<Shape> = keyof Shape extends OfMessages
  ? Properties
  : AsProperties<Flat<PlainFields<Shape> & OneofFields<Shape>>>

type AsProperties<Fields> = Fields extends Properties ? Fields : Properties

/** A oneof: which of its members is set, and its value. */
interface Oneof {
  readonly case: string | undefined
}

/** `$typeName`, `$unknown`. */
type OfMessages = `$${string}`

type PlainFields<Shape> = {
  readonly [
    Name in keyof Shape as Name extends OfMessages
      ? never
      : Shape[Name] extends Oneof
        ? never
        : Name
  ]-?: FieldOf<Shape[Name]>
}

type FieldOf<Value> = Value extends readonly (infer Item)[]
  ? One<Item, 'repeated', false>
  : undefined extends Value
    ? One<NonNullable<Value>, 'optional', false>
    : One<Value, 'required', true>

type Oneofs<Shape> = {
  [Name in keyof Shape]: Shape[Name] extends Oneof ? Shape[Name] : never
}[keyof Shape]

type OneofFields<Shape> = {
  readonly [Member in Oneofs<Shape> as CaseOf<Member>]: Member extends {
    readonly value: infer Value
  }
    ? One<Value, 'optional', false>
    : never
}

type CaseOf<Member> = Member extends { readonly case: infer Case extends string } ? Case : never

/** Only the descriptor tells kinds of numbers apart, their type does not. */
type One<Value, Has extends Presence, Filled extends boolean> = [Value] extends [Message]
  ? Declared<'message', Has, RowOf<FieldsIn<Value>>, FieldsIn<Value>, false>
  : [Value] extends [Uint8Array]
    ? Declared<'bytes', Has, Uint8Array, undefined, Filled>
    : [Value] extends [string]
      ? Declared<'string', Has, string, undefined, Filled>
      : [Value] extends [boolean]
        ? Declared<'bool', Has, boolean, undefined, Filled>
        : [Value] extends [bigint]
          ? Declared<'int64', Has, bigint, undefined, Filled>
          : Declared<'int32' | 'integer' | 'float' | 'double', Has, number, undefined, Filled>
