/**
 * Text of YAML as one document of plain values, or everything that stands in the way, each with its offset.
 * Whatever means more than it shows is refused: anchors and their aliases, of which a few lines make
 * millions, and tags, which the parser passes over.
 */
import { isAlias, isCollection, LineCounter, parseDocument, visit, type Document } from 'yaml'

export interface YamlMistake {
  /** Both count from 1. */
  readonly line: number
  readonly column: number
  readonly text: string
}

export type YamlPlaceOf = (offset: number) => Pick<YamlMistake, 'line' | 'column'>

export type YamlText =
  | { readonly ok: true; readonly document: Document.Parsed; readonly findPlace: YamlPlaceOf }
  | { readonly ok: false; readonly mistakes: readonly YamlMistake[] }

/** More than any file of settings or definitions has. */
const charsMax = 1_000_000
const mistakesMax = 20
/** Lists and maps inside one another. */
const depthMax = 64
const tooDeep = `lists and maps are nested deeper than ${depthMax} levels`

export function readYaml(text: string): YamlText {
  if (text.length > charsMax) {
    return refused(`it has ${text.length} characters, at most ${charsMax}`)
  }
  const lineCounter = new LineCounter()
  const findPlace: YamlPlaceOf = (offset) => {
    const { line, col } = lineCounter.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const mistakes: YamlMistake[] = []
  let isTooDeep = false
  try {
    const document = parseDocument(text, { lineCounter, prettyErrors: false })
    for (const { pos, code, message } of [...document.errors, ...document.warnings]) {
      mistakes.push({
        ...findPlace(pos[0]),
        text: ownWords(code, text.slice(pos[0])) ?? sentence(message),
      })
    }
    visit(document, {
      Node: (_key, node, path) => {
        if (path.filter(isCollection).length > depthMax) isTooDeep = true
        if (isTooDeep) return visit.BREAK
        const isNamed = 'anchor' in node && node.anchor !== undefined
        if (!isAlias(node) && !isNamed) return undefined
        const what = isAlias(node) ? 'aliases' : 'anchors'
        mistakes.push({
          ...findPlace(node.range?.[0] ?? 0),
          text: `${what} are not supported; write it out`,
        })
        return undefined
      },
    })
    if (isTooDeep) return refused(tooDeep)
    if (mistakes.length === 0) return { ok: true, document, findPlace }
  } catch (error) {
    // The parser calls itself for each level.
    if (!(error instanceof RangeError)) throw error
    return refused(tooDeep)
  }
  return { ok: false, mistakes: mistakes.slice(0, mistakesMax) }
}

function refused(text: string): YamlText {
  return { ok: false, mistakes: [{ line: 1, column: 1, text }] }
}

/** Where the parser's words are for who programs with it; `rest` begins at the place. */
function ownWords(code: string, rest: string): string | undefined {
  if (code === 'MULTIPLE_DOCS') {
    return 'a second document begins here, and there is one in a file; remove the --- before it'
  }
  if (code !== 'DUPLICATE_KEY') return undefined
  const key = /^(?:"[^"\n]{1,80}"|'[^'\n]{1,80}'|[^\s:,{}[\]]{1,80})/.exec(rest)?.[0]
  return key === undefined ? 'this key is given twice' : `the key ${key} is given twice`
}

/** The first line of a parser's message, which may go on with an excerpt. */
function sentence(message: string): string {
  return message.split('\n')[0] ?? message
}
