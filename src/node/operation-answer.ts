/** One of the requests that operators and their tools send to a process, for its description. */
export interface OperationAnswer {
  readonly path: string
  /** Absent: GET. */
  readonly method?: 'POST'
  readonly operationId: string
  readonly summary: string
  /** Parameters that may be left out, and are true or false. */
  readonly query?: Readonly<Record<string, string>>
  /** Parameters that are texts, and must be given. */
  readonly texts?: Readonly<Record<string, string>>
  /** By status. */
  readonly answers: Readonly<Record<number, { readonly what: string; readonly type: string }>>
}

/** Why the parameters of the request are not those that it takes; undefined: they are. */
export function findParameterProblem(
  { query = {}, texts = {} }: Pick<OperationAnswer, 'query' | 'texts'>,
  given: URLSearchParams,
): string | undefined {
  const names = [...given.keys()]
  const known = [...Object.keys(query), ...Object.keys(texts)]
  const other = names.find((name) => !known.includes(name))
  if (other !== undefined) {
    const name = JSON.stringify(other.slice(0, 80))
    return known.length === 0
      ? 'this request takes no parameters'
      : `there is no parameter ${name} here, only ${known.join(', ')}`
  }
  const twice = names.find((name) => given.getAll(name).length > 1)
  if (twice !== undefined) return `the parameter ${twice} is given twice`
  const missing = Object.keys(texts).find((name) => (given.get(name) ?? '') === '')
  if (missing !== undefined) return `the parameter ${missing} is missing: ${texts[missing]}`
  const wrong = Object.keys(query).find(
    (name) => !['', 'true', 'false'].includes(given.get(name) ?? ''),
  )
  return wrong === undefined
    ? undefined
    : `${wrong} must be true or false, or stand without a value`
}
