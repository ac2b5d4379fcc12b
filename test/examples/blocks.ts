/**
 * The programs and commands of README and the pages, as a reader copies them: each fenced block of `ts`,
 * `js` or `sh`. One that is not run says why, in a comment right before it.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Language = 'ts' | 'js' | 'sh'

export interface Block {
  /** `src/docs/cells.md, block 2`. */
  readonly name: string
  readonly page: string
  readonly language: Language
  readonly text: string
  /** Why it is not run. */
  readonly reason: string | undefined
}

export function pagesOf(root: string): readonly string[] {
  const docs = readdirSync(join(root, 'src/docs')).filter((name) => name.endsWith('.md'))
  return ['README.md', ...docs.toSorted().map((name) => `src/docs/${name}`)]
}

export function blocksOf(root: string, page: string): readonly Block[] {
  const form = /(?:^<!-- not run: (.+) -->\n\n?)?^```(ts|js|sh)\n([^]*?)^```$/gm
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(form)].map(([, reason, language, code = ''], place): Block => {
    const name = `${page}, block ${place + 1}`
    const known = language === 'ts' || language === 'js' ? language : 'sh'
    return { name, page, language: known, text: code, reason }
  })
}

/** Blocks that run in one go. */
export interface Unit {
  readonly name: string
  readonly language: Language
  readonly text: string
  /** Of a program: the file that its first line names, or one of its own. */
  readonly file: string
}

/**
 * In the page's order. A program that imports nothing goes on where the one before it on the page was:
 * its lines stand before that one's last, which closes the client.
 */
export function unitsOf(blocks: readonly Block[]): readonly Unit[] {
  const units: Unit[] = []
  for (const { name, page, language, text, reason } of blocks) {
    if (reason !== undefined) continue
    const before = units.findLastIndex((one) => one.language === 'ts')
    const earlier = units[before]
    if (language === 'ts' && !/^import /m.test(text) && earlier !== undefined) {
      units.splice(before, 1)
      const joined = earlier.text.replace(closing, () => `${text}${closing}`)
      units.push({ ...earlier, name: `${earlier.name} and ${name.split(', ')[1]}`, text: joined })
      continue
    }
    const named = /^\/\/ (\S+\.[tj]s)\n/.exec(text)?.[1]
    const own = `${page.replaceAll(/\W/g, '-')}-${units.length}.${language}`
    units.push({ name, language, text, file: named ?? own })
  }
  return units
}

const closing = 'await client.close()\n'
