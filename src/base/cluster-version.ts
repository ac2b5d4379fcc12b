/**
 * Cluster versions: whole numbers, each of which names all the formats and messages that builds of that number know. The row of
 * a replica set says which one is in force (`../members/SPEC.md`, "The cluster version").
 */

/** The versions that a build supports, both ends included. */
export interface Versions {
  readonly min: number
  readonly max: number
}

/** Of builds that tell of no versions, and of rows without one. */
export const firstVersion = 1

/** Of this build. */
export const ownVersions: Versions = { min: 1, max: 2 }

/** Of a build that tells of none. */
export const untoldVersions: Versions = { min: firstVersion, max: firstVersion }

/** No build will support more: a number above it is no version. */
export const clusterVersionMax = 1_000_000

/**
 * The version that allows each feature. Builds of earlier versions refuse the format or the message.
 *
 * `told-version`: nodes tell each other which version is in force at them. `numbered-cancel`: a request gives a change up by its
 * number. `given-buckets`: a set closes buckets, and another one begins groups in them. `later-sets`: a row names sets that the cluster did
 * not begin with.
 */
const features = {
  'told-version': 2,
  'numbered-cancel': 2,
  'given-buckets': 2,
  'later-sets': 2,
} as const

export type Feature = keyof typeof features

/** Whether the feature may be used where this version is in force. */
export function allowsFeature(version: number, feature: Feature): boolean {
  return version >= features[feature]
}

export function supportsVersion({ min, max }: Versions, version: number): boolean {
  return min <= version && version <= max
}

/** The versions of a build that acts as one of that version. Throws RangeError where this build cannot. */
export function actingAs(version: number): Versions {
  const { min, max } = ownVersions
  if (!isVersion(version) || !supportsVersion(ownVersions, version)) {
    throw new RangeError(`this build can act as versions ${min} to ${max}, not as ${version}`)
  }
  return { min, max: version }
}

/** In words, as in `supports cluster version 1`, `supports cluster versions 1 to 2`. */
export function versionsText({ min, max }: Versions): string {
  return min === max ? `cluster version ${min}` : `cluster versions ${min} to ${max}`
}

/** Undefined for anything else than two versions in their order. */
export function readVersions(value: unknown): Versions | undefined {
  const [min, max, ...more]: unknown[] = Array.isArray(value) ? value : []
  if (!isVersion(min) || !isVersion(max) || more.length > 0 || min > max) return undefined
  return { min, max }
}

export function isVersion(value: unknown): value is number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) return false
  return value >= firstVersion && value <= clusterVersionMax
}
