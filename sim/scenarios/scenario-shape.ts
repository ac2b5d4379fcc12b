/**
 * Whether a value read from a file has the shape of a sample: the same members with the same types,
 * none missing, none unknown. The sample is real data of the type asked for, so that a field added
 * to the type is checked without another word here. Returns the first thing wrong.
 */

/** A member of a shape that need not be there. */
export interface Optional {
  readonly of: unknown
  readonly isOptional: true
}

export function optional(of: unknown): Optional {
  return { of, isOptional: true }
}

function isOptional(shape: unknown): shape is Optional {
  return isRecord(shape) && shape['isOptional'] === true
}

/** A text that says where `value` differs from the sample's shape; undefined when it does not. */
export function findMisfit(value: unknown, sample: unknown, path: string): string | undefined {
  if (isOptional(sample)) {
    return value === undefined ? undefined : findMisfit(value, sample.of, path)
  }
  if (typeof sample === 'function') return undefined
  if (Array.isArray(sample)) return misfitOfArray(value, sample, path)
  if (isRecord(sample)) return misfitOfRecord(value, sample, path)
  if (typeof sample === 'number') return misfitOfNumber(value, path)
  return typeof value === typeof sample ? undefined : `${path}: expected a ${typeof sample}`
}

/**
 * Counts, times and rates are whole numbers; clocks may be set back, so that some are below zero.
 */
function misfitOfNumber(value: unknown, path: string): string | undefined {
  return Number.isSafeInteger(value) ? undefined : `${path}: expected a whole number`
}

/** Of any length; each element like the sample's first. */
function misfitOfArray(
  value: unknown,
  sample: readonly unknown[],
  path: string,
): string | undefined {
  if (!Array.isArray(value)) return `${path}: expected a list`
  for (const [index, element] of value.entries()) {
    const misfit = findMisfit(element, sample[0], `${path}[${index}]`)
    if (misfit !== undefined) return misfit
  }
  return undefined
}

function misfitOfRecord(
  value: unknown,
  sample: Readonly<Record<string, unknown>>,
  path: string,
): string | undefined {
  if (!isRecord(value)) return `${path}: expected an object`
  const unknownName = Object.keys(value).find((name) => !Object.hasOwn(sample, name))
  if (unknownName !== undefined) return `${path}.${unknownName}: is not known`
  for (const [name, inner] of Object.entries(sample)) {
    if (value[name] === undefined && !isOptional(inner)) return `${path}.${name}: is missing`
    const misfit = findMisfit(value[name], inner, `${path}.${name}`)
    if (misfit !== undefined) return misfit
  }
  return undefined
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
