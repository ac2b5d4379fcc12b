/**
 * Looks at values from outside so that nothing is thrown. Nothing can be asked of a proxy that its maker
 * revoked, and bytes that were transferred are no bytes any more.
 */

/** An object whose members can be asked for, or anything that is no object. */
export function isReadable(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return true
  return readPrototype(value) !== undefined
}

/** Undefined of a proxy that was revoked. */
export function readPrototype(value: object): unknown {
  try {
    const made: unknown = Object.getPrototypeOf(value)
    return made
  } catch {
    return undefined
  }
}

/** A list that can be read. */
export function isList(value: unknown): value is readonly unknown[] {
  return isReadable(value) && Array.isArray(value)
}

/** Bytes that can be copied. */
export function isBytes(value: unknown): value is Uint8Array {
  return isView(value) && !isDetached(value)
}

/** Whether a value is bytes: an object that only inherits from bytes, or a proxy of some, has none. */
export function isView(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && value instanceof Uint8Array
}

/** Its buffer was transferred, or made shorter than where it begins: it has no bytes, and is not empty. */
export function isDetached(bytes: Uint8Array): boolean {
  if (bytes.byteLength > 0) return false
  try {
    return new Uint8Array(bytes).byteLength < 0
  } catch {
    return true
  }
}

/**
 * The part of an object or a list beside its members or elements, in words; undefined: none. A copy of the
 * value would lose it unseen.
 */
export function hiddenIn(value: object): string | undefined {
  const names = Reflect.ownKeys(value)
  const open = Array.isArray(value) ? value.length + 1 : Object.keys(value).length
  if (names.length <= open && !Array.isArray(value)) return undefined
  if (names.some((name) => typeof name === 'symbol')) return 'a member that a symbol names'
  if (names.length <= open) return undefined
  return Array.isArray(value) ? 'a member beside its elements' : 'a member that is not enumerable'
}

/**
 * The elements of a list, each read once, and a hole as an element that is undefined. Undefined: the list says a
 * length that no list has, or more than `most`, and no element was read.
 */
export function readElements<Item>(
  list: readonly Item[],
  most: number = 2 ** 32 - 1,
): Item[] | undefined {
  const { length } = list
  if (!Number.isInteger(length) || length < 0 || length > most) return undefined
  return Array.from({ length }, (_, place) => Reflect.get(list, place))
}
