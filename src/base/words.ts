/** Values from outside in messages. */
import { isDetached, isReadable, isView, readPrototype } from './readable.ts'

const shownCharsMax = 40

/** A value in a message: short, and of any type. */
export function wordsFor(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(
        value.length > shownCharsMax ? `${value.slice(0, shownCharsMax)}…` : value,
      )
    case 'bigint':
      return `${value}n`
    case 'number':
    case 'boolean':
      return String(value)
    case 'undefined':
      return 'absent'
    case 'object':
      return value === null ? 'null' : wordsForObject(value)
    case 'function':
      return wordsForFunction(value)
    case 'symbol':
      return 'a symbol'
  }
}

/** Nothing of a proxy that will not be asked. */
function readTag(value: object): string {
  try {
    return Object.prototype.toString.call(value)
  } catch {
    return ''
  }
}

function wordsForFunction(value: object): string {
  if (!isReadable(value)) return 'a proxy that was revoked'
  if (readTag(value).endsWith('GeneratorFunction]')) return 'a generator function'
  // That of a class stays as it is, and of a function that may be called it can be changed.
  const made = Object.getOwnPropertyDescriptor(value, 'prototype')
  return made?.writable === false ? 'a class' : 'a function'
}

function wordsForObject(value: object): string {
  if (!isReadable(value)) return 'a proxy that was revoked'
  if (isView(value)) {
    if (isDetached(value)) return 'bytes that were transferred'
    return value.length === 1 ? 'one byte' : `${value.length} bytes`
  }
  if (isDate(value)) return Number.isNaN(Number(value)) ? 'an invalid Date' : 'a Date'
  if (value instanceof Promise) return 'a promise; await it'
  if (Array.isArray(value)) return 'a list'
  return isPlain(value) ? 'an object' : `an object ${readClass(value)}`
}

/** Of a class, or of a prototype of its own, as `Object.create` makes it. */
function readClass(value: object): string {
  const made: unknown = Object.getPrototypeOf(value)
  const isObject = typeof made === 'object' && made !== null
  const maker: unknown =
    isObject && Object.hasOwn(made, 'constructor') ? Reflect.get(made, 'constructor') : undefined
  const name = typeof maker === 'function' ? maker.name.slice(0, shownCharsMax) : ''
  return name === '' ? 'that inherits from another one' : `of the class ${name}`
}

/** Asked of the object itself: in this folder there is no clock, and a date of a sandbox is one too. */
export function isDate(value: unknown): value is Date {
  if (typeof value !== 'object' || value === null || !isReadable(value)) return false
  try {
    // A date has no tag, also none that it inherits. An object that calls itself a date has one.
    if (Symbol.toStringTag in value) return false
    return Object.prototype.toString.call(value) === '[object Date]'
  } catch {
    return false
  }
}

/** An object of members, and of no class. */
export function isPlain(value: object): boolean {
  const made = readPrototype(value)
  return made === null || made === Object.prototype || isOfOtherRealm(made)
}

/** The plain objects of a sandbox (`node:vm`) have a prototype of their own, which has none above it. */
function isOfOtherRealm(made: unknown): boolean {
  const isObject = typeof made === 'object' && made !== null
  return isObject && Object.getPrototypeOf(made) === null && Object.hasOwn(made, 'hasOwnProperty')
}
