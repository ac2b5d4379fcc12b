/** The placement of groups as the text says it. */
import type { TablePlacement } from './model.ts'

const namePattern = /^[a-z0-9-]{1,32}$/
/** A name that is one word of the text, too. */
const wordPattern = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/

/** Whether a set or a region may have the name. */
export function isPlaceName(name: string): boolean {
  return namePattern.test(name)
}

/** `PLACEMENT IN REGION eu`, `PLACEMENT IN SET "2-b"`, `PLACEMENT BY region`. */
export function placementText(placement: TablePlacement): string {
  if (placement.kind === 'by') return `PLACEMENT BY ${placement.property}`
  const { kind, name } = placement
  return `PLACEMENT IN ${kind.toUpperCase()} ${wordPattern.test(name) ? name : JSON.stringify(name)}`
}
