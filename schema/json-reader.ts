/**
 * Walks through JSON of unknown form. Each step gives a value of the type asked for; the first that
 * cannot is remembered, with its place, and from then on the values mean nothing.
 */
import { errorText } from '../src/base/error-text.ts'
import { readElements, hiddenIn, isList, isReadable } from '../src/base/readable.ts'
import { wordsFor } from '../src/base/words.ts'
import type { PropertyDefault } from './model.ts'
import type { SchemaPath, SchemaProblem } from './problem.ts'

export class JsonReader {
  #problem: SchemaProblem | undefined

  get problem(): SchemaProblem | undefined {
    return this.#problem
  }

  start(value: unknown): JsonPlace {
    return new JsonPlace(value, [], (at, reason) => {
      const where = at.length === 0 ? 'the schema' : pathText(at)
      this.#problem ??= { kind: 'format', message: `${where} ${reason}`, at }
    })
  }
}

type Refuse = (at: SchemaPath, reason: string) => void

export class JsonPlace {
  readonly value: unknown
  readonly #at: SchemaPath
  readonly #refuse: Refuse

  constructor(value: unknown, at: SchemaPath, refuse: Refuse) {
    this.value = value
    this.#at = at
    this.#refuse = refuse
  }

  refuse(reason: string): void {
    this.#refuse(this.#at, reason)
  }

  /** Undefined when nothing is here. */
  optional(): JsonPlace | undefined {
    return this.value === undefined ? undefined : this
  }

  text(): string {
    if (typeof this.value === 'string') return this.value
    this.refuse('is not a text')
    return ''
  }

  number(): number {
    if (typeof this.value === 'number') return this.value
    this.refuse('is not a number')
    return 0
  }

  truth(): boolean {
    if (typeof this.value === 'boolean') return this.value
    this.refuse('is not true or false')
    return false
  }

  literal(): PropertyDefault {
    return typeof this.value === 'number' || typeof this.value === 'boolean'
      ? this.value
      : this.text()
  }

  oneOf<const Known extends string>(known: readonly [Known, ...Known[]]): Known {
    const found = known.find((word) => word === this.value)
    if (found === undefined) this.refuse(`is none of ${known.join(', ')}`)
    return found ?? known[0]
  }

  list<Element>(most: number, read: (place: JsonPlace) => Element): readonly Element[] {
    if (!isList(this.value)) {
      this.refuse('is not a list')
      return []
    }
    const list = this.value
    const found = this.#reading(() => {
      const hidden = hiddenIn(list)
      if (hidden !== undefined) this.refuse(`has ${hidden}; leave it out`)
      return { elements: readElements(list, most), length: list.length }
    })
    if (found === undefined) return []
    const { elements, length } = found
    if (elements === undefined) {
      this.refuse(`has ${wordsFor(length)} elements, at most ${most}`)
      return []
    }
    return elements.map((element, index) => read(this.#below(element, index)))
  }

  member(name: string): JsonPlace {
    const { value } = this
    if (!isObject(value)) {
      this.refuse('is not an object')
      return this.#below(undefined, name)
    }
    const member = this.#reading(() => (Object.hasOwn(value, name) ? value[name] : undefined))
    return this.#below(member, name)
  }

  /** Refuses other members: a newer program may mean something by them. */
  hasOnly(known: readonly string[]): void {
    const { value } = this
    if (!isObject(value)) return
    const hidden = this.#reading(() => hiddenIn(value))
    if (hidden !== undefined) this.refuse(`has ${hidden}; leave it out`)
    const found = this.#reading(() => Object.keys(value)) ?? []
    const other = found.find((name) => !known.includes(name))
    if (other !== undefined)
      this.refuse(`has a member ${JSON.stringify(other)}, which means nothing`)
  }

  /** A value of a program may have getters, or be a proxy, which throw. */
  #reading<Value>(read: () => Value): Value | undefined {
    try {
      return read()
    } catch (error) {
      this.refuse(`cannot be read: ${errorText(error)}`)
      return undefined
    }
  }

  #below(value: unknown, step: string | number): JsonPlace {
    return new JsonPlace(value, [...this.#at, step], this.#refuse)
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && isReadable(value) && !Array.isArray(value)
}

/** `tables[0].name`. */
function pathText(at: SchemaPath): string {
  return at
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1)
}
