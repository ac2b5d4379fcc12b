/** The advice that messages of errors give a caller, held to the `retry` of their codes. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { retryByCode, type Retry } from '../../src/base/errors.ts'
import { codeOfWord } from '../../src/base/problem.ts'

interface Said {
  readonly file: string
  readonly retry: Retry
  readonly code: string
  readonly message: string
}

/** A sentence that says when the same request helps, and what `retry` may say with it. */
const hints: readonly { readonly words: RegExp; readonly codes?: string; readonly retry: Retry }[] =
  [
    { words: /\b(?:try|build|send) (?:it )?again\b|may be tried again/, retry: 'safe' },
    { words: /\bin a moment\b|wait for some of them/, retry: 'safe' },
    // A client library asks the other node by itself; over HTTP its caller does.
    { words: /ask another (?:one|node)/, codes: 'closed', retry: 'safe' },
    { words: /look before you do it again|or put it again/, retry: 'check-first' },
    { words: /use a (?:higher|new)|ask for less|read less$|make it smaller/i, retry: 'never' },
  ]

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The literal itself, or that of the constant which has this name. */
function textOf(argument: string, source: string, at: number): string {
  if (!/^\w+$/.test(argument)) return argument
  const named = new RegExp(
    `const ${argument}\\b[^=]*=\\s*(['"\`?:\\s\\w.=]*['"\`][^]*?)\\n(?!\\s*[?:'"\`])`,
    'g',
  )
  const all = [...source.matchAll(named)]
  return (all.findLast(({ index }) => index < at) ?? all[0])?.[1] ?? ''
}

function saidIn(file: string): Said[] {
  const source = readFileSync(`${root}${file}`, 'utf8')
  const made = /(?:new StoreError|\bproblem)\(\s*'([a-z-]+)',\s*('[^']*'|`[^`]*`|\w+)/g
  return [...source.matchAll(made)].flatMap((match) => {
    const code = codeOfWord(match[1])
    if (code === undefined) return []
    const message = textOf(match[2] ?? '', source, match.index)
    return [{ file, code, retry: retryByCode[code], message }]
  })
}

const sources = ['src', 'schema'].flatMap((folder) =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `${folder}/${name}`),
)
const all = sources.flatMap(saidIn)

test('errors: a message that says "again" has a code whose retry says so', () => {
  const known = all.filter(({ message }) => message.length > 2)
  expect(known.length).toBeGreaterThan(all.length * 0.9)
  for (const { words, codes, retry } of hints) {
    const held = all.filter(({ message }) => words.test(message))
    expect(held.length, `messages with ${words}`).toBeGreaterThan(0)
    expect(held.filter((one) => one.retry !== retry && one.code !== codes)).toEqual([])
  }
})
