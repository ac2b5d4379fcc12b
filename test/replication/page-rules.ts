/**
 * The parts that a page on the protocol must share with the code, as functions that answer with complaints:
 * kinds of messages, functions in files, and diagrams whose arrows a golden script sends in that order.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Every kind of message that the interfaces of these files declare. */
export function kindsIn(texts: readonly string[]): readonly string[] {
  const pattern = /^ {2}readonly kind: '([\w-]+)'$/gm
  return texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''))
}

/** Rows of the table under a heading, each with its cells. */
export function tableUnder(page: string, heading: string): readonly (readonly string[])[] {
  const section = page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

/** The table of messages has one row for each kind, and names no other. */
export function checkMessages(page: string, kinds: readonly string[]): string[] {
  const rows = tableUnder(page, 'Messages')
  const named = rows.map(([kind = '']) => kind.replaceAll('`', ''))
  const answers = rows.flatMap(([, , answer = '']) => quotedIn(answer))
  return [
    ...kinds.filter((kind) => !named.includes(kind)).map((kind) => `${kind}: has no row`),
    ...named.filter((kind) => !kinds.includes(kind)).map((kind) => `${kind}: is no message`),
    ...named.filter((kind, at) => named.indexOf(kind) < at).map((kind) => `${kind}: has two rows`),
    ...answers.filter((kind) => !kinds.includes(kind)).map((kind) => `${kind}: is no answer`),
  ]
}

function quotedIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')
}

/** The handler of each message is declared in the file that its row names. */
export function checkHandlers(page: string, folder: string): string[] {
  return tableUnder(page, 'Messages').flatMap(([kind = '', , , handler = '']) => {
    const [name = '', file = ''] = quotedIn(handler)
    return isDeclared(folder, name, file) ? [] : [`${kind}: no ${name} in ${file}`]
  })
}

function isDeclared(folder: string, name: string, file: string): boolean {
  const path = join(folder, file)
  if (file === '' || !existsSync(path)) return false
  return new RegExp(`^(?:export )?function ${name}\\b|^ {2}${name}\\(`, 'm').test(
    readFileSync(path, 'utf8'),
  )
}

interface Diagram {
  readonly kind: string
  readonly lines: readonly string[]
  /** The golden script that the text before it links last. */
  readonly script: string | undefined
}

export function diagramsIn(page: string): readonly Diagram[] {
  return [...page.matchAll(/```mermaid\n([^]*?)```/g)].map((match) => {
    const [kind = '', ...lines] = (match[1] ?? '').trim().split('\n')
    const before = page.slice(0, match.index)
    const script = [...before.matchAll(/test\/scripts\/([\w-]+)\.txt/g)].at(-1)?.[1]
    return { kind, lines: lines.map((line) => line.trim()), script }
  })
}

/** Where a diagram says `name (file.ts)`, the file declares it. */
export function checkFunctions(page: string, folder: string): string[] {
  return diagramsIn(page).flatMap(({ lines }) =>
    [...lines.join('\n').matchAll(/(\w+) \(([\w./-]+\.ts)\)/g)]
      .filter(([, name = '', file = '']) => !isDeclared(folder, name, file))
      .map(([, name, file]) => `no ${name} in ${file}`),
  )
}

const arrow = /^(n\d)-(>>|x)(n\d): ([\w-]+)/

/** Arrows between nodes are messages, and the diagram's script sends them in the diagram's order. */
export function checkSequences(
  page: string,
  kinds: readonly string[],
  scriptOf: (name: string) => string,
): string[] {
  return diagramsIn(page).flatMap(({ kind, lines, script }) => {
    if (kind !== 'sequenceDiagram') return []
    if (script === undefined) return ['a sequence has no script']
    return sequenceFaults(lines, kinds, scriptOf(script)).map((fault) => `${script}: ${fault}`)
  })
}

function sequenceFaults(
  lines: readonly string[],
  kinds: readonly string[],
  script: string,
): string[] {
  const sends = script.split('\n').filter((line) => line.includes(' -> '))
  let from = 0
  return lines.flatMap((line) => {
    if (!/^n\d\S*n\d:/.test(line)) return []
    const [, sender = '', end, receiver = '', kind = ''] = arrow.exec(line) ?? []
    if (!kinds.includes(kind)) return [`no message in "${line}"`]
    const found = sends.findIndex(
      (send, at) =>
        at >= from &&
        send.includes(` ${sender}   -> ${receiver}  ${kind} `) &&
        send.endsWith('(lost)') === (end === 'x'),
    )
    if (found < 0) return [`nobody sends "${line}" there`]
    from = found + 1
    return []
  })
}

/** States of the diagram, each once, without the one that it begins in. */
export function statesIn(page: string): readonly string[] {
  const diagram = diagramsIn(page).find(({ kind }) => kind === 'stateDiagram-v2')
  const names = (diagram?.lines ?? []).flatMap((line) => {
    const [, from = '', to = ''] = /^(\S+) --> (\w+)/.exec(line) ?? []
    return [from, to]
  })
  return [...new Set(names)].filter((name) => name !== '[*]' && name !== '')
}
