/** Names with commas between them, in a URL or on a command line. */

/** The fault of a list of names that `what` is given; undefined: none. */
export function nameListProblem(what: string, names: readonly string[]): string | undefined {
  const twice = names.find((name, place) => names.indexOf(name) !== place)
  if (twice !== undefined) return `${what} names ${JSON.stringify(twice.slice(0, 80))} twice`
  if (names.includes('')) return `${what} has an empty name between commas`
  return undefined
}

/** The columns of a query: `all`, or some by name. */
export function columnListProblem(what: string, names: readonly string[]): string | undefined {
  if (names.length > 1 && names.includes('all')) {
    return `${what} is all, or names of columns: all goes with no others`
  }
  return nameListProblem(what, names)
}
