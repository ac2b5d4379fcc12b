/** A status as plain JSON, without its undefined fields. */

type Json = null | boolean | number | string | readonly Json[] | PlainObject

export type PlainObject = { readonly [key: string]: Json }

export function plain(status: object): PlainObject {
  const text: unknown = JSON.parse(JSON.stringify(status))
  return isObject(text) ? text : {}
}

function isObject(value: unknown): value is PlainObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
