/** One of the requests that operators and their tools send to a process, for its description. */
import { ownVersions } from '../base/cluster-version.ts'

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
  /** Texts that may be left out, and the first cluster version whose builds know them. */
  readonly optional?: Readonly<Record<string, { readonly what: string; readonly since: number }>>
  /** The first cluster version whose builds know the request; absent: all do. */
  readonly since?: number
  /** By status. */
  readonly answers: Readonly<Record<number, { readonly what: string; readonly type: string }>>
}

/**
 * Why the parameters of the request are not those that it takes; undefined: they are. `build`: the last cluster version that the
 * build knows.
 */
export function findParameterProblem(
  { query = {}, texts = {}, optional = {} }: Pick<OperationAnswer, 'query' | 'texts' | 'optional'>,
  given: URLSearchParams,
  build: number = ownVersions.max,
): string | undefined {
  const names = [...given.keys()]
  const more = Object.entries(optional).filter(([, { since }]) => since <= build)
  const known = [...Object.keys(query), ...Object.keys(texts), ...more.map(([name]) => name)]
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
