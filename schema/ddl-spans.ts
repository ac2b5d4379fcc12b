/** Where in the text each part of a draft stands, so that problems found in the draft point there. */
import type { SchemaPath, Span } from './problem.ts'

export class Spans {
  readonly #spanByPath = new Map<string, Span>()

  set(path: SchemaPath, span: Span): void {
    this.#spanByPath.set(joinPath(path), span)
  }

  /** Of the part itself, else of what it is in. */
  at(path: SchemaPath): Span {
    for (let length = path.length; length > 0; length--) {
      const span = this.#spanByPath.get(joinPath(path.slice(0, length)))
      if (span !== undefined) return span
    }
    return { start: 0, end: 0 }
  }
}

function joinPath(path: SchemaPath): string {
  return path.join('/')
}
